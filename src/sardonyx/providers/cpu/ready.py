"""A binding that is kept with its program: a session of a later process runs with it before any step is made again.

    plan_ready(planner, symbols, …) ─► plain data        read_ready(plain, …) ─► ReadyBinding ─► bind ─► Bound

It is for the sizes that are most likely: those of the model where all are fixed, else 1 for each that is open. The table of its
steps is kept as the driver reads it, but for addresses: those of kernels and of constants are put in where it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from sardonyx.codegen.run.driver import Driver
from sardonyx.codegen.run.step_table import KeptTable, StepTable
from sardonyx.dtypes import Array, DataType
from sardonyx.errors import SardonyxError
from sardonyx.formats.plain_graph import Plain
from sardonyx.provider import Bound, TensorSpec
from sardonyx.providers.cpu.addresses import address_of
from sardonyx.providers.cpu.planner import ABSOLUTE, Planner
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.tables import Tables

__all__ = ["ReadyBinding", "plan_ready", "read_ready"]

_DTYPES = {int(dtype): dtype for dtype in DataType}


class ReadyBinding:
    """A binding for some sizes, of which any number may be made."""

    def __init__(
        self,
        symbols: Mapping[str, int],
        table: StepTable,
        specs: tuple[TensorSpec, ...],
        arena_bytes: int,
        *,
        has_long_task: bool,
    ) -> None:
        """Keep what a binding is made of.

        Args:
            symbols: the sizes.
            table: the steps, which are copied.
            specs: what outputs are.
            arena_bytes: how much memory a run needs.
            has_long_task: as of `Tables`.
        """
        self._has_long_task = has_long_task
        self._symbols, self._table, self._specs, self._arena_bytes = symbols, table, specs, arena_bytes

    def fits(self, sizes: Sizes) -> bool:
        """Return whether it is for these sizes."""
        return sizes.symbols == self._symbols

    def bind(self, sizes: Sizes, runner: Driver) -> Bound:
        """Return a binding, from which none for other sizes is computed."""
        tables = Tables(self._table.copy(), runner, [], sizes, {}, has_long_task=self._has_long_task)
        return Bound(self._specs, self._arena_bytes, tables)


def plan_ready(planner: Planner, symbols: Mapping[str, int], number_of: Callable[[Array], int]) -> Plain:
    """Return a binding as plain data; None where there is none for such sizes, or only the run shows the size of a result.

    None also where kernels draw random numbers from the source of the process.

    Args:
        planner: of the program.
        symbols: the sizes.
        number_of: gives a constant its number.
    """
    sizes = Sizes(dict(symbols))
    try:
        plan = planner.plan(sizes)
        specs = planner.specs(sizes)
    except (SardonyxError, ArithmeticError, LookupError):  # no step can work with such sizes
        return None
    if plan.broken or None in specs:
        return None
    steps, places = planner.storage.steps, []
    names = {name: number for number, name in enumerate(dict.fromkeys(step.symbol for step in steps))}
    pointers = [
        (own, found)
        for step, call in zip(steps, plan.calls, strict=True)
        for own, found in zip(step.buffers, call.buffers, strict=True)
    ]
    for pointer, (buffer, found) in enumerate(pointers):
        constant = buffer.root.constant
        if found.base != ABSOLUTE:
            continue
        if constant is None:  # the source of random numbers is this process's own
            return None
        places.append((pointer, number_of(constant), found.offset_bytes - address_of(constant)))
    kept = planner.table_of(plan.calls).kept()
    has_long_task = planner.has_long_task(sizes, [call.tasks for call in plan.calls])
    return (
        tuple(symbols.items()),
        (kept.words.tobytes(), kept.first_step, kept.end, kept.bases),
        (tuple(names), _packed([names[step.symbol] for step in steps])),
        _packed([number for place in places for number in place]),
        tuple((int(spec.dtype), spec.shape) for spec in specs if spec is not None),
        plan.arena_bytes,
        has_long_task,
    )


def read_ready(plain: Plain, kernels: Mapping[str, int], arrays: Sequence[Array], threads: int, *, flush: bool) -> ReadyBinding:
    """Return the binding that `plan_ready` returned.

    Args:
        plain: what that was.
        kernels: the address of each kernel.
        arrays: the constants, by number.
        threads: how many threads a run may use.
        flush: whether runs compute with zeros for denormal numbers.
    """
    symbols, (words, first_step, end, bases), (names, steps), places, specs, arena_bytes, has_long_task = plain
    kept = KeptTable(np.frombuffer(words, np.int64), first_step, end, bases)
    pointers, numbers, offsets = np.frombuffer(places, np.int64).reshape(-1, 3).T
    begins = np.array([address_of(array) for array in arrays], np.int64)
    addresses = np.array([kernels[name] for name in names], np.int64)
    table = StepTable.of_kept(
        kept, addresses[np.frombuffer(steps, np.int64)], pointers, begins[numbers] + offsets, threads=threads, flush=flush
    )
    made = tuple([TensorSpec(_DTYPES[dtype], shape) for dtype, shape in specs])
    return ReadyBinding(dict(symbols), table, made, arena_bytes, has_long_task=has_long_task)


def _packed(numbers: Sequence[int]) -> bytes:
    return np.array(numbers, np.int64).tobytes()
