"""How the result of a product is cut into tasks: pieces of rows times pieces of columns, of whole tiles.

    rows = 23, unit = 6, 3 pieces:    [0, 12)  [12, 18)  [18, 23)

Pieces are as equal as whole tiles allow, the larger ones among the first, and their number is a multiple of that of the threads
wherever there are as many tiles: no thread waits long for the last task of a step.
"""

from __future__ import annotations

from sardonyx.codegen.emit.module import Kernel
from sardonyx.codegen.emit.values import Register
from sardonyx.codegen.kernels.tiles import Range
from sardonyx.codegen.target import Target

__all__ = ["TASKS_PER_THREAD", "cut_for", "piece"]

TASKS_PER_THREAD = 4
"""How finely a product is cut, so that no thread waits long for the last."""
_FEWEST_TASKS_PER_THREAD = 2
"""The same where finer cuts would read panels again that do not stay in the cache."""


def cut_for(
    target: Target,
    rows: tuple[int, int],
    panels: int,
    panels_bytes: int,
    threads: int,
    *,
    groups: int = 1,
    may_add_rows: bool = True,
) -> tuple[int, int]:
    """Return how many pieces of rows and how many of columns are shared by `threads`.

    Each piece of rows goes through panels: all of them, where these stay in the second-level cache; where they do not, tasks share
    them instead, so that few tasks read the same one.

    Args:
        target: the machine.
        rows: the fewest and the most pieces of rows.
        panels: how many panels of columns there are.
        panels_bytes: the size of all of them.
        threads: how many threads there are.
        groups: how many times there are these rows and columns.
        may_add_rows: whether more pieces of rows than the fewest cost little.
    """
    pieces, most = rows[0], max(rows[1], 1)
    if threads == 1:
        return min(pieces, most), 1
    wanted, columns = -(-TASKS_PER_THREAD * threads // groups), 1
    if may_add_rows and target.keeps(panels_bytes):
        pieces = _multiple(max(wanted, pieces), groups, threads)
    else:
        columns = max(min(panels, -(-wanted // pieces)), 1)
        if may_add_rows:
            fewest = -(-_FEWEST_TASKS_PER_THREAD * threads // (columns * groups))
            pieces = _multiple(max(fewest, pieces), columns * groups, threads)
    pieces = min(pieces, most)
    columns = max(columns, -(-wanted // pieces))
    return pieces, max(min(panels, _multiple(columns, pieces * groups, threads)), 1)


def _multiple(pieces: int, others: int, threads: int) -> int:
    """Return the least number from `pieces` on of which `others` times is a multiple of `threads`."""
    for unit in range(1, threads):
        if threads % unit == 0 and others % (threads // unit) == 0:
            return -(-pieces // unit) * unit
    return -(-pieces // threads) * threads


def piece(b: Kernel, number: Register, pieces: Register, size: Register, unit: int | Register) -> Range:
    """Return where piece `number` of the rows or columns begins and ends; it begins at a multiple of `unit`."""
    units, rounding = (size + (unit - 1)) // unit, pieces - 1
    first, following = ((index * units + rounding) // pieces * unit for index in (number, number + 1))
    return first, b.min(following, size)
