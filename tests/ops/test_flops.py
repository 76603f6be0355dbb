"""Operations of nodes."""

import pytest
from support.models import graph

from sardonyx.ir import Dim
from sardonyx.ir.shape import symbol
from sardonyx.ops.flops import flops_of


def _flops(text: str) -> Dim | None:
    return flops_of(list(graph(text))[-1])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(x: float[2, 3, 8, 8], w: float[5, 3, 3, 3]) -> (y: float[2, 5, 6, 6]) {\ny = Conv(x, w)\n}", 2 * 360 * 27),
        (
            "(x: float[1, 4, 8, 8], w: float[4, 1, 3, 3]) -> (y: float[1, 4, 6, 6]) {\ny = Conv(x, w) {group=4}\n}",
            2 * 144 * 9,
        ),
        ("(x: float[1, 4, 8, 8], w: float[4, 5, 2, 2]) -> (y: float[1, 5, 9, 9]) {\ny = ConvTranspose(x, w)\n}", 2 * 256 * 20),
        ("(x: float[7, 2, 3], w: float[3, 5]) -> (y: float[7, 2, 5]) {\ny = MatMul(x, w)\n}", 2 * 70 * 3),
        ("(x: float[3, 2], w: float[3, 5]) -> (y: float[2, 5]) {\ny = Gemm(x, w) {transA=1}\n}", 2 * 10 * 3),
        ("(x: float[4, 5]) -> (y: float[4, 5]) {\ny = Exp(x)\n}", 20),
        ("(x: float[4, 5]) -> (y: float[4]) {\ny = ReduceMax(x) {keepdims=0}\n}", 20),
        ("(x: float[4, 5]) -> (y: float[5, 4]) {\ny = Transpose(x)\n}", 0),
        ("(x: float[1, 2, 8, 8]) -> (y: float[1, 2, 7, 7]) {\ny = MaxPool(x) {kernel_shape=[2, 2]}\n}", 98 * 4),
        (
            "(q: float[1, 2, 6, 4], k: float[1, 2, 9, 4], v: float[1, 2, 9, 4]) -> (y: float[1, 2, 6, 4]) {\ny = Attention(q, k, v)\n}",
            4 * 48 * 9,
        ),
        (
            "(x: float[6, 2, 3], w: float[1, 20, 3], r: float[1, 20, 5]) -> (y: float[6, 1, 2, 5]) {\n"
            "y = LSTM(x, w, r) {hidden_size=5}\n}",
            2 * 6 * 2 * 20 * 8,
        ),
    ],
)
def test_operations_are_counted_by_shapes(text: str, expected: int) -> None:
    """A multiplication and an addition are two."""
    assert _flops(text) == expected


def test_symbols_stay() -> None:
    """The count is an expression in them."""
    assert _flops("(x: float[n, 3], w: float[3, 5]) -> (y: float[n, 5]) {\ny = MatMul(x, w)\n}") == 30 * symbol("n")


def test_an_operator_without_a_count_has_none() -> None:
    """What it does depends on its values."""
    assert _flops("(x: float[4]) -> (v: float[2], i: int64[2]) {\nk: int64[1] = [2]\nv, i = TopK(x, k)\n}") is None


def test_unknown_shapes_give_no_count() -> None:
    """Not a wrong one."""
    assert _flops("(x: float, w: float[3, 5]) -> (y: float) {\ny = MatMul(x, w)\n}") is None
