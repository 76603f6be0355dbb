"""The message classes of ONNX."""

import subprocess
import sys

_ALONE = """
import sys
from sardonyx.formats.protos import protos
proto = protos().ModelProto(ir_version=7)
assert "onnx" not in sys.modules
import onnx
assert isinstance(proto, onnx.ModelProto)
assert onnx.ModelProto.FromString(proto.SerializeToString()) == proto
"""
_AFTER = """
import onnx
from sardonyx.formats.protos import protos
assert protos().ModelProto is onnx.ModelProto
"""


def test_they_are_loaded_without_the_package_that_may_be_imported_later() -> None:
    """What was made before is an onnx.ModelProto afterwards."""
    subprocess.run([sys.executable, "-c", _ALONE], check=True)


def test_they_are_those_of_the_package_where_it_is_loaded() -> None:
    """There is one class of each name."""
    subprocess.run([sys.executable, "-c", _AFTER], check=True)
