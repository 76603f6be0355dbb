"""Normalization along rows or columns: two statistics, then one expression.

    STANDARD    (x - mean) / sqrt(variance + epsilon)       layer, group, instance normalization
    ROOT_MEAN   x / sqrt(mean of squares + epsilon)
    NORM_1      x / sum of |x|, 0 where that is 0
    NORM_2      x / sqrt(sum of x squared), 0 where that is 0

The variance is the mean of the squares of the deviations, in a pass of its own, which also finds what the rounding of the mean
lost: results keep their accuracy however far from 0 the elements are. A long row is gone through by blocks that fit the
first-level cache, whose means and sums of squares are put together (Chan, Golub, LeVeque: Updating Formulae and a Pairwise
Algorithm for Computing Sample Variances, 1979): memory is read twice, not three times.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.expr import ElementExpr
from sardonyx.codegen.emit.expr_llvm import write_expressions
from sardonyx.codegen.emit.folds import SUM
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F32, F64, Type
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.kernels.lines import (
    FIRST_FREE,
    Along,
    ExtraOperand,
    Operands,
    ReducedStrip,
    RowStrip,
    Strip,
    Term,
    VectorPosition,
    strips,
    write_lines,
)
from sardonyx.codegen.kernels.short_lines import GatheredStrip, mapped_rows, packed_strips

__all__ = ["Norm", "write_group_terms", "write_moments", "write_normalize"]

X, Y, _NEXT_BUFFER = range(3)
_EPSILON, _WALK = FIRST_FREE, FIRST_FREE + 1

_CACHED = 4096
"""Elements of a row that stay in the first-level cache between two passes."""


class Norm(enum.Enum):
    """What elements are divided by, and whether the mean is taken away first."""

    STANDARD = "standard"
    ROOT_MEAN = "root_mean"
    NORM_1 = "norm_1"
    NORM_2 = "norm_2"


_Load = Callable[[VectorPosition], Register]


def write_normalize(
    module: Module,
    symbol: str,
    along: Along,
    norm: Norm,
    *,
    after: ElementExpr,
    extra_operands: Sequence[ExtraOperand],
    saved: int = 0,
    kind: Type = F32,
) -> None:
    """Write the kernel `symbol`.

    Buffers are X, Y (which may be X if it is of its type), `saved` arrays for statistics (the mean and 1 / deviation of STANDARD,
    else that of ROOT_MEAN), and those beside; parameters as `lines` says, with epsilon as `float_word` before the walk.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        along: what is normalized.
        norm: how.
        after: what is stored, of argument 0 (the normalized element) and the extra operands (from argument 1 on).
        extra_operands: the extra operands.
        saved: how many statistics are stored.
        kind: the type of what is normalized, and of statistics: F32 or F64.
    """
    with module.kernel(symbol) as b:
        x, y = b.buffer(X, kind), b.buffer(Y, after.type)
        operands = Operands(b, extra_operands, first_buffer=_NEXT_BUFFER + saved, first_param=_WALK)
        alone = not extra_operands
        if alone and along is Along.ROWS and norm in (Norm.NORM_1, Norm.NORM_2):
            each: Iterator[GatheredStrip | Strip] = mapped_rows(b, kind)
        else:
            each = packed_strips(b, along, kind) if alone else strips(b, along, kind)
        for strip in each:
            if isinstance(strip, GatheredStrip):
                _write_gathered(b, strip, norm, x, y, after)
                continue
            element, statistics = _NORMS[norm](b, strip, lambda place: x.load(place.offset, place.span))
            for number, values in enumerate(statistics[:saved]):
                strip.put(b.buffer(_NEXT_BUFFER + number, kind), values)
            write_lines(strip, y, after, operands, element)


def write_moments(module: Module, symbol: str, along: Along) -> None:
    """Write the kernel `symbol`, which finds the moments of rows or columns.

    Buffers are X, the mean, what its rounding lost, and the sum of the squares of the deviations; parameters as `lines` says.
    """
    with module.kernel(symbol) as b:
        x = b.buffer(X, F32)
        for strip in packed_strips(b, along, F32):
            for number, values in enumerate(_moments(b, strip, lambda place: x.load(place.offset, place.span)), 1):
                strip.put(b.buffer(number, F32), values)


def write_group_terms(module: Module, symbol: str) -> None:
    """Write the kernel `symbol`, which makes of the moments of channels what their groups are normalized with.

    Buffers are the channels' mean, its rest, and their squares (N, C), as `write_moments` leaves them; scale and bias (C); and the
    results (N, C): `mean`, `factor` and `summand`, so that an element becomes (x - mean) * factor + summand. Parameters: groups of
    all of the batch, groups of one image, channels of a group, elements of a channel, and epsilon as `float_word`; a task is a
    group. Moments are put together in float64 (Chan, Golub, LeVeque).
    """
    with module.kernel(symbol) as b:
        means, rests, squares, scales, biases, *targets = (b.buffer(number, F32) for number in range(8))
        groups, width, count, epsilon = b.param(1), b.param(2), b.param(3), b.param_float(4).to(F64)
        with b.loop(b.begin, b.end) as group:
            first, channel = group * width, group % groups * width
            total = b.variable(b.const(F64, 0))
            with b.loop(first, first + width) as i:
                total.add(means.load(i).to(F64) + rests.load(i).to(F64))
            mean = total.value / width.to(F64)
            spread = b.variable(b.const(F64, 0))
            with b.loop(first, first + width) as i:
                away = means.load(i).to(F64) + rests.load(i).to(F64) - mean
                spread.add(squares.load(i).to(F64) + away * away * count.to(F64))
            inverse = 1 / b.sqrt(spread.value / (count * width).to(F64) + epsilon)
            rounded = mean.to(F32)
            lost = mean - rounded.to(F64)
            with b.loop(0, width) as j:
                factor = scales.load(channel + j).to(F64) * inverse
                summand = biases.load(channel + j).to(F64) - lost * factor
                for target, value in zip(targets, (rounded, factor.to(F32), summand.to(F32)), strict=True):
                    target.store(value, first + j)


_LARGEST = {F32.bits: 3.4028234663852886e38, F64.bits: 1.7976931348623157e308}
"""The largest finite float of so many bits."""
_Result = tuple[Term, list[list[Register]]]
"""The normalized element of a place, and the statistics."""


def _standard(b: Kernel, strip: Strip, load: _Load) -> _Result:
    """Compute mean and deviation, where the mean is a rounded number and what its rounding lost.

    So elements far from 0 keep their accuracy.
    """
    means, rests, squares = _moments(b, strip, load)
    inverses = [_inverse_root(b, square / strip.count.to(strip.kind)) for square in squares]
    shifts = [-(rest * inverse) for rest, inverse in zip(rests, inverses, strict=True)]

    def element(place: VectorPosition) -> Register:
        return b.fma(load(place) - means[place.number], inverses[place.number], shifts[place.number])

    return element, [[mean + rest for mean, rest in zip(means, rests, strict=True)], inverses]


def _inverse_root(b: Kernel, mean_square: Register) -> Register:
    return 1 / b.sqrt(mean_square + b.param_float(_EPSILON, mean_square.type.scalar))


def _moments(b: Kernel, strip: Strip, load: _Load) -> tuple[list[Register], list[Register], list[Register]]:
    """Return for each fold its mean, what the rounding of the mean lost, and the sum of the squares of the deviations."""
    if isinstance(strip, RowStrip) and strip.width == 1:
        mean, rest, square = _moments_by_blocks(b, strip, load)
        return [mean], [rest], [square]
    count = strip.count.to(strip.kind)
    means = [total / count for total in strip.fold(SUM, load)]
    lost, squares = strip.fold_all(SUM, _deviations(load, means))
    corrected = [_without(b, square, total, count) for square, total in zip(squares, lost, strict=True)]
    return means, [total / count for total in lost], corrected


def _moments_by_blocks(b: Kernel, strip: RowStrip, load: _Load) -> tuple[Register, Register, Register]:
    """Take up block after block: what came before has `first` elements, a mean and its rest, and squares."""
    kind = strip.kind
    mean, rest, squares = (b.variable(b.const(kind, 0)) for _ in range(3))
    with b.loop(0, b.max(strip.count, 1), _CACHED) as first:
        last = b.min(first + _CACHED, strip.count)
        count = (last - first).to(kind)
        ((total,),) = strip.fold_range(SUM, [load], (first, last))
        block_mean = total / count
        (lost,), (block_squares,) = strip.fold_range(SUM, _deviations(load, [block_mean]), (first, last))
        away, rest_away = block_mean - mean.value, lost / count - rest.value
        weight = count / last.to(kind)
        before, step = mean.value, away * weight
        mean.set(before + step)
        rest.add((step - (mean.value - before)) + rest_away * weight)
        difference = away + rest_away
        squares.add(_without(b, block_squares, lost, count) + difference * (difference * (weight * first.to(kind))))
    return mean.value, rest.value, squares.value


def _deviations(load: _Load, means: Sequence[Register]) -> list[Term]:
    """Return the deviation of an element from a rounded mean, and its square."""
    return [lambda place: load(place) - means[place.number], lambda place: _square(load(place) - means[place.number])]


def _without(b: Function, squares: Register, lost: Register, count: Register) -> Register:
    """Return the sum of squares of deviations from the mean itself, where `lost` is the sum of those from a rounded one.

    A sum beyond the largest float stays infinite.
    """
    correction = lost * (lost / count)
    corrected = squares - b.min(correction, correction.like(_LARGEST[correction.type.bits]))
    return b.max(corrected.like(0), corrected)


def _root_mean(b: Kernel, strip: Strip, load: _Load) -> _Result:
    squares = strip.fold(SUM, lambda place: _square(load(place)))
    inverses = [_inverse_root(b, square / strip.count.to(strip.kind)) for square in squares]
    return lambda place: load(place) * inverses[place.number], [inverses]


def _norm_1(b: Kernel, strip: Strip, load: _Load) -> _Result:
    return _divided(load, _divisors(b, strip, load, Norm.NORM_1))


def _norm_2(b: Kernel, strip: Strip, load: _Load) -> _Result:
    return _divided(load, _divisors(b, strip, load, Norm.NORM_2))


def _divided(load: _Load, divisors: Sequence[Register]) -> _Result:
    return lambda place: load(place) / divisors[place.number], []


def _divisors(b: Kernel, strip: ReducedStrip, load: _Load, norm: Norm) -> list[Register]:
    """Return for each fold its norm, or 1 where that is 0."""
    if norm is Norm.NORM_1:
        norms = strip.fold(SUM, lambda place: b.abs(load(place)))
    else:
        norms = [b.sqrt(total) for total in strip.fold(SUM, lambda place: _square(load(place)))]
    return [b.select(norm.eq(0), norm.like(1), norm) for norm in norms]


def _write_gathered(b: Kernel, strip: GatheredStrip, norm: Norm, x: Pointer, y: Pointer, after: ElementExpr) -> None:
    """Fold short rows, one to a lane; then write them, several to a vector."""
    divisors = _divisors(b, strip, lambda place: strip.load(x, place), norm)
    for place, (divisor,) in strip.spread([divisors]):
        y.store(write_expressions(b, [after], [x.load(place.offset, place.span) / divisor])[0], place.offset, place.span)


def _square(value: Register) -> Register:
    return value * value


_NORMS: dict[Norm, Callable[[Kernel, Strip, _Load], _Result]] = {
    Norm.STANDARD: _standard,
    Norm.ROOT_MEAN: _root_mean,
    Norm.NORM_1: _norm_1,
    Norm.NORM_2: _norm_2,
}
