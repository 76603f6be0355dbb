"""Recurrent cells over time in fp32: in each step one product with resident weights, with the cell's equations in its store.

What needs no state was multiplied before, for all steps at once (`projected`). The columns of both products are arranged so that
what belongs to one unit of the state lies together: a panel row holds, for some vectors of units, one vector of each gate:

        projected, one row per step and sequence          panel of R: H x (units x gates) vectors
        ┌── unit vector 0 ──┬── unit vector 1 ──┬─ ·       ┌────┬────┬────┬────┬────┬────┬────┬────┐
        │ i  │ o  │ f  │ c  │ i  │ o  │ f  │ c  │          │ i0 │ o0 │ f0 │ c0 │ i1 │ o1 │ f1 │ c1 │   a row per state element
        └────┴────┴────┴────┴────┴────┴────┴────┴─ ·       └────┴────┴────┴────┴────┴────┴────┴────┘

so the sums of a tile are all that the next state of its units needs, besides what the state was there. A cell is made of phases:
products one after another in a step, of which each stores expressions of its sums.

The state of a row of the batch is some planes of H elements, padded to whole panels: the hidden state twice (step s reads plane
s & 1 and writes the other, since every unit reads all of it), and what else the cell keeps. Sequences may end before the last step:
behind their end the state stays and Y is zero. A direction that runs backward begins with the last step, in which a shorter
sequence keeps its initial state.

Ticks are the phases of the steps in order, after one that reads the initial states and before one that writes the last ones. A task
is some ticks of some units of work (direction x rows of the batch x panels), in rounds: tasks of a round may run at a time, and end
before the next round begins. Where all panels are in one unit of work, nothing needs another one's results.

Sums are chains as in `gemm`: the bits of a row do not depend on the batch, on the tile or on the number of threads.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from sardonyx.codegen.emit.builder import Function, Variable
from sardonyx.codegen.emit.expr_llvm import write_expressions
from sardonyx.codegen.emit.module import Address, Kernel, Module
from sardonyx.codegen.emit.types import I32, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.kernels.recurrent_params import PARAMS, Cell, Phase, Plane
from sardonyx.codegen.target import Target

__all__ = ["write_recurrent"]

_LINE = 16
"""Elements of a cache line."""

PROJECTED, STATE, Y, COLUMNS, FIRST, LAST, WEIGHTS, LATER_WEIGHTS, FIRST_CELL, LAST_CELL, LENGTHS, STATUS = range(12)
"""The buffers of the kernel. Those that a cell does not use may be any; the last two are left out where no sequence ends early."""


class _Params:
    """The parameters of a kernel, each loaded where it is asked for."""

    def __init__(self, b: Kernel) -> None:
        self._b = b

    def of(self, name: str) -> Register:
        return self._b.param(PARAMS.index(name))


def write_recurrent(module: Module, symbol: str, cell: Cell) -> None:
    """Write the kernel `symbol`: buffers as numbered above (of the cell's type, lengths int32), parameters as RecurrentParams."""
    begin, finish = _write_begin(module, f"{symbol}_begin", cell), _write_finish(module, f"{symbol}_finish", cell)
    phases = [_write_phase(module, f"{symbol}_phase{number}", cell, number) for number in range(len(cell.phases))]
    with module.kernel(symbol) as b:
        p = _Params(b)
        count, last_tick = len(phases), p.of("T") * len(phases) + 1
        with b.loop(b.begin, b.end) as task:
            first = task // p.of("parts") * p.of("ticks")
            with b.loop(task % p.of("parts"), p.of("units"), p.of("parts")) as unit:
                place, block = unit // p.of("column_blocks"), unit % p.of("column_blocks")
                d, m = p.of("first") + place // p.of("row_blocks"), place % p.of("row_blocks") * p.of("rows")
                rows = (m, b.min(m + p.of("rows"), p.of("N")))
                q = block * p.of("panels")
                panels = (q, b.min(q + p.of("panels"), p.of("padded") // _width(b, cell)))
                with (
                    b.loop(first, b.min(first + p.of("ticks"), last_tick + 1)) as tick,
                    b.switch(_kind(b, tick, last_tick, count)) as kind,
                ):
                    for number, phase in enumerate(phases):
                        with kind.case(number):
                            b.call_part(phase, d, (tick - 1) // count, *rows, *panels)
                    for number, part in ((count, begin), (count + 1, finish)):
                        with kind.case(number), b.when(block.eq(0)):
                            b.call_part(part, d, *rows)


def _kind(b: Kernel, tick: Register, last_tick: Register, count: int) -> Register:
    """Return the number of the phase that a tick is, `count` for the first tick and one more for the last."""
    inner = b.select(tick.eq(last_tick), b.const(I64, count + 1), (tick - 1) % count)
    return b.select(tick.eq(0), b.const(I64, count), inner)


def _write_begin(module: Module, symbol: str, cell: Cell) -> Kernel:
    """Read the initial states of some rows of a direction, and check the lengths of their sequences."""
    with module.part(symbol, I64, I64, I64) as b:
        p = _Params(b)
        d, top, bottom = b.arguments
        lanes = b.lanes(cell.kind)
        with b.loop(top, bottom) as row:
            for state, buffer, name in zip(cell.states, (FIRST, FIRST_CELL), ("initial", "initial_cell"), strict=False):
                source = b.buffer(buffer, cell.kind).at(row * p.of(f"{name}_n") + d * p.of(f"{name}_d"))
                plane = _plane(b, cell.kind, state, d, row)
                with b.loop(0, p.of("padded"), lanes) as column:
                    plane.store(source.load(column, _span(b, cell.kind, p.of("H") - column)), column, lanes)
            if cell.is_ragged:
                length = b.buffer(LENGTHS, I32).load(row).to(I64)
                with b.when((length < 0) | (length > p.of("T"))):
                    b.buffer(STATUS, I64).store(row + 1)
    return b


def _write_finish(module: Module, symbol: str, cell: Cell) -> Kernel:
    """Write the last states of some rows of a direction."""
    with module.part(symbol, I64, I64, I64) as b:
        p = _Params(b)
        d, top, bottom = b.arguments
        with b.loop(top, bottom) as row:
            for state, buffer in zip(cell.states, (LAST, LAST_CELL), strict=False):
                target = b.buffer(buffer, cell.kind).at(row * p.of("last_n") + d * p.of("last_d"))
                plane = _plane(b, cell.kind, state, d, row, p.of("T"))
                for column, span in b.vectors(0, p.of("H"), cell.kind):
                    target.store(plane.load(column, span), column, span)
    return b


def _write_phase(module: Module, symbol: str, cell: Cell, number: int) -> Kernel:
    """Write a phase of a step for some rows and panels of a direction."""
    store = _write_store(module, f"{symbol}_store", cell, number)
    tiles = {
        tile: _write_tile(module, f"{symbol}_{tile[0]}x{tile[1]}", cell, number, tile, store)
        for tile in _tiles(module.target, cell, number)
    }
    with module.part(symbol, *[I64] * 6) as b:
        d, s, top, bottom, left, right = b.arguments
        with b.loop(left, right) as q:
            first = top
            for (height, units), tile in tiles.items():
                last = first + _covered(bottom - first, list(tiles), height) * height
                with b.loop(first, last, height) as m, b.loop(q * cell.units, (q + 1) * cell.units, units) as unit:
                    b.call_part(tile, d, s, m, unit, (m - top) // height)
                first = last
    return b


def _tiles(target: Target, cell: Cell, number: int) -> list[tuple[int, int]]:
    """Return the rows and vectors of units of the tiles, tallest first; low ones join panels, to have sums enough at hand."""
    gates, units = cell.phases[number].gates, cell.panel_units(number)
    accumulators = 24 if target.registers >= 32 else 12
    tall = accumulators // (gates * units)
    middle = [(tall * 2 // 3, units)] if tall >= 6 else []
    pair = (2, cell.units if 2 * gates * cell.units <= accumulators else units)
    return [(tall, units), *middle, *([pair] if tall > 2 else []), (1, cell.units)]


def _covered(rows: Register, tiles: Sequence[tuple[int, int]], height: int) -> Register:
    """Return how many tiles of a height to take: one less of the tallest where two of the next then cover the rest."""
    if height != tiles[0][0] or height % 3:
        return rows // height
    rest = rows % height
    return rows // height - ((rest > 0) & (rest <= height // 3) & (rows >= height)).to(I64)


def _write_tile(module: Module, symbol: str, cell: Cell, number: int, tile: tuple[int, int], store: Kernel) -> Kernel:
    """Write the sums of some rows for some vectors of units, and what is stored of them.

    Its arguments: direction, step, first row, first vector of units, number of the tile among those of its height.
    """
    phase, lanes, (height, units) = cell.phases[number], module.target.lanes(cell.kind.bits), tile
    width = cell.panel_units(number) * phase.gates * lanes
    with module.part(symbol, *[I64] * 5) as b:
        d, s, m, unit, turn = b.arguments
        p = _Params(b)
        H = p.of("H")
        first = b.buffer(WEIGHTS + number, cell.kind).at((d * p.of("padded") + unit * lanes) * phase.gates * H)
        panels = [first.at(H * (width * joined)) for joined in range(units // cell.panel_units(number))]
        ahead = first.at(H * (width * len(panels)) + turn * H * _LINE) if height > 2 else None
        rows = [_plane(b, cell.kind, phase.source, d, m + i, s) for i in range(height)]
        sums = [b.variable(b.const(cell.kind.vector(lanes), 0.0)) for _ in range(height * units * phase.gates)]
        totals = b.stack(cell.kind, len(sums) * lanes, align=module.target.vector_bytes)
        t = _time(b, d, s)
        for i in range(height):
            projected = _projected(b, cell, number, d, t, m + i).at(unit * (phase.gates * lanes))
            for line in range(0, units * phase.gates * lanes, _LINE):
                b.prefetch(projected.at(line))
        with b.loop(0, H, p.of("chain")) as done:
            for total in sums:
                total.set(b.const(total.type, 0.0))
            depth = b.min(H - done, p.of("chain"))
            near = None if ahead is None else ahead.at(done * _LINE)
            _multiply(b, [row.at(done) for row in rows], [panel.at(done * width) for panel in panels], width, depth, sums, near)
            with b.when(done > 0):
                for place, total in enumerate(sums):
                    total.set(totals.load(place * lanes, lanes) + total.value)
            for place, total in enumerate(sums):
                totals.store(total.value, place * lanes, lanes)
        b.call_part(store, totals, d, s, m, b.const(I64, height), unit, b.const(I64, units))
    return b


def _multiply(
    b: Kernel,
    rows: Sequence[Pointer],
    panels: Sequence[Pointer],
    width: int,
    depth: Register,
    sums: Sequence[Variable],
    ahead: Pointer | None,
) -> None:
    """Add `depth` products to the sums of each row and each column of the panels; fetch a cache line from `ahead` on for each.

    Of factors and columns the fewer are held, and the others loaded one by one: sums and these fit 16 registers.
    """
    lanes = sums[0].type.lanes
    with b.loop(0, depth) as k:
        if ahead is not None:
            b.prefetch(ahead.at(k * _LINE), locality=2)
        places = [(panel, k * width + j) for panel in panels for j in range(0, width, lanes)]
        if len(places) <= len(rows):
            columns = [panel.load(place, lanes) for panel, place in places]
            for i, row in enumerate(rows):
                factor = row.load(k).splat(lanes)
                for total, column in zip(sums[i * len(columns) : (i + 1) * len(columns)], columns, strict=True):
                    total.set(b.fma(factor, column, total.value))
        else:
            factors = [row.load(k).splat(lanes) for row in rows]
            for j, (panel, place) in enumerate(places):
                column = panel.load(place, lanes)
                for factor, total in zip(factors, sums[j :: len(places)], strict=True):
                    total.set(b.fma(factor, column, total.value))


def _write_store(module: Module, symbol: str, cell: Cell, number: int) -> Kernel:
    """Write what a phase stores of the sums of some rows and vectors of units.

    Its arguments: the sums; direction, step, first row, rows, first vector of units, vectors of units.
    """
    phase, lanes = cell.phases[number], module.target.lanes(cell.kind.bits)
    width = phase.gates * lanes
    with module.part(symbol, Address(cell.kind, unique=False), *[I64] * 6) as b:
        totals = b.addresses[0]
        d, s, first, rows, vector, units = b.arguments
        t = _time(b, d, s)
        with b.loop(0, rows) as i:
            row = first + i
            place = _Place(b, cell, phase, d, s, t, row)
            projected = _projected(b, cell, number, d, t, row)

            def compute(i: Register = i, place: _Place = place, projected: Pointer = projected) -> None:
                with b.loop(0, units) as unit:
                    sums = totals.at((i * units + unit) * width)
                    place.store(sums, projected.at((vector + unit) * width), (vector + unit) * lanes)

            def keep(place: _Place = place) -> None:
                with b.loop(0, units) as unit:
                    place.keep((vector + unit) * lanes)

            if cell.is_ragged:
                b.branch(t < b.buffer(LENGTHS, I32).load(row).to(I64), compute, keep)
            else:
                compute()
    return b


class _Place:
    """One row of the batch in one step, in the function that is being written."""

    def __init__(self, b: Kernel, cell: Cell, phase: Phase, d: Register, s: Register, t: Register, row: Register) -> None:
        p = _Params(b)
        self._b, self._kind, self._phase, self._H = b, cell.kind, phase, p.of("H")
        self._elements = [_plane(b, cell.kind, plane, d, row, s) for plane in phase.elements]
        self._old = _plane(b, cell.kind, Plane.HIDDEN, d, row, s)
        self._targets = [_plane(b, cell.kind, plane, d, row, s + 1) for plane, _ in phase.stores]
        self._columns = [b.buffer(COLUMNS, cell.kind).at((d * cell.columns + k) * p.of("padded")) for k in range(cell.columns)]
        self._y = b.buffer(Y, cell.kind).at(t * p.of("y_t") + row * p.of("y_n") + d * p.of("y_d"))

    def store(self, sums: Pointer, projected: Pointer, column: Register) -> None:
        """Write what is stored of one vector of units."""
        b, phase, lanes = self._b, self._phase, self._b.lanes(self._kind)
        gates = [address.load(gate * lanes, lanes) for address in (sums, projected) for gate in range(phase.gates)]
        beside = [address.load(column, lanes) for address in (*self._columns, *self._elements)]
        made = write_expressions(b, [expr for _, expr in phase.stores], [*gates, *beside])
        for (plane, _), target, value in zip(phase.stores, self._targets, made, strict=True):
            target.store(value, column, lanes)
            if plane is Plane.HIDDEN:
                self._put(value, column)

    def keep(self, column: Register) -> None:
        """Write what it is behind the end of a sequence: the same hidden state, and zeros in Y."""
        lanes = self._b.lanes(self._kind)
        for (plane, _), target in zip(self._phase.stores, self._targets, strict=True):
            if plane is Plane.HIDDEN:
                kept = self._old.load(column, lanes)
                target.store(kept, column, lanes)
                self._put(kept.like(0.0), column)

    def _put(self, value: Register, column: Register) -> None:
        """Write one vector of units to Y, where they are no padding."""
        b, lanes, rest = self._b, self._b.lanes(self._kind), self._H - column
        if b.target.has_masks:
            self._y.store(value, column, _span(b, self._kind, rest))
            return
        whole = functools.partial(self._y.store, value, column, lanes)
        b.branch(rest >= lanes, whole, lambda: self._y.store(value, column, _span(b, self._kind, rest)))


def _time(b: Kernel, d: Register, s: Register) -> Register:
    """Return the time of a step: its number, or for a direction that runs backward its number from the end."""
    p = _Params(b)
    return b.select(((p.of("backward") >> d) & 1).ne(0), p.of("T") - 1 - s, s)


def _projected(b: Kernel, cell: Cell, number: int, d: Register, t: Register, row: Register) -> Pointer:
    """Return where the projected input of a phase begins, for a row of the batch."""
    p, before = _Params(b), sum(phase.gates for phase in cell.phases[:number])
    place = t * p.of("projected_t") + row * p.of("projected_n") + (d * cell.gates + before) * p.of("padded")
    return b.buffer(PROJECTED, cell.kind).at(place)


def _plane(b: Kernel, kind: Type, plane: Plane, d: Register, row: Register, s: Register | None = None) -> Pointer:
    """Return where the state of a row is, the hidden one before step `s` (None: the first)."""
    p = _Params(b)
    number = b.const(I64, int(plane)) if plane is not Plane.HIDDEN or s is None else s & 1
    return b.buffer(STATE, kind).at(((number * p.of("directions") + d) * p.of("N") + row) * p.of("padded"))


def _span(b: Function, kind: Type, rest: Register) -> Span:
    """Return a mask of the first `rest` lanes of a vector: all where there are more, none where there are none."""
    lanes = b.target.lanes(kind.bits)
    return Span(lanes, b.tail_mask(b.max(b.min(rest, lanes), 0), lanes))


def _width(b: Function, cell: Cell) -> int:
    """Return the units of a panel."""
    return cell.units * b.target.lanes(cell.kind.bits)
