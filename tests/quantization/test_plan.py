"""Which tensors are quantized."""

from __future__ import annotations

from typing import Any

from support.models import model
from support.quantizing import CNN, PRODUCTS

from sardonyx.ops.infer import infer_graph
from sardonyx.quantization.plan import MOVES, OTHERS, Plan, make_plan
from sardonyx.quantization.plan import PRODUCTS as PRODUCT_OPERATORS

ALL = [*PRODUCT_OPERATORS, *MOVES, *OTHERS]


def _plan(text: str, operators: Any = ALL, **kwargs: Any) -> Plan:
    made = model(text, opset=17)
    infer_graph(made)
    included, excluded = kwargs.pop("included", ()), kwargs.pop("excluded", ())
    return make_plan(made, operators, included, excluded, **kwargs)


def _names(values: Any) -> list[str]:
    return [value.name for value in values]


def test_a_relu_behind_a_convolution_takes_part_in_it() -> None:
    """The value between them stays in floats."""
    plan = _plan(CNN)
    assert _names(plan.activations) == ["x", "r1", "c2", "a", "y"]
    assert {value.name: source.name for value, source in plan.same.items()} == {"p1": "r1", "f": "a"}


def test_weights_have_the_axis_of_their_output_channels() -> None:
    """That of Gemm is the first with transB; a bias has the steps of the sums."""
    found = {(weight.node.name, weight.index): (weight.channel_axis, weight.is_bias) for weight in _plan(CNN).weights}
    assert found[("first", 1)] == (0, False)
    assert found[("first", 2)] == (None, True)
    assert found[("last", 1)] == (0, False)


def test_a_table_of_constants_gives_what_is_picked_its_grid() -> None:
    """Gather moves elements."""
    plan = _plan(PRODUCTS)
    assert {value.name: source.name for value, source in plan.same.items()} == {"x": "t"}


def test_operators_and_nodes_can_be_chosen() -> None:
    """What others make is quantized where a chosen node reads it."""
    assert {weight.node.name for weight in _plan(CNN, ["Conv"]).weights} == {"first", "second"}
    assert {weight.node.name for weight in _plan(CNN, included=["last"]).weights} == {"last"}
    assert "first" not in {weight.node.name for weight in _plan(CNN, excluded=["first"]).weights}


def test_products_of_two_computed_values_can_stay_in_floats() -> None:
    """By `constant_weights_only`."""
    text = "graph(x: float[4, 4]) -> (y: float[4, 4]) { t = Transpose(x) y = MatMul(x, t) }"
    assert not _plan(text, ["MatMul"], constant_weights_only=True).activations
    assert _names(_plan(text, ["MatMul"]).activations) == ["x", "t", "y"]


def test_a_bias_can_stay_in_floats_and_outputs_too() -> None:
    """As options say."""
    assert not any(weight.is_bias for weight in _plan(CNN, quantizes_bias=False).weights)
    assert "y" not in _names(_plan(CNN, without_outputs=["Gemm"]).activations)


def test_moves_of_what_is_not_quantized_are_left_alone() -> None:
    """They have no grid of their own."""
    assert not _plan("graph(x: float[4, 4]) -> (y: float[4, 4]) { y = Transpose(x) }").same


def test_integers_are_left_alone() -> None:
    """Adding indices."""
    assert not _plan("graph(x: int64[4]) -> (y: int64[4]) { y = Add(x, x) }").activations
