"""QuantizeLinear and DequantizeLinear in a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.models import model

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Model
from sardonyx.ir.verify import verify
from sardonyx.ops.infer import infer_graph
from sardonyx.quantization.plan import MOVES, OTHERS, PRODUCTS, make_plan
from sardonyx.quantization.qdq import QdqChoice, drop_unused, insert_qdq
from sardonyx.quantization.quant_utils import grid_of_range, grid_of_weights

LAYER = """graph(x: float[2, 3]) -> (y: float[2, 4]) {
    w: float[3, 4] = ... 1
    b: float[4] = [1, 2, 3, 4]
    y = Gemm(x, w, b) @product
}"""


def _quantized(text: str, **kwargs: Any) -> Model:
    made = model(text, opset=17)
    infer_graph(made)
    plan = make_plan(made, [*PRODUCTS, *MOVES, *OTHERS], (), ())
    choice = QdqChoice(
        activation=lambda value: grid_of_range(DataType.UINT8, np.float32(-1), np.float32(1)),
        operand=lambda value, array: grid_of_range(DataType.UINT8, array.min(), array.max()),
        weight=lambda value, array, axis: grid_of_weights(array, DataType.INT8, axis=axis),
        **kwargs,
    )
    insert_qdq(made, plan, choice)
    verify(made)
    return made


def test_inputs_weights_bias_and_output_are_quantized() -> None:
    """The output keeps its name, and constants in floats are gone."""
    made = _quantized(LAYER)
    kinds = [node.op_type for node in made.graph]
    assert (kinds.count("QuantizeLinear"), kinds.count("DequantizeLinear")) == (2, 4)
    assert [value.name for value in made.graph.outputs] == ["y"]
    assert {"w_quantized", "w_scale", "w_zero_point", "b_quantized", "x_scale"} <= made.graph.initializers.keys()
    assert not {"w", "b"} & made.graph.initializers.keys()


def test_the_bias_has_the_steps_of_the_sums() -> None:
    """Scale of x times scales of w, in int32."""
    made = _quantized(LAYER)
    constants = {name: value.constant.numpy() for name, value in made.graph.initializers.items() if value.constant is not None}
    np.testing.assert_allclose(constants["b_scale"], constants["x_scale"] * constants["w_scale"], rtol=1e-6)
    assert constants["b_quantized"].dtype == np.int32
    np.testing.assert_allclose(constants["b_quantized"] * constants["b_scale"], [1, 2, 3, 4], rtol=1e-3)


def test_a_bias_that_is_large_beside_the_weights_widens_their_steps() -> None:
    """It would not fit int32."""
    made = _quantized(LAYER.replace("[1, 2, 3, 4]", "[1, 2, 3, 1e9]"))
    codes = made.graph.initializers["b_quantized"].constant
    scale = made.graph.initializers["b_scale"].constant
    assert codes is not None
    assert scale is not None
    np.testing.assert_allclose(codes.numpy() * scale.numpy().astype(np.float64), [1, 2, 3, 1e9], rtol=1e-3)


def test_a_value_with_many_users_is_quantized_once() -> None:
    """All of them read the same numbers."""
    made = _quantized("graph(x: float[2]) -> (y: float[2], z: float[2]) { y = Sigmoid(x) z = Add(x, y) }")
    assert [node.op_type for node in made.graph].count("QuantizeLinear") == 3


def test_weights_may_stay_floats_in_the_file() -> None:
    """Before a QuantizeLinear of their own."""
    made = _quantized(LAYER, keeps_float_weights=True)
    assert "w_float" in made.graph.initializers
    assert [node.op_type for node in made.graph].count("QuantizeLinear") == 3


def test_a_weight_that_is_not_finite_is_refused() -> None:
    """With its node and name."""
    with pytest.raises(InvalidArgument, match=r"Gemm.*'w'"):
        _quantized(LAYER.replace("... 1", "[[nan, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1]]"))


def test_constants_that_nobody_reads_are_dropped() -> None:
    """Initializers and Constant nodes, but not inputs with a default."""
    made = model(
        "graph(x: float[1], k: float[1]) -> (y: float[1]) { k: float[1] = [1] c = Constant() {value_float = 1.0} y = Relu(x) }"
    )
    drop_unused(made)
    assert [node.op_type for node in made.graph] == ["Relu"]
    assert "k" in made.graph.initializers
