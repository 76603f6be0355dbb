"""Functions by themselves."""

from __future__ import annotations

import onnx
import onnx.helper

from sardonyx.formats.function import load_function


def test_a_function_is_read_under_the_versions_given() -> None:
    """Its nodes have the version of the import."""
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    proto = onnx.helper.make_function("local", "F", ["x"], ["y"], [node], [onnx.helper.make_opsetid("", 18)])
    function = load_function(proto.SerializeToString(), {"": 18})
    assert [(item.op_type, item.version) for item in function.graph] == [("Relu", 18)]
    assert function.id == ("local", "F", "")
