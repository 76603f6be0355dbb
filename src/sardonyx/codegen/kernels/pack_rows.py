"""Pack chosen rows of a matrix as the columns of panels, [panels][K][width]: panel[k][j] = rows[places[j]][k].

One task is one panel. A place below 0 gives zeros.
"""

from __future__ import annotations

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, I64, Type

__all__ = ["write_pack_rows"]

ROWS, PLACES, PANELS = range(3)
"""The buffers of the kernel; places are int64."""


def write_pack_rows(module: Module, symbol: str, width: int, kind: Type = F32) -> None:
    """Write the kernel `symbol` of elements of `kind`; its parameter: K, the elements of a row.

    `width` is a multiple of the vector's lanes.
    """
    lanes = module.target.lanes(kind.bits)
    with module.kernel(symbol) as b:
        K, rows = b.param(0), b.buffer(ROWS, kind)
        with b.loop(b.begin, b.end) as task, b.loop(0, width, lanes) as column:
            places = b.buffer(PLACES, I64).load(task * width + column, lanes)
            there = places >= 0
            panel = b.buffer(PANELS, kind).at(task * (K * width) + column)
            with b.loop(0, K) as k:
                panel.store(rows.gather(places * K + k, there), k * width, lanes)
