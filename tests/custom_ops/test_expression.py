"""Operators written as expressions of one element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.custom_operators import mine_session

import sardonyx
from sardonyx import expr
from sardonyx.codegen.target import host_target
from sardonyx.errors import Fail, InvalidArgument, InvalidGraph
from sardonyx.ir import Graph
from sardonyx.provider import Body, Partition
from sardonyx.providers.cpu.program import CpuProgram
from sardonyx.providers.cpu.provider import NAME, CpuProvider
from sardonyx.session.providers import REFERENCE

X = np.linspace(-3, 3, 24, dtype=np.float32).reshape(2, 3, 4)


@sardonyx.expression_op("mine", "Gelu")
def gelu(x: expr.ElementExpr, *, half: float = 0.5) -> expr.ElementExpr:
    """Multiply x by the normal distribution's probability of less than x."""
    return half * x * (1 + expr.erf(x * math.sqrt(0.5)))


class _Watched(CpuProvider):
    """The provider, which also remembers the steps of what it compiles."""

    def __init__(self) -> None:
        super().__init__(host_target(None), 1)
        self.steps: list[str] = []

    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> CpuProgram:
        program = super().compile(partition, bodies)
        self.steps += [step.partition(":")[0] for step in program.steps]
        return program


def _exact(x: Any) -> Any:
    return np.vectorize(lambda item: 0.5 * item * (1 + math.erf(item / math.sqrt(2))))(x.astype(np.float64))


def test_an_expression_fuses_with_its_neighbours() -> None:
    """It is one step with the element-wise nodes before and after it."""
    watched = _Watched()
    graph = "(x: float[n, 3, 4]) -> (y: float[n, 3, 4]) {\na = Neg(x)\nb = mine.Gelu(a)\ny = Neg(b)\n}"
    session = mine_session(graph, gelu, providers=[watched])
    assert watched.steps == ["Neg+Gelu+Neg"]
    np.testing.assert_allclose(session.run(None, {"x": X})[0], -_exact(-X), rtol=1e-5, atol=1e-6)


def test_an_expression_is_computed_in_the_store_of_a_product() -> None:
    """As the built-in activations are."""
    watched = _Watched()
    graph = "(x: float[2, 3, 4]) -> (y: float[2, 3, 5]) {\nw: float[4, 5] = ... 1\na = MatMul(x, w)\ny = mine.Gelu(a)\n}"
    mine_session(graph, gelu, providers=[watched])
    assert watched.steps == ["MatMul+Gelu"]


@pytest.mark.parametrize("provider", [NAME, REFERENCE])
def test_providers_agree_on_an_expression(provider: str) -> None:
    """Compiled or by NumPy, with an attribute of the node."""
    graph = "(x: float[n, 3, 4]) -> (y: float[n, 3, 4]) {\ny = mine.Gelu(x) {half = 1.0}\n}"
    session = mine_session(graph, gelu, providers=[provider])
    assert [item.provider for item in session.explain()] == [provider]
    np.testing.assert_allclose(session.run(None, {"x": X})[0], 2 * _exact(X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("provider", [NAME, REFERENCE])
@pytest.mark.parametrize("kind", ["float16", "bfloat16", "double"])
def test_an_expression_computes_with_every_type_of_float(provider: str, kind: str) -> None:
    """Those of 16 bits in float32, rounded once."""
    graph = f"(x: float[2, 3, 4]) -> (y: float[2, 3, 4]) {{\na = Cast(x) {{to = {_NUMBERS[kind]}}}\nb = mine.Gelu(a)\ny = Cast(b) {{to = 1}}\n}}"
    made = mine_session(graph, gelu, providers=[provider]).run(None, {"x": X})[0]
    error = {"float16": 2e-3, "bfloat16": 2e-2, "double": 1e-6}[kind]
    np.testing.assert_allclose(made, _exact(X), rtol=error, atol=error)


_NUMBERS = {"float16": 10, "bfloat16": 16, "double": 11}


@pytest.mark.parametrize("provider", [NAME, REFERENCE])
def test_inputs_are_broadcast_and_a_comparison_gives_bools(provider: str) -> None:
    """The output's type is the expression's."""

    @sardonyx.expression_op("mine", "Above")
    def above(x: expr.ElementExpr, y: expr.ElementExpr) -> expr.ElementExpr:
        return x > y

    session = mine_session(
        "(x: float[2, 3], y: float[3]) -> (z: bool[2, 3]) {\nz = mine.Above(x, y)\n}", above, providers=[provider]
    )
    made = session.run(None, {"x": np.float32([[0, 1, 2], [3, 4, 5]]), "y": np.float32([1, 1, 4])})[0]
    assert made.tolist() == [[False, False, False], [True, True, True]]


@pytest.mark.parametrize("provider", [NAME, REFERENCE])
def test_an_input_may_be_left_out(provider: str) -> None:
    """It is None in the function."""

    @sardonyx.expression_op("mine", "Shift")
    def shift(x: expr.ElementExpr, bias: expr.ElementExpr | None = None) -> expr.ElementExpr:
        return x if bias is None else x + bias

    graph = "(x: float[2]) -> (y: float[2], z: float[2]) {\ny = mine.Shift(x)\nz = mine.Shift(x, x)\n}"
    assert [item.tolist() for item in mine_session(graph, shift, providers=[provider]).run(None, {"x": np.float32([1, 2])})] == [
        [1, 2],
        [2, 4],
    ]


def test_constants_in_are_folded() -> None:
    """Nothing is left to run of an expression of constants."""
    session = mine_session("(x: float[2]) -> (y: float[2]) {\nc: float[2] = [0.0, 0.0]\ng = mine.Gelu(c)\ny = Add(x, g)\n}", gelu)
    assert session.run(None, {"x": np.float32([1, 2])})[0].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("function", "kind", "message"),
    [
        (lambda x: 5, Fail, r"the expression of mine\.Gelu is 5; return one expression, such as"),
        (lambda x: x if x > 0 else -x, InvalidGraph, r"mine\.Gelu: an expression has no truth value.*where\("),
        (
            lambda x: expr.where(x == 0, 1, x),
            InvalidGraph,
            r"mine\.Gelu: where takes a condition such as x < 0 or x\.eq\(0\), got False",
        ),
        (lambda x: x + x.to(expr.I32), InvalidGraph, r"mine\.Gelu: add of .*convert with \.to\(\)"),
        (lambda x: {}[x], Fail, r"the expression of mine\.Gelu failed: KeyError"),
    ],
)
def test_what_is_no_expression_is_said_when_the_session_is_made(function: Any, kind: type[Exception], message: str) -> None:
    """With the operator's name and what to do."""
    wrong = sardonyx.expression_op("mine", "Gelu")(function)
    with pytest.raises(kind, match=message):
        mine_session("(x: float[2]) -> (y: float[2]) {\ny = mine.Gelu(x)\n}", wrong)


def test_elements_that_expressions_do_not_compute_with_are_refused() -> None:
    """Strings, for one."""
    with pytest.raises(InvalidGraph, match=r"mine\.Gelu: input 0 has elements of string"):
        mine_session("(x: string[2]) -> (y: string[2]) {\ny = mine.Gelu(x)\n}", gelu)


def test_an_expression_without_inputs_is_refused() -> None:
    """It would have no shape."""
    with pytest.raises(InvalidArgument, match=r"mine\.Gelu has no inputs"):
        sardonyx.expression_op("mine", "Gelu")(lambda: None)  # type: ignore[arg-type, return-value]


@sardonyx.expression_op("mine", "Softmax")
def softmax(x: expr.ElementExpr) -> expr.ElementExpr:
    """Normalize exponentials along the last axis."""
    e = expr.exp(x - expr.row_max(x))
    return e / expr.row_sum(e)


@pytest.mark.parametrize("provider", [NAME, REFERENCE])
@pytest.mark.parametrize("kind", ["float", "float16", "double"])
def test_an_expression_may_fold_rows(provider: str, kind: str) -> None:
    """A softmax of one's own, compiled or by NumPy, in every type of float."""
    number = _NUMBERS.get(kind, 1)
    graph = f"(x: float[2, 3, n]) -> (y: float[2, 3, n]) {{\na = Cast(x) {{to = {number}}}\nb = mine.Softmax(a)\ny = Cast(b) {{to = 1}}\n}}"
    made = mine_session(graph, softmax, providers=[provider]).run(None, {"x": X})[0]
    e = np.exp(X.astype(np.float64) - X.max(-1, keepdims=True))
    tolerance = 2e-3 if kind == "float16" else 1e-5
    np.testing.assert_allclose(made, e / e.sum(-1, keepdims=True), rtol=tolerance, atol=tolerance)


def test_folded_rows_fuse_with_what_follows() -> None:
    """One step: the folds, and the element-wise nodes after them."""
    watched = _Watched()
    graph = "(x: float[n, 3, 4], s: float[4]) -> (y: float[n, 3, 4]) {\na = mine.Softmax(x)\nb = Mul(a, s)\ny = Neg(b)\n}"
    mine_session(graph, softmax, providers=[watched])
    assert watched.steps == ["Softmax+Mul+Neg"]


@pytest.mark.parametrize("provider", [NAME, REFERENCE])
def test_an_input_is_broadcast_before_its_rows_are_folded(provider: str) -> None:
    """The sum of one number along a row of four is four times it."""

    @sardonyx.expression_op("mine", "Add4")
    def add(x: expr.ElementExpr, one: expr.ElementExpr) -> expr.ElementExpr:
        return x + expr.row_sum(one)

    graph = "(x: float[2, 4], c: float[2, 1]) -> (y: float[2, 4]) {\ny = mine.Add4(x, c)\n}"
    feed = {"x": np.zeros((2, 4), np.float32), "c": np.float32([[1], [2]])}
    assert mine_session(graph, add, providers=[provider]).run(None, feed)[0].tolist() == [[4] * 4, [8] * 4]


def test_a_scalar_has_no_row() -> None:
    """The message says what to feed."""
    with pytest.raises(InvalidGraph, match=r"mine\.Softmax folds rows, but its inputs are scalars"):
        mine_session("(x: float[]) -> (y: float[]) {\ny = mine.Softmax(x)\n}", softmax)


@pytest.mark.parametrize(
    ("function", "kind", "message"),
    [
        (lambda x: x * 2.5, "int32", "2.5 is no number of type int32, which the expression beside it has; convert that first"),
        (lambda x: x + 300, "uint8", "300 is no number of type uint8"),
        (lambda x: x - np.ones(3, np.float32), "float", r"an array of shape \[3\] stands in it; an expression takes numbers"),
    ],
)
def test_a_number_that_the_type_beside_it_lacks_is_refused(function: Any, kind: str, message: str) -> None:
    """It would be computed with as another number."""
    operator = sardonyx.expression_op("mine", "E")(function)
    with pytest.raises(InvalidGraph, match=message):
        mine_session(f"(x: {kind}[n, 3]) -> (y) {{\ny = mine.E(x)\n}}", operator)


def test_numbers_of_numpy_are_numbers() -> None:
    """Before and behind an expression; a whole float is an integer beside one."""
    operator = sardonyx.expression_op("mine", "E")(lambda x: np.float32(2.0) * x + np.int64(1) - np.array(3.0))
    given = np.int32([[1, 2]])
    for kind in (np.int32, np.float32):
        session = mine_session(f"(x: {'int32' if kind is np.int32 else 'float'}[n, 2]) -> (y) {{\ny = mine.E(x)\n}}", operator)
        assert session.run(None, {"x": given.astype(kind)})[0].tolist() == [[0, 2]]


@pytest.mark.parametrize(
    "function", [lambda x: np.exp(x), lambda x: math.exp(x), lambda x: x % 2, lambda x: x.sum(), lambda x: expr.relu(x)]
)
def test_what_elements_are_computed_with_is_listed_where_something_else_was_tried(function: Any) -> None:
    """NumPy's and Python's functions, other operators, and names that do not exist."""
    operator = sardonyx.expression_op("mine", "E")(function)
    with pytest.raises((Fail, InvalidGraph), match=r"the functions of sardonyx\.expr: absolute, .* where"):
        mine_session("(x: float[n]) -> (y) {\ny = mine.E(x)\n}", operator)
