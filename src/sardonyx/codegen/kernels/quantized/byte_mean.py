"""The means of rows of integers of 8 bits, as such integers: QLinearGlobalAveragePool with the channels first.

y[r] = after(sum(x[r, :]) - zero n, n)        sums of integers, which are exact
"""

from __future__ import annotations

from sardonyx.codegen.emit.expr import ElementExpr
from sardonyx.codegen.emit.expr_llvm import write_expressions
from sardonyx.codegen.emit.folds import SUM
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, I32, I64, Type
from sardonyx.codegen.kernels.lines import FIRST_FREE, Along, strips

__all__ = ["LONGEST_ROW", "write_byte_mean"]

LONGEST_ROW = (1 << 31) // 256
"""The most elements whose sum 32 bits hold."""


def write_byte_mean(module: Module, symbol: str, kind: Type, after: ElementExpr, *, wide: bool) -> None:
    """Write the kernel `symbol`: buffers X and Y; parameters as `lines` says for rows, then the zero point of x.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        kind: the type of the elements.
        after: what is stored, of argument 0, the sum less zero points, and argument 1, how many there are, both float32.
        wide: whether sums have 64 bits.
    """
    total_type = I64 if wide else I32
    with module.kernel(symbol) as b:
        x, y, zero = b.buffer(0, kind), b.buffer(1, after.type), b.param(FIRST_FREE)
        for strip in strips(b, Along.ROWS, total_type):
            sums = strip.fold(SUM, lambda place: x.load(place.offset, place.span).to(total_type), total_type)
            less, together = (zero * strip.count).to(I64), b.const(I64.vector(len(sums)), 0)
            for row, total in enumerate(sums):
                together = total.to(I64) if len(sums) == 1 else together.with_lane(row, total.to(I64))
            totals, count = (together - less.splat(len(sums))).to(F32), strip.count.to(F32).splat(len(sums))
            means = write_expressions(b, [after], [totals, count])[0]
            strip.put(y, [means.lane(row) if len(sums) > 1 else means for row in range(len(sums))])
