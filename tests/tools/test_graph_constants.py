"""Constants compared, and equal ones kept once; names with a prefix."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from sardonyx.errors import InvalidArgument
from sardonyx.tools.graph_constants import GraphConstants

TEXT = """<ir_version: 10, opset_import: ["" : 21]>
main (float[2] x) => (float[2] y) <float[2] v = {1, 2}, float[2] w = {1, 2}, float[2] u = {3, 4}> {
    a = Add(x, v)
    b = Add(a, w)
    y = Add(b, u)
}"""


def graph() -> GraphConstants:
    """Return a graph with two equal constants of three."""
    return GraphConstants(onnx.parser.parse_model(TEXT))


def test_equal_constants_are_kept_once() -> None:
    """Nodes read the first of them; the hashes are kept by name."""
    given = graph()
    cache: dict[str, int] = {}
    given.remove_duplicated_initializer(cache)
    assert [tensor.name for tensor in given.model.graph.initializer] == ["v", "u"]
    assert [node.input[1] for node in given.nodes()] == ["v", "v", "u"]
    assert cache["v"] == cache["w"] != cache["u"]


def test_near_numbers_count_as_equal() -> None:
    """Within the tolerances; other types, shapes and texts do not."""
    first = numpy_helper.from_array(np.float32([1, 2]), "a")
    same = GraphConstants.has_same_value
    assert same(first, numpy_helper.from_array(np.float32([1, 2.00001]), "b"))
    assert not same(first, numpy_helper.from_array(np.float32([1, 2.001]), "b"))
    assert same(first, numpy_helper.from_array(np.float32([1, 2.001]), "b"), rtol=0.01)
    assert not same(first, numpy_helper.from_array(np.float64([1, 2]), "b"))
    assert not same(first, numpy_helper.from_array(np.float32([[1, 2]]), "b"))
    texts = [numpy_helper.from_array(np.array([text], object), "t") for text in ("a", "a", "b")]
    assert (same(texts[0], texts[1]), same(texts[0], texts[2])) == (True, False)


def test_a_tensor_without_a_type_has_no_hash() -> None:
    """It is an error that names it."""
    with pytest.raises(InvalidArgument, match="'q' states no element type"):
        GraphConstants.to_data_hash(onnx.TensorProto(name="q"))


def test_names_with_a_prefix() -> None:
    """All but those of the model's inputs and outputs."""
    given = graph()
    given.add_prefix_to_names("p_")
    assert [tuple(node.input) for node in given.nodes()] == [("x", "p_v"), ("p_a", "p_w"), ("p_b", "p_u")]
    assert given.nodes()[-1].output[0] == "y"
    onnx.checker.check_model(given.model)
