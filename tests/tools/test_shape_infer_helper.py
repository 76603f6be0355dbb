"""Types and shapes of a model's values as a table."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.numpy_helper

from sardonyx.tools.shape_infer_helper import SymbolicShapeInferenceHelper

TEXT = """<ir_version: 10, opset_import: ["" : 21]>
main (float[n, 4] x) => (float[m, k] y) {
    p = MatMul(x, w)
    c = Concat<axis = 0>(p, p)
    y = Exp(p)
}"""


def helper() -> SymbolicShapeInferenceHelper:
    """Return a helper of a product."""
    model = onnx.parser.parse_model(TEXT)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros((4, 3), np.float32), "w"))
    return SymbolicShapeInferenceHelper(model)


def test_shapes_in_symbols_and_numbers() -> None:
    """Symbols that have a size are numbers, also in what follows from them; another size is inferred anew."""
    found = helper()
    assert found.infer({})
    assert (found.get_edge_shape("p"), found.get_edge_shape("w")) == (["n", 3], [4, 3])
    assert found.infer({"n": 5})
    assert (found.get_edge_shape("p"), found.get_edge_shape("c")) == ([5, 3], [10, 3])
    assert found.compare_shape("p", "y")
    assert not found.compare_shape("p", "c")
    assert found.get_edge_shape("nothing") is None
    assert found.known_vi_["p"].type.tensor_type.elem_type == onnx.TensorProto.FLOAT


def test_the_model_stays_as_it_is() -> None:
    """Sizes go into a copy."""
    found = helper()
    before = found.model_.SerializeToString()
    found.infer({"n": 5})
    assert found.model_.SerializeToString() == before


def test_a_contradiction_is_no_shape() -> None:
    """The answer is False, without an exception."""
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> main (float[2, 4] x, float[3, 4] z) => (float[m, k] y) { y = MatMul(x, z) }'
    )
    assert not SymbolicShapeInferenceHelper(model).infer({})
