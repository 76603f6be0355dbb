"""What a tile of a convolution of 8-bit integers stores; whole convolutions are in test_dot_conv.py."""

from __future__ import annotations

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I32, I64
from sardonyx.codegen.kernels.conv_rows import BLOCK_ROWS, MOST_ROWS, row_table
from sardonyx.codegen.kernels.dot_conv import dot_tiling
from sardonyx.codegen.kernels.quantized.dot_tile import DotTile
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target


@pytest.mark.parametrize("columns", [1, 3])
def test_only_columns_that_are_there_are_stored(target: Target, columns: int) -> None:
    """A tile begins with the sums that it is given, and stores those of its columns at the places of its rows."""
    shape, module, engine = dot_tiling(target), Module(target), Engine(target)
    with module.kernel("tile") as b:
        table = row_table(b, 1)
        begins = [b.const(I32.vector(shape.lanes), number) for number in (4, 9)]
        zero = b.const(I64, 0)
        for row in range(2):
            table.store(5 * row, BLOCK_ROWS + MOST_ROWS + row)
        DotTile(b, shape, table, 1, 2, zero, zero, b.param(0), begins).finish(I32, None)
    engine.add(module)
    result = np.zeros(10, np.int32)
    call(engine, "tile", [result, result, result], [columns])
    assert result.tolist() == [*[4] * columns, *[0] * (5 - columns), *[9] * columns, *[0] * (5 - columns)]
