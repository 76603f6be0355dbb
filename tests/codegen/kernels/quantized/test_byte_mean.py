"""Means of rows of bytes: exact sums, whatever their length."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.expr import argument
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, I8, U8, Type
from sardonyx.codegen.kernels.lines import Along, LineParams
from sardonyx.codegen.kernels.quantized.byte_mean import LONGEST_ROW, write_byte_mean
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """Sums less zero points, plus how many there are, of both types and widths."""
    module = Module(target)
    for kind in (U8, I8):
        for wide in (False, True):
            write_byte_mean(module, f"mean_{kind.kind.value}_{int(wide)}", kind, argument(0, F32) + argument(1, F32), wide=wide)
    engine = Engine(target)
    engine.add(module)
    return engine


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("kind", [U8, I8])
@pytest.mark.parametrize("length", [1, 15, 16, 17, 63, 64, 65, 997])
def test_sums_less_zero_points(engine: Engine, length: int, kind: Type, wide: bool) -> None:
    """Of extremes too."""
    low, high = (0, 255) if kind == U8 else (-128, 127)
    x = np.random.default_rng(length).integers(low, high + 1, (7, length)).astype(np.uint8 if kind == U8 else np.int8)
    x[0], x[1] = low, high
    y, params = np.zeros(7, np.float32), LineParams(7, 1, length, Along.ROWS)
    call(engine, f"mean_{kind.kind.value}_{int(wide)}", [x, y], [*params.words(), 11], 0, params.tasks())
    np.testing.assert_array_equal(y, x.sum(1, dtype=np.int64) - 11 * length + length)


def test_the_longest_row_fits_32_bits() -> None:
    """With all elements the greatest, or the least."""
    assert LONGEST_ROW * 255 < 1 << 31
    assert LONGEST_ROW * -128 >= -(1 << 31)
