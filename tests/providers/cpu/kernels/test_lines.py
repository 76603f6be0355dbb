"""Tensors as lines: what is walked how, and what can be computed where lines are written."""

import pytest

from sardonyx.codegen.kernels.lines import Along
from sardonyx.dtypes import DataType
from sardonyx.ir import Shape, symbol
from sardonyx.providers.cpu.kernels.lines import Lines, is_uniform
from sardonyx.providers.cpu.sizes import Sizes

_N, _S = symbol("n"), symbol("s")


@pytest.mark.parametrize(
    ("operand", "split", "expected"),
    [
        ((2, 3, 4), 2, True),
        ((4,), 2, True),
        ((1, 3, 1), 2, True),
        ((), 2, True),
        ((3, 4), 1, True),
        ((1,), 0, True),
        ((2, 3, 4), 0, True),
        ((4,), 1, False),
        ((3, 1), 1, False),
        ((5,), 2, False),
        ((1, 2, 3, 4), 2, False),
    ],
)
def test_uniform_operands(operand: Shape, split: int, expected: bool) -> None:
    """Beside (2, 3, 4): those that go along with all axes of a line, or with none."""
    assert is_uniform((2, 3, 4), operand, split) is expected


def test_unknown_broadcasting_is_not_uniform() -> None:
    """A size that may be 1 or not is neither."""
    assert is_uniform((_N, _S), (_N, _S), 1)
    assert is_uniform((_N, _S), (_S,), 1)
    assert not is_uniform((_N, _S), (_N, symbol("t")), 1)
    assert not is_uniform((_N, 4), (_S, 4), 1)


def test_walk_of_an_attention_mask() -> None:
    """Beside scores (N, 12, S, S), a mask (N, 1, 1, S) moves along the batch and along lines; heads and rows are one dimension."""
    lines = Lines((_N, 12, _S, _S), 3, 3, Along.ROWS, [(DataType.FLOAT, (_N, 1, 1, _S))])
    sizes = Sizes({"n": 2, "s": 5})
    assert lines.walk(sizes) == [2, 5, 60, 0]
    assert [(extra.ordered, extra.moves) for extra in lines.code.extra_operands] == [(True, (True, False))]
    assert lines.params(sizes).words()[:3] == [120, 1, 5]


def test_walk_of_whole_tensors_is_one_dimension() -> None:
    """What is walked alike everywhere is merged."""
    lines = Lines((2, 3, 4), 1, 2, Along.COLUMNS, [(DataType.FLOAT, (2, 3, 4)), (DataType.BOOL, (2, 3, 1))])
    assert lines.walk(Sizes({})) == [6, 4, 1]
    assert [extra.ordered for extra in lines.code.extra_operands] == [True, False]


def test_walk_of_what_stands_still_is_empty() -> None:
    """A scale along the line is the same for every line: no division is left."""
    lines = Lines((7, 8, 9), 2, 2, Along.ROWS, [(DataType.FLOAT, (9,))])
    assert lines.walk(Sizes({})) == []
    assert lines.code.extra_operands[0].moves == ()


def test_names_tell_walks_apart() -> None:
    """Kernels whose code differs have different names."""
    shapes: list[Shape] = [(2, 3, 4), (4,), (2, 1, 1), (1, 3, 4), (1, 1, 1)]
    names = {Lines((2, 3, 4), 2, 2, Along.ROWS, [(DataType.FLOAT, shape)]).code.name for shape in shapes}
    assert len(names) == len(shapes)
