"""Which nodes the CPU provider runs."""

from __future__ import annotations

from support.models import graph

from sardonyx.ir import Node
from sardonyx.providers.cpu.claiming import problem_of


def _first(body: str) -> Node:
    return next(iter(graph(body)))


def test_a_node_with_a_kernel_has_no_problem() -> None:
    """Its types are known, and its check lets it through."""
    assert problem_of(_first("graph(x: float[n]) -> (y: float[n]) { y = Relu(x) }")) is None


def test_an_operator_without_a_kernel_is_named() -> None:
    """With its domain."""
    assert (
        problem_of(_first("graph(x: float[n]) -> (y: int64[1, k]) { y = NonZero(x) }")) == "no compiled kernel for ai.onnx.NonZero"
    )


def test_a_value_of_unknown_rank_is_named() -> None:
    """Kernels are made for types and ranks."""
    assert problem_of(_first("graph(x: float) -> (y: float) { y = Relu(x) }")) == "the type or rank of x is not known"


def test_an_operator_that_has_a_kernel_in_nhwc_only_waits_for_it() -> None:
    """It is claimed where it will be converted, and is not run as it is."""
    body = "graph(x: float[n, 4, 6, 6]) -> (y: float[n, 4, 5, 5]) { y = MaxPool(x) {kernel_shape = [2, 2]} }"
    node = _first(body)
    assert problem_of(node, layout_follows=True) is None
    assert problem_of(node) == "no compiled kernel for ai.onnx.MaxPool"


def test_constants_are_checked() -> None:
    """An axis that the input has not would be an address outside of it."""
    body = "graph(x: float[n, 4]) -> (y: float[n, 1]) {{ axes: int64[1] = [{}]\ny = ReduceSum(x, axes) }}"
    assert problem_of(_first(body.format(1))) is None
    assert problem_of(_first(body.format(7))) == "the axes are no constant, or not among those of the input"
