"""The table of places: where each begins, over the ends of rows and images."""

from collections.abc import Callable

import numpy as np
import pytest

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, I64
from sardonyx.codegen.emit.window import AXIS_WORDS, WindowAxis, axis_words, read_axes
from sardonyx.codegen.kernels.conv_rows import Rows, Steps, fill_table, result_of, row_table
from sardonyx.codegen.target import Target


@pytest.mark.parametrize("padded", [True, False])
def test_rows(target: Target, run: Callable[..., None], padded: bool) -> None:
    """Each place begins where counting says, and reads the elements of its taps, or zeros in the padding."""
    begin = 1 if padded else 0
    axes = [WindowAxis(3, 2 + 2 * begin, 1, 1, begin, 2, 8, 50), WindowAxis(8, 3 + begin, 2, 3, begin, 2, 1, 10)]
    x = np.arange(1, 1 + 2 * 24, dtype=np.float32)
    places, rows = axes[0].places * axes[1].places, 2 * axes[0].places * axes[1].places
    module = Module(target)
    with module.kernel("walk") as b:
        found, seen = b.buffer(0, I64), b.buffer(1, F32)
        values, source, zeros = read_axes(b, 0, 2), b.buffer(2, F32), b.buffer(3, F32)
        one = b.const(I64, 1)
        steps = Steps(one * 24, one * 0, one * 1000, one * 0, one * 7)
        table = row_table(b, 2)
        fill_table(b, table, steps, values, b.param(2 * AXIS_WORDS), b.param(2 * AXIS_WORDS + 1), one * 0)
        with b.loop(0, b.param(2 * AXIS_WORDS + 1) - b.param(2 * AXIS_WORDS)) as row:
            found.store(result_of(table, row), row)
            with b.loop(0, 4) as tap:
                address = Rows(b, table.at(row), 1, values, source, zeros if padded else None).at(tap, one * 0)[0]
                seen.store(address.load(0), row * 4 + tap)
    first = 2
    result, elements = np.zeros(rows - first, np.int64), np.zeros((rows - first, 4), np.float32)
    run(module, "walk", [result, elements, x, np.zeros(1, np.float32)], [*axis_words(axes), first, rows])
    images = np.pad(x.reshape(2, 3, 8), [(0, 0), (begin, begin), (begin, 3)])
    for number, row in enumerate(range(first, rows)):
        image, (i, j) = row // places, divmod(row % places, axes[1].places)
        assert result[number] == 7 + 1000 * image + 50 * i + 10 * j
        expected = [images[image, i + tap // 2, 2 * j + 3 * (tap % 2)] for tap in range(4)]
        assert elements[number].tolist() == expected
