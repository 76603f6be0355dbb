"""Normalization along rows or columns: two statistics, then one expression.

    STANDARD    (x - mean) / sqrt(variance + epsilon)       layer, group, instance normalization
    ROOT_MEAN   x / sqrt(mean of squares + epsilon)
    NORM_1      x / sum of |x|, 0 where that is 0
    NORM_2      x / sqrt(sum of x squared), 0 where that is 0

The variance is the mean of the squares of the deviations, in a pass of its own. A long row is gone through by blocks that fit the
first-level cache, whose means and sums of squares are put together (Chan, Golub, LeVeque: Updating Formulae and a Pairwise
Algorithm for Computing Sample Variances, 1979): memory is read twice, not three times.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Sequence

from sardonyx.codegen.builder import Function
from sardonyx.codegen.expr import Expr
from sardonyx.codegen.folds import SUM
from sardonyx.codegen.lines import FIRST_FREE, Along, Beside, Operands, Place, RowStrip, Strip, Term, strips, write_lines
from sardonyx.codegen.module import Kernel, Module
from sardonyx.codegen.types import F32
from sardonyx.codegen.values import Value

__all__ = ["Norm", "write_normalize"]

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


_Load = Callable[[Place], Value]


def write_normalize(module: Module, symbol: str, along: Along, norm: Norm, *, after: Expr, besides: Sequence[Beside],
                    saved: int = 0) -> None:  # fmt: skip
    """Write the kernel `symbol`.

    Buffers are X, Y (which may be X), `saved` arrays for statistics (the mean and 1 / deviation of STANDARD, else that of
    ROOT_MEAN), and those beside; parameters as `lines` says, with epsilon as `float_word` before the walk.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        along: what is normalized.
        norm: how.
        after: what is stored, of argument 0 (the normalized element) and the tensors beside (from argument 1 on).
        besides: the tensors beside.
        saved: how many statistics are stored.
    """
    with module.kernel(symbol) as b:
        x, y = b.buffer(X, F32), b.buffer(Y, F32)
        operands = Operands(b, besides, first_buffer=_NEXT_BUFFER + saved, first_param=_WALK)
        for strip in strips(b, along):
            element, statistics = _NORMS[norm](b, strip, lambda place: x.load(place.offset, place.span))
            for number, values in enumerate(statistics[:saved]):
                strip.put(b.buffer(_NEXT_BUFFER + number, F32), values)
            write_lines(strip, y, after, operands, element)


_Result = tuple[Term, list[list[Value]]]
"""The normalized element of a place, and the statistics."""


def _standard(b: Kernel, strip: Strip, load: _Load) -> _Result:
    means, squares = _moments(b, strip, load)
    inverses = [1 / b.sqrt(square / strip.count.to(F32) + b.param_float(_EPSILON)) for square in squares]
    return lambda place: (load(place) - means[place.number]) * inverses[place.number], [means, inverses]


def _moments(b: Kernel, strip: Strip, load: _Load) -> tuple[list[Value], list[Value]]:
    """For each fold its mean, and the sum of the squares of the deviations."""
    if isinstance(strip, RowStrip) and strip.width == 1:
        mean, square = _moments_by_blocks(b, strip, load)
        return [mean], [square]
    means = [total / strip.count.to(F32) for total in strip.fold(SUM, load)]
    return means, strip.fold(SUM, lambda place: _square(load(place) - means[place.number]))


def _moments_by_blocks(b: Kernel, strip: RowStrip, load: _Load) -> tuple[Value, Value]:
    """Take up block after block: what came before has `first` elements, a mean, and squares."""
    mean, squares = b.variable(b.const(F32, 0)), b.variable(b.const(F32, 0))
    with b.loop(0, b.max(strip.count, 1), _CACHED) as first:
        last = b.min(first + _CACHED, strip.count)
        (total,) = strip.fold_range(SUM, load, first, last)
        block_mean = total / (last - first).to(F32)
        (block_squares,) = strip.fold_range(SUM, functools.partial(_deviation, load, block_mean), first, last)
        difference = block_mean - mean.value
        weight = (last - first).to(F32) / last.to(F32)
        mean.add(difference * weight)
        squares.add(block_squares + difference * (difference * (weight * first.to(F32))))
    return mean.value, squares.value


def _deviation(load: _Load, mean: Value, place: Place) -> Value:
    return _square(load(place) - mean)


def _root_mean(b: Kernel, strip: Strip, load: _Load) -> _Result:
    squares = strip.fold(SUM, lambda place: _square(load(place)))
    inverses = [1 / b.sqrt(square / strip.count.to(F32) + b.param_float(_EPSILON)) for square in squares]
    return lambda place: load(place) * inverses[place.number], [inverses]


def _norm_1(b: Kernel, strip: Strip, load: _Load) -> _Result:
    return _divided(b, load, strip.fold(SUM, lambda place: b.abs(load(place))))


def _norm_2(b: Kernel, strip: Strip, load: _Load) -> _Result:
    return _divided(b, load, [b.sqrt(total) for total in strip.fold(SUM, lambda place: _square(load(place)))])


def _divided(b: Function, load: _Load, norms: Sequence[Value]) -> _Result:
    divisors = [b.select(norm.eq(0), norm.like(1), norm) for norm in norms]
    return lambda place: load(place) / divisors[place.number], []


def _square(value: Value) -> Value:
    return value * value


_NORMS: dict[Norm, Callable[[Kernel, Strip, _Load], _Result]] = {
    Norm.STANDARD: _standard,
    Norm.ROOT_MEAN: _root_mean,
    Norm.NORM_1: _norm_1,
    Norm.NORM_2: _norm_2,
}
