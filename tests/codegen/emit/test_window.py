"""Which taps of a window meet the input."""

from collections.abc import Callable

import numpy as np
import pytest

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I64
from sardonyx.codegen.emit.window import AXIS_WORDS, WindowAxis, axis_words, read_axes, taps_inside
from sardonyx.codegen.target import Target


@pytest.mark.parametrize("dilated", [True, False])
@pytest.mark.parametrize(
    ("size", "stride", "dilation", "begin", "taps"), [(7, 2, 3, 4, 3), (3, 1, 2, 9, 4), (5, 4, 1, -2, 2), (1, 1, 1, 0, 1)]
)
def test_taps_inside(
    target: Target, run: Callable[..., None], size: int, stride: int, dilation: int, begin: int, taps: int, dilated: bool
) -> None:
    """Counted one by one; where none meets the input the range is empty."""
    dilation = dilation if dilated else 1
    places = 12
    module = Module(target)
    with module.kernel("find") as b:
        axis = read_axes(b, 0, 1)[0]
        found = b.buffer(0, I64)
        with b.loop(b.begin, b.end) as place:
            for number, value in enumerate(taps_inside(b, place, axis, dilated=dilated)):
                found.store(value, place * 3 + number)
    result = np.zeros((places, 3), np.int64)
    run(module, "find", [result], axis_words([WindowAxis(size, places, stride, dilation, begin, taps, 1, 1)]), 0, places)
    for place, (first, last, start) in enumerate(result.tolist()):
        meets = [tap for tap in range(taps) if 0 <= place * stride + tap * dilation - begin < size]
        assert list(range(first, last)) == meets
        assert not meets or start == place * stride + meets[0] * dilation - begin


def test_words() -> None:
    """An axis is as many parameters as it has fields."""
    assert axis_words([WindowAxis(1, 2, 3, 4, 5, 6, 7, 8)] * 2) == [1, 2, 3, 4, 5, 6, 7, 8] * 2
    assert AXIS_WORDS == 8
