"""A function by itself: the bodies that the standard gives for operators come so."""

from __future__ import annotations

from collections.abc import Mapping

from sardonyx.formats.onnx import load
from sardonyx.formats.protos import protos
from sardonyx.ir import Function

__all__ = ["load_function"]


def load_function(content: bytes, opset_imports: Mapping[str, int]) -> Function:
    """Read a serialized FunctionProto, whose nodes are read under `opset_imports` where it imports nothing itself.

    Raises:
        InvalidGraph: the body breaks a rule of the standard.
    """
    model = protos().ModelProto(ir_version=10, graph=protos().GraphProto(name="empty"))
    model.functions.add().ParseFromString(content)
    for domain, version in opset_imports.items():
        model.opset_import.add(domain=domain, version=version)
    (function,) = load(model).functions.values()
    return function
