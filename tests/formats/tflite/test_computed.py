"""Operators whose axes, orders or amounts the run shows, against NumPy and the same operators with constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from formats.tflite.running import run
from support.flat_models import KINDS, Sketch

from sardonyx.dtypes import Array
from sardonyx.errors import SardonyxError

Options = tuple[str, Mapping[str, Any]] | None
X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)


def _results(
    code: str,
    inputs: Sequence[Array],
    output: tuple[int, ...],
    options: Options = None,
    *,
    computed: Sequence[int] = (),
    is_open: bool = False,
    outputs: int = 1,
    kind: str = "FLOAT32",
    source: int = 0,
) -> list[Array]:
    """Return the results of an operator, some of whose operands are fed and not constants; with `is_open` no size is known."""
    sketch, indices, feeds = Sketch(), [], []
    for index, array in enumerate(inputs):
        if index == source or index in computed:
            signature = [-1] * array.ndim if is_open and index == source else None
            indices.append(sketch.input(array.shape, KINDS[array.dtype.name], shape_signature=signature))
            feeds.append(array)
        else:
            indices.append(sketch.constant(array))
    made = [sketch.tensor(output, kind, shape_signature=[-1] * len(output)) for _ in range(outputs)]
    sketch.operator(code, indices, made, options)
    return run(sketch.model(made), *feeds)


def _ints(*numbers: int) -> Array:
    return np.array(numbers, np.int32)


@pytest.mark.parametrize("shape", [(2, 3, 4), (5,), (2, 0, 3), (2, 3, 1, 4)])
def test_an_order(shape: tuple[int, ...]) -> None:
    """Of any rank, counted from either end; one that is none is an error of the run."""
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    order = np.roll(np.arange(len(shape), dtype=np.int32), 1)
    for given in (order, order[::-1].copy(), order - len(shape)):
        found = _results("TRANSPOSE", [x, given], shape, computed=[1])[0]
        assert found.tolist() == x.transpose(given.tolist()).tolist()
    with pytest.raises(SardonyxError):
        _results("TRANSPOSE", [x, order + 9], shape, computed=[1])


@pytest.mark.parametrize("axis", [-3, -1, 0, 1, 2])
@pytest.mark.parametrize("code", ["ARG_MAX", "ARG_MIN"])
def test_an_axis_of_extremes(code: str, axis: int) -> None:
    """Of which the first one counts."""
    x = np.random.default_rng(0).integers(0, 4, (3, 4, 5)).astype(np.float32)
    expected = (np.argmax if code == "ARG_MAX" else np.argmin)(x, axis=axis)
    options = (f"Arg{code[4:].capitalize()}Options", {"output_type": "INT32"})
    found = _results(code, [x, _ints(axis)], expected.shape, options, computed=[1], kind="INT32")[0]
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("axis", [-3, -2, -1, 0, 1, 2])
def test_an_axis_that_is_cut(axis: int) -> None:
    """Into equal parts, and into those of lengths that are constants or computed too."""
    x = np.arange(4 * 6 * 2, dtype=np.float32).reshape(4, 6, 2)
    found = _results(
        "SPLIT", [np.array(axis, np.int32), x], x.shape, ("SplitOptions", {"num_splits": 2}), computed=[0], outputs=2, source=1
    )
    assert [part.tolist() for part in found] == [part.tolist() for part in np.split(x, 2, axis)]
    for computed in ([2], [1, 2]):
        inputs = [x, _ints(1, -1), np.array(axis, np.int32)]
        found = _results("SPLIT_V", inputs, x.shape, ("SplitVOptions", {"num_splits": 2}), computed=computed, outputs=2)
        assert [part.tolist() for part in found] == [part.tolist() for part in np.split(x, [1], axis)]


@pytest.mark.parametrize("lengths", [[1, 3, 1], [2, -1, 2], [-1, 0, 0]])
@pytest.mark.parametrize(("computed", "is_open"), [((), False), ((1,), False), ((), True), ((1,), True)])
def test_lengths_of_parts(lengths: list[int], computed: tuple[int, ...], is_open: bool) -> None:
    """Of which one may be the rest, of a size that the file says or leaves open."""
    inputs, options = [X, _ints(*lengths), np.array(-1, np.int32)], ("SplitVOptions", {"num_splits": 3})
    found = _results("SPLIT_V", inputs, (3, 4, 1), options, computed=computed, is_open=is_open, outputs=3)
    ends = np.cumsum([5 - sum(lengths) - 1 if length == -1 else length for length in lengths])[:-1]
    assert [part.tolist() for part in found] == [part.tolist() for part in np.split(X, ends, axis=2)]


@pytest.mark.parametrize("axes", [[0], [-1, 0], [2, 1, 0]])
@pytest.mark.parametrize("computed", [(), (1,)])
def test_axes_that_are_reversed(axes: list[int], computed: tuple[int, ...]) -> None:
    """Any of them."""
    assert _results("REVERSE_V2", [X, _ints(*axes)], X.shape, computed=computed)[0].tolist() == np.flip(X, axes).tolist()


@pytest.mark.parametrize("pads", [[[0, 0], [0, 0], [0, 0]], [[1, 2], [0, 3], [5, 0]], [[3, 3], [4, 4], [5, 5]]])
@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC"])
def test_a_mirror_image(mode: str, pads: list[list[int]]) -> None:
    """With borders as long as an axis; without them one shorter."""
    given = np.minimum(np.array(pads, np.int32), np.array(X.shape)[:, None] - (mode == "REFLECT")).astype(np.int32)
    expected = np.pad(X, given, mode=mode.lower())  # type: ignore[call-overload]
    found = _results("MIRROR_PAD", [X, given], expected.shape, ("MirrorPadOptions", {"mode": mode}), computed=[1])[0]
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("steps", [[1, 1, 1], [2, 1, 3], [3, 4, 1]])
@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 2, 1), (2, 0, 3)])
@pytest.mark.parametrize(("computed", "is_open"), [((1,), False), ((), True)])
def test_elements_apart(shape: tuple[int, ...], steps: list[int], computed: tuple[int, ...], is_open: bool) -> None:
    """With a number between them, which is not put behind the last one."""
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    expected = np.full([(size - 1) * step + 1 if size else 0 for size, step in zip(shape, steps, strict=True)], 7, np.float32)
    expected[tuple(slice(None, None, step) for step in steps)] = x
    inputs = [x, _ints(*steps), np.float32(7)]
    found = _results("DILATE", inputs, expected.shape, ("DilateOptions", {}), computed=computed, is_open=is_open)[0]
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("shape", "blocks", "borders"),
    [((2, 4, 6, 3), [2, 3], [[0, 0], [0, 0]]), ((1, 3, 5, 1), [2, 2], [[1, 0], [0, 1]]), ((2, 5), [3], [[0, 1]])],
)
@pytest.mark.parametrize(("computed", "is_open"), [((1,), False), ((2,), False), ((1, 2), True), ((), True)])
def test_blocks(
    shape: tuple[int, ...], blocks: list[int], borders: list[list[int]], computed: tuple[int, ...], is_open: bool
) -> None:
    """They are moved into the batch as those of constants are, and back again."""
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    rest = [_ints(*blocks), np.array(borders, np.int32)]
    expected = _results("SPACE_TO_BATCH_ND", [x, *rest], shape)[0]
    found = _results("SPACE_TO_BATCH_ND", [x, *rest], shape, computed=computed, is_open=is_open)[0]
    assert found.tolist() == expected.tolist()
    back = _results("BATCH_TO_SPACE_ND", [found, *rest], shape, computed=computed, is_open=is_open)[0]
    assert back.tolist() == x.tolist()


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.int64, np.int8, np.bool_])
@pytest.mark.parametrize("start", [[0, 0], [2, 1], [-3, 9]])
def test_a_part_that_is_replaced(start: list[int], kind: type) -> None:
    """In a tensor of open sizes, from a place on that is moved such that all of it is within."""
    whole, part = np.zeros((4, 5), kind), np.ones((2, 3), kind)
    row, column = (int(place) for place in np.clip(start, 0, [2, 2]))
    expected = whole.copy()
    expected[row : row + 2, column : column + 3] = part
    inputs, name = [whole, part, _ints(*start)], KINDS[np.dtype(kind).name]
    found = _results("DYNAMIC_UPDATE_SLICE", inputs, (4, 5), computed=[1, 2], is_open=True, kind=name)[0]
    assert found.tolist() == expected.tolist()
    with pytest.raises(SardonyxError):
        _results("DYNAMIC_UPDATE_SLICE", [part, whole, _ints(*start)], (2, 3), computed=[1, 2], is_open=True, kind=name)
