"""Convolution over planes, data whose channels come first, in groups of few channels: vectors along the last axis.

A task makes a tile of places of all planes of a group. What the tile sees is copied first, with zeros for the padding, and split by
the strides, so that each tap reads elements that lie side by side:

    input row, stride 2     - a b c d e f -          phases of the copy     - b d f     a c e -
    tap 0 of the places     - b d f                                         ^ 0 further
    tap 1                   a c e -                                         ^ one phase further
    tap 2                   b d f                                           ^ 1 further

Places of all rows of the tile are then one line: tap t of place i is element i + offsets[t] of the copy. Those between the end of a
row and the next one are computed too, and left behind when the rows are stored, with bias and epilogue. Of a volume a tile lies in
one layer, and sees several layers of each channel, as planes.

A sum is made of chains of multiply-adds, of whole planes, in the order of planes and taps: no tile or thread changes bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.codegen.emit.expr import ElementExpr
from sardonyx.codegen.emit.expr_llvm import write_expressions
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import Type
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.emit.window import WindowAxis, blocks, least
from sardonyx.codegen.kernels.gemm_params import chains_over_channels
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["MOST_SEEN", "PlaneConvCode", "PlaneConvParams", "makes_at_once", "pack_plane_filters", "write_plane_conv"]

INPUT, FILTERS, OUTPUT, BIAS = range(4)
"""The buffers; the last one where there is a bias."""

MOST_SEEN, _MOST_SUMS, _MOST_ROW = 12288, 6144, 4096
"""Elements of the copy of what a tile sees, sums of the planes that are made at once, and elements of one row of the input."""

_WIDEST = 256
"""Places of one row of a tile, about."""

_SLACK = 64
"""Elements behind these that whole vectors may touch."""

_TASKS_PER_THREAD = 4


def makes_at_once(makes: int) -> int:
    """Return how many planes of a group that makes so many are made at once."""
    return next(count for count in (4, 3, 2, 1) if makes % count == 0)


@dataclass(frozen=True, slots=True)
class PlaneConvCode:
    """What the code of a kernel depends on."""

    kind: Type
    """The type of the elements."""
    stride: int
    """Of the last axis."""
    at_once: int
    """Planes that are made at once: `makes_at_once`."""
    has_bias: bool
    """Whether a number is added to each plane."""
    after: ElementExpr
    """What is stored, of argument 0, the sum."""


@dataclass(frozen=True, slots=True)
class PlaneConvParams:
    """The integer parameters of the kernel, in their order; then the offsets of the taps."""

    groups: int
    """Groups of one image."""
    members: int
    """Channels that a group reads."""
    makes: int
    """Channels that it makes."""
    depth: int
    """Layers of the input."""
    layers: int
    """Layers of the output."""
    layers_seen: int
    """Layers that a place sees."""
    layer_stride: int
    """From the first one of them to that of the next layer."""
    layer_dilation: int
    """From one of them to the next."""
    front: int
    """Padding before the first layer."""
    height: int
    """Rows of a plane of the input."""
    width: int
    """Elements of a row."""
    rows: int
    """Rows of a plane of the output."""
    columns: int
    """Places of a row."""
    stride: int
    """From one row of places to the next."""
    top: int
    """Padding before the first row."""
    left: int
    """Padding before the first element of a row."""
    tile_rows: int
    """Rows of one tile."""
    tile_columns: int
    """Places of a row of a tile."""
    reach: int
    """How many rows of a phase a tile sees besides one for each of its own."""
    pitch: int
    """Elements of a row of a phase."""
    taps: int
    """Taps of one plane."""
    chain: int
    """Planes of one chain."""
    images: int
    offsets: tuple[int, ...]
    """Where the element of the first place is that each tap meets, in the copy of a plane."""

    @staticmethod
    def tiled(
        images: int, groups: int, members: int, makes: int, axes: Sequence[WindowAxis], *, threads: int = 1
    ) -> PlaneConvParams:
        """Return the parameters with tiles that fit the kernel's memory, for up to three axes."""
        layer, outer, inner = [_NO_AXIS] * (3 - len(axes)) + list(axes)
        at_once, copies = makes_at_once(makes), members * layer.taps * outer.stride * inner.stride
        reach, ahead = ((axis.taps - 1) * axis.dilation // axis.stride for axis in (outer, inner))
        columns = max(-(-inner.places // max(-(-inner.places // _WIDEST), 1)), 1)
        while columns > 1 and _rows_that_fit(columns + ahead, reach, copies, inner.stride, at_once) < 1:
            columns = -(-columns // 2)
        pitch = columns + ahead
        rows = min(_rows_that_fit(pitch, reach, copies, inner.stride, at_once), outer.places)
        if threads > 1:
            strips = max(images * groups * layer.places * -(-inner.places // columns), 1)
            wanted = -(-_TASKS_PER_THREAD * threads // strips)
            rows = min(rows, -(-outer.places // wanted))
        rows = max(rows, 1)
        chains = chains_over_channels(members, layer.taps * outer.taps * inner.taps) if groups == 1 else 1
        offsets = tuple(
            ((y % outer.stride * inner.stride + x % inner.stride) * (rows + reach) + y // outer.stride) * pitch + x // inner.stride
            for y in range(0, outer.taps * outer.dilation, outer.dilation)
            for x in range(0, inner.taps * inner.dilation, inner.dilation)
        )
        return PlaneConvParams(
            groups=groups,
            members=members,
            makes=makes,
            depth=layer.size,
            layers=layer.places,
            layers_seen=layer.taps,
            layer_stride=layer.stride,
            layer_dilation=layer.dilation,
            front=layer.begin,
            height=outer.size,
            width=inner.size,
            rows=outer.places,
            columns=inner.places,
            stride=outer.stride,
            top=outer.begin,
            left=inner.begin,
            tile_rows=rows,
            tile_columns=columns,
            reach=reach,
            pitch=pitch,
            taps=len(offsets),
            chain=max(-(-members * layer.taps // chains), 1),
            images=images,
            offsets=offsets,
        )

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them."""
        return [*(getattr(self, name) for name in _PARAMS), *self.offsets]

    def tasks(self) -> int:
        """Return how many tiles there are."""
        return self.images * self.groups * self.layers * -(-self.rows // self.tile_rows) * -(-self.columns // self.tile_columns)


_NO_AXIS = WindowAxis(1, 1, 1, 1, 0, 1, 0, 0)
"""An axis of one element."""

_PARAMS = tuple(PlaneConvParams.__dataclass_fields__)[:-1]


def _rows_that_fit(pitch: int, reach: int, copies: int, stride: int, at_once: int) -> int:
    """Return how many rows a tile may have; none or fewer where a single one does not fit."""
    if pitch * stride > _MOST_ROW:
        return 0
    return min(MOST_SEEN // (copies * pitch) - reach, _MOST_SUMS // (at_once * pitch))


def pack_plane_filters(filters: Array, groups: int) -> Array:
    """Return filters (M, C / groups, taps…) as [group][planes made at once][plane read][tap][plane of those]."""
    M, members = filters.shape[:2]
    at_once = makes_at_once(M // groups)
    return filters.reshape(M // at_once, at_once, members, -1).transpose(0, 2, 3, 1).copy()


def write_plane_conv(module: Module, symbol: str, code: PlaneConvCode) -> None:
    """Write the kernel `symbol`: buffers input, packed filters, output and bias, parameters as in PlaneConvParams."""
    with module.kernel(symbol) as b:
        conv = _PlaneConv(b, code)
        with b.loop(b.begin, b.end) as task:
            conv.write_tile(task)


def _vectors(target: Target, at_once: int) -> int:
    """Return how many vectors of places go at a time: as many sums as there are registers for."""
    return (8, 4, 4, 4)[at_once - 1] if target.registers >= 32 else (6, 4, 3, 2)[at_once - 1]


class _PlaneConv:
    """The kernel in the making."""

    def __init__(self, b: Kernel, code: PlaneConvCode) -> None:
        self._b, self._code = b, code
        self._p = {name: b.param(place) for place, name in enumerate(_PARAMS)}
        self._lanes = b.lanes(code.kind)
        self._seen = b.stack(code.kind, MOST_SEEN + _SLACK, align=64)
        self._row = b.stack(code.kind, _MOST_ROW + 2 * _SLACK, align=64) if code.stride > 1 else self._seen
        self._most_sums = _MOST_SUMS // code.at_once + _SLACK
        self._sums = b.stack(code.kind, self._most_sums * code.at_once, align=64)
        self._phase = (self._p["tile_rows"] + self._p["reach"]) * self._p["pitch"]
        self._plane = self._phase * self._p["stride"] * code.stride
        self._planes = self._p["members"] * self._p["layers_seen"]

    def write_tile(self, task: Register) -> None:
        """Make all planes of a group of one tile."""
        b, p, code = self._b, self._p, self._code
        across, down = blocks(p["columns"], p["tile_columns"]), blocks(p["rows"], p["tile_rows"])
        left, rest = task % across * p["tile_columns"], task // across
        top, rest = rest % down * p["tile_rows"], rest // down
        layer, group = rest % p["layers"], rest // p["layers"]
        rows, columns = least(b, p["rows"] - top, p["tile_rows"]), least(b, p["columns"] - left, p["tile_columns"])
        size = p["height"] * p["width"]
        source = b.buffer(INPUT, code.kind).at(group * p["members"] * (p["depth"] * size))
        first = layer * p["layer_stride"] - p["front"]
        with b.loop(0, p["members"]) as member, b.loop(0, p["layers_seen"]) as tap:
            z = first + tap * p["layer_dilation"]
            is_there = (z >= 0) & (z < p["depth"])
            plane = source.at((member * p["depth"] + b.select(is_there, z, 0)) * size)
            number = member * p["layers_seen"] + tap
            self._copy_plane(plane, self._seen.at(number * self._plane), top, left, rows, b.select(is_there, p["height"], 0))
        line = (rows - 1) * p["pitch"] + columns
        vectors = _vectors(b.target, code.at_once)
        step = vectors * self._lanes
        whole = line // step * step
        with b.loop(0, p["makes"], code.at_once) as made:
            filters = b.buffer(FILTERS, code.kind).at((group % p["groups"] * p["makes"] + made) * (self._planes * p["taps"]))
            with b.loop(0, whole, step) as place:
                self._sum_places(place, filters, vectors)
            with b.switch(blocks(line - whole, b.const(line.type, self._lanes))) as switch:
                for few in range(1, vectors + 1):
                    with switch.case(few):
                        self._sum_places(whole, filters, few)
            self._store_rows(group * p["makes"] + made, layer, top, left, rows, columns)

    def _copy_plane(
        self, source: Pointer, result: Pointer, top: Register, left: Register, rows: Register, height: Register
    ) -> None:
        """Copy what a tile sees of one plane of so many rows, phase by phase."""
        b, p, stride = self._b, self._p, self._code.stride
        column = left * stride - p["left"]
        with b.loop(0, p["stride"]) as phase, b.loop(0, rows + p["reach"]) as line:
            row = (top + line) * p["stride"] + phase - p["top"]
            target = result.at(phase * stride * self._phase + line * p["pitch"])
            is_there = (row >= 0) & (row < height)
            size = b.select(is_there, p["width"], 0)
            begin = source.at(b.select(is_there, row, 0) * p["width"])
            if stride == 1:
                self._copy_row(begin, target, column, size, p["pitch"])
            else:
                self._copy_row(begin, self._row, column, size, p["pitch"] * stride)
                self._take_phases(target)

    def _copy_row(self, source: Pointer, result: Pointer, column: Register, size: Register, length: Register) -> None:
        """Copy the elements from `column` on of a row of `size` elements, with zeros where it has none."""
        b, kind = self._b, self._code.kind
        first = least(b, b.max(-column, 0), length)
        last = b.max(least(b, size - column, length), first)
        for begin, end in ((b.const(first.type, 0), first), (last, length)):
            for i, span in b.vectors(begin, end, kind):
                result.store(0, i, span)
        for i, span in b.vectors(first, last, kind):
            result.store(source.load(column + i, span), i, span)

    def _take_phases(self, result: Pointer) -> None:
        """Take every so many-th element of the copied row, for each phase."""
        b, stride, lanes = self._b, self._code.stride, self._lanes
        for i, span in b.vectors(0, self._p["pitch"], self._code.kind):
            first = self._row.at(i * stride)
            if span.lanes == lanes and stride == 2:
                halves = [first.load(half * lanes, lanes) for half in range(2)]
                values = [halves[0].shuffle(range(phase, 2 * lanes, 2), halves[1]) for phase in range(2)]
            elif span.lanes > 1:
                values = [first.at(phase).gather(b.iota(i.type, span.lanes) * stride) for phase in range(stride)]
            else:
                values = [first.load(phase) for phase in range(stride)]
            for phase, value in enumerate(values):
                result.at(self._phase * phase).store(value, i, span)

    def _sum_places(self, place: Register, filters: Pointer, vectors: int) -> None:
        """Sum some vectors of places of the planes that are made at once."""
        b, p, code, lanes = self._b, self._p, self._code, self._lanes
        sums = [[b.variable(b.const(code.kind.vector(lanes), 0)) for _ in range(vectors)] for _ in range(code.at_once)]
        places = [
            (total, place + (number * self._most_sums + vector * lanes))
            for number, totals in enumerate(sums)
            for vector, total in enumerate(totals)
        ]
        with b.loop(0, self._planes, p["chain"]) as first:
            for total, _ in places:
                total.set(b.const(total.type, 0))
            with b.loop(first, least(b, first + p["chain"], self._planes)) as plane:
                seen, factors = self._seen.at(plane * self._plane + place), filters.at(plane * p["taps"] * code.at_once)
                with b.loop(0, p["taps"]) as tap:
                    met = seen.at(b.param_at(tap + len(_PARAMS)))
                    elements = [met.load(vector * lanes, lanes) for vector in range(vectors)]
                    for number, totals in enumerate(sums):
                        factor = factors.load(tap * code.at_once + number).splat(lanes)
                        for total, element in zip(totals, elements, strict=True):
                            total.set(b.fma(element, factor, total.value))
            with b.when(first > 0):
                for total, at in places:
                    total.set(self._sums.load(at, lanes) + total.value)
            for total, at in places:
                self._sums.store(total.value, at, lanes)

    def _store_rows(
        self, channel: Register, layer: Register, top: Register, left: Register, rows: Register, columns: Register
    ) -> None:
        """Store the rows of the channels that were made at once, of which `channel` is the first."""
        b, p, code = self._b, self._p, self._code
        for number in range(code.at_once):
            made = channel + number
            bias = b.buffer(BIAS, code.kind).load(made % (p["groups"] * p["makes"])) if code.has_bias else None
            result = b.buffer(OUTPUT, code.after.type).at(((made * p["layers"] + layer) * p["rows"] + top) * p["columns"] + left)
            with b.loop(0, rows) as row:
                sums, target = self._sums.at(row * p["pitch"] + number * self._most_sums), result.at(row * p["columns"])
                for i, span in b.vectors(0, columns, code.kind):
                    total = sums.load(i, span)
                    value = total if bias is None else total + bias
                    target.store(write_expressions(b, [code.after], [value])[0], i, span)
