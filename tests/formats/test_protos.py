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


def test_without_the_package_a_model_is_refused_in_words() -> None:
    """The error is one of the package's own, and says what to install."""
    code = (
        "import sys\nsys.modules['onnx'] = None\nimport sardonyx\n"
        "try:\n    sardonyx.InferenceSession(b'model')\nexcept sardonyx.Fail as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "ONNX models need the package onnx, which cannot be imported" in done.stdout
