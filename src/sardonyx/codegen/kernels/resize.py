"""Resample one axis, or two neighbouring ones, by tables of elements and weights.

    table       for every output of an axis the elements that it reads, (taps, output), and their weights
    result[o, a, b, :] = sum over taps s, t of weight_a[s, a] * weight_b[t, b] * source[o, index_a[s, a], index_b[t, b], :]

Tables are made in the run by `write_table`, in a few operations per output, so that they follow sizes which change. Every
element number in a table lies inside the axis. Without weights a table has one tap, and elements are moved, not computed with.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F32, F64, I32, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.lazy_dataclasses import dataclass

__all__ = [
    "CUBIC",
    "LINEAR",
    "NEAREST",
    "TABLE_WORDS",
    "ResizeParams",
    "TableWords",
    "coordinate_of",
    "cubic_weight",
    "reads_inside_only",
    "write_resize",
    "write_table",
]

NEAREST, LINEAR, CUBIC = 1, 2, 4
"""How many elements an output reads along an axis."""


@dataclass(frozen=True, slots=True)
class TableWords:
    """The parameters of `write_table`. Output i lies in the input at ((i + shift) * factor * length / divisor + offset) - back.

    All numbers are float32 and so is every operation, in this order.
    """

    size: int
    """Length of the input."""
    output: int
    """Length of the output."""
    shift: float = 0.0
    factor: float = 1.0
    length: float = 1.0
    divisor: float = 1.0
    offset: float = 0.0
    back: float = 0.0
    bias: float = 0.0
    """NEAREST: what is added before rounding."""
    upwards: bool = False
    """NEAREST: whether it rounds up, else down."""
    coefficient: float = 0.0
    """CUBIC: the coefficient a of R. Keys (1981), equation 4."""
    inside_only: bool = False
    """LINEAR and CUBIC: elements outside the axis weigh nothing, else they are the nearest one inside."""

    def words(self) -> list[int | float]:
        """Return the parameters in the order in which the kernel reads them; floats go as their float64 bits."""
        return [
            self.size,
            self.output,
            float(self.shift),
            float(self.factor),
            float(self.length),
            float(self.divisor),
            float(self.offset),
            float(self.back),
            float(self.bias),
            int(self.upwards),
            float(self.coefficient),
            int(self.inside_only),
        ]


_SIZE, _OUTPUT, _SHIFT, _FACTOR, _LENGTH, _DIVISOR, _OFFSET, _BACK, _BIAS, _UPWARDS, _COEFFICIENT, _INSIDE = range(12)
TABLE_WORDS = 12
"""How many parameters a TableWords is."""


def coordinate_of(b: Kernel, i: Register) -> Register:
    """Return where output i lies in the input, as TableWords has it."""
    moved = (i.to(F32) + b.param_float(_SHIFT)) * b.param_float(_FACTOR) * b.param_float(_LENGTH) / b.param_float(_DIVISOR)
    return b.param_float(_OFFSET) + moved - b.param_float(_BACK)


def reads_inside_only(b: Kernel) -> Register:
    """Return whether elements outside the axis weigh nothing."""
    return b.param(_INSIDE).ne(0)


def write_table(module: Module, symbol: str, taps: int) -> None:
    """Write the kernel `symbol` of one task: element numbers (int32) to its first buffer and weights (float32) to the second.

    The input is not empty, or the output is. For NEAREST there is no second buffer.
    """
    with module.kernel(symbol) as b:
        output = b.param(_OUTPUT)
        index = b.buffer(0, I32)
        with b.loop(b.begin, b.end), b.loop(0, output) as i:
            coordinate = coordinate_of(b, i)
            if taps == NEAREST:
                biased = coordinate + b.param_float(_BIAS)
                rounded = b.select(b.param(_UPWARDS).ne(0), b.call_math("ceil", biased), b.call_math("floor", biased))
                index.store(_inside(b, rounded), i)
            else:
                _write_taps(b, coordinate, i, taps)


def _write_taps(b: Kernel, coordinate: Register, i: Register, taps: int) -> None:
    output, size, index, weight = b.param(_OUTPUT), b.param(_SIZE).to(F32), b.buffer(0, I32), b.buffer(1, F32)
    below = b.call_math("floor", coordinate)
    fraction = (coordinate - below).to(F64)
    exact, total = [], b.const(F64, 0.0)
    for tap in range(taps):
        step = tap + 1 - taps // 2
        place = below + float(step)
        distance = b.abs(float(step) - fraction)
        part = 1.0 - distance if taps == LINEAR else cubic_weight(b, distance)
        outside = b.param(_INSIDE).ne(0) & ((place < 0.0) | (place >= size))
        exact.append(b.select(outside, 0.0, part))
        total = total + exact[-1]
        index.store(_inside(b, place), i + output * tap)
    whole = b.select(b.param(_INSIDE).ne(0), total, 1.0)
    for tap, part in enumerate(exact):
        weight.store((part / whole).to(F32), i + output * tap)


def cubic_weight(b: Kernel, d: Register) -> Register:
    """Return the cubic convolution kernel at distance d."""
    a = b.param_float(_COEFFICIENT, F64)
    near = ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0
    far = ((d - 5.0) * d + 8.0) * d * a - a * 4.0
    return b.select(d <= 1.0, near, b.select(d < 2.0, far, 0.0))


def _inside(b: Kernel, place: Register) -> Register:
    """Return a whole number as the number of an element of the axis: clamped before it is an integer, and after."""
    last = b.param(_SIZE) - 1
    clamped = b.min(b.max(place, 0.0), last.to(F32)).to(I64)
    return b.min(clamped, last).to(I32)


@dataclass(frozen=True, slots=True)
class ResizeParams:
    """The integer parameters of `write_resize`, in their order."""

    outer: int
    """How many o there are."""
    sizes: tuple[int, ...]
    """For each axis its length in the source."""
    outputs: tuple[int, ...]
    """For each axis its length in the result."""
    inner: int
    """Elements behind the axes."""
    block: int
    """Outputs of the last axis in one task."""

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them."""
        return [self.inner, self.block, *self.sizes, *self.outputs]

    def tasks(self) -> int:
        """Return how many tasks it is: a task is a block of outputs of the last axis."""
        rows = self.outer * (self.outputs[0] if len(self.outputs) == 2 else 1)
        return rows * -(-self.outputs[-1] // self.block)


_INNER, _BLOCK, _SIZES = range(3)


@dataclass(frozen=True, slots=True)
class _Read:
    """Something that an output reads, and what it weighs; nothing if it is moved."""

    place: Pointer
    weight: Register | None


def write_resize(module: Module, symbol: str, element: Type, taps: int, axes: int, *, single: bool) -> None:
    """Write the kernel `symbol`: buffers are the source, the result, then for each axis its element numbers and weights (if any).

    Args:
        module: where to write.
        symbol: the name of the kernel.
        element: F32, or for NEAREST an integer of the size of the elements.
        taps: NEAREST, LINEAR or CUBIC.
        axes: 1 or 2.
        single: whether nothing lies behind the axes: `inner` is 1, and elements are blended one by one, which is faster than
            gathering them.
    """
    with module.kernel(symbol) as b:
        inner, block = b.const(I64, 1) if single else b.param(_INNER), b.param(_BLOCK)
        sizes, outputs = ([b.param(_SIZES + axes * part + axis) for axis in range(axes)] for part in range(2))
        source, result = b.buffer(0, element), b.buffer(1, element)
        tables = [_Table.of(b, axis, taps, outputs[axis]) for axis in range(axes)]
        blocks = (outputs[-1] + block - 1) // block
        with b.loop(b.begin, b.end) as task:
            row, first = task // blocks, task % blocks * block
            last = b.min(first + block, outputs[-1])
            if axes == 1:
                reads = [_Read(source.at(row * sizes[0] * inner), None)]
            else:
                plane = source.at(row // outputs[0] * (sizes[0] * sizes[1] * inner))
                reads = tables[0].read(plane, row % outputs[0], sizes[1] * inner)
            target = result.at(row * outputs[-1] * inner)
            with b.loop(first, last) as j:
                points = [point for read in reads for point in tables[-1].read(read.place, j, inner, read.weight)]
                _write_output(b, points, target.at(j * inner), inner, 1 if single else b.lanes(element))


@dataclass(frozen=True, slots=True)
class _Table:
    """The table of one axis."""

    index: Pointer
    weights: Pointer | None
    taps: int
    output: Register

    @staticmethod
    def of(b: Kernel, axis: int, taps: int, output: Register) -> _Table:
        """Return the table of axis number `axis` among the buffers."""
        if taps == NEAREST:
            return _Table(b.buffer(2 + axis, I32), None, taps, output)
        return _Table(b.buffer(2 + 2 * axis, I32), b.buffer(3 + 2 * axis, F32), taps, output)

    def read(self, start: Pointer, i: Register, stride: Register, weight: Register | None = None) -> list[_Read]:
        """Return what output i reads from `start` on, with `weight` in all weights."""
        found = []
        for tap in range(self.taps):
            place = i + self.output * tap
            own = None if self.weights is None else self.weights.load(place)
            both = own if weight is None or own is None else own * weight
            found.append(_Read(start.at(self.index.load(place).to(I64) * stride), both))
        return found


def _write_output(b: Function, points: Sequence[_Read], target: Pointer, inner: Register, lanes: int) -> None:
    """Write one output: all that lies behind the axes, by vectors."""
    spread = [None if point.weight is None else point.weight.splat(lanes) for point in points]
    for i, span in b.vectors(0, inner, target.element, lanes=lanes):
        weights = spread if span.lanes == lanes else [point.weight for point in points]
        target.store(_sum(b, [point.place.load(i, span) for point in points], weights), i, span)


def _sum(b: Function, values: Sequence[Register], weights: Sequence[Register | None]) -> Register:
    total: Register | None = None
    for value, weight in zip(values, weights, strict=True):
        if weight is None:
            return value
        total = value * weight if total is None else b.fma(value, weight, total)
    if total is None:
        raise ValueError("an output reads at least one element")
    return total
