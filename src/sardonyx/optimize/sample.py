"""Random inputs that fit values of a graph: of their types and shapes, within what is known of their elements.

    for feed in samples(values, seed=7): ...       a few, each a mapping from value to array, the same for the same seed

The first feeds are varied; later ones are tamer (equal sizes, indices in range anywhere), for graphs that refuse the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from sardonyx.dtypes import Array, DataType, is_float
from sardonyx.ir import Shape, TensorType, Value
from sardonyx.ir.shape import evaluate, symbols_in
from sardonyx.optimize.bounds import Interval, bounds_of

__all__ = ["MOST_ELEMENTS", "samples", "unsuitable"]

MOST_ELEMENTS = 1 << 26
"""The largest input that is drawn."""
_SIZES: tuple[tuple[int, ...], ...] = ((3, 5, 2, 7, 4), (8,), (2,), (1,), (64,), (2, 2000), (500,))
"""What symbols of dimensions become, in turn, in one feed after the other."""
_INTEGERS: tuple[tuple[int, int], ...] = ((-4, 9), (0, 2), (0, 2), (0, 1), (0, 2), (0, 2), (0, 2))
"""Between what integers are drawn, the second excluded."""
_WORDS = ("", "a", "Onyx", "sard")


def unsuitable(values: Sequence[Value]) -> str | None:
    """Return why no inputs can be drawn for `values`; None where they can."""
    for value in values:
        if not isinstance(value.type, TensorType) or value.shape is None:
            return f"{value!r} is {value.type}, of which no random one can be drawn"
    return None


def samples(values: Sequence[Value], seed: int, overridable: frozenset[Value] = frozenset()) -> Iterator[dict[Value, Array]]:
    """Yield some feeds for `values`, all of them tensors of known rank."""
    limits = {value: bounds_of(value, overridable) for value in values}
    for attempt, pattern in enumerate(_SIZES):
        generator = np.random.default_rng((seed, attempt))
        sizes = _sizes(values, pattern)
        shapes = {value: [evaluate(dim, sizes) for dim in value.shape or ()] for value in values}
        if all(_is_usable(value.shape or (), shape) for value, shape in shapes.items()):
            yield {value: _draw(generator, value, shapes[value], limits[value], attempt) for value in values}


def _sizes(values: Sequence[Value], pattern: Sequence[int]) -> dict[str, int]:
    names = sorted({name for value in values for dim in value.shape or () for name in symbols_in(dim)})
    return {name: pattern[index % len(pattern)] for index, name in enumerate(names)}


def _is_usable(dims: Shape, shape: Sequence[int]) -> bool:
    """Return whether a tensor is neither too large nor, but where the model says so, empty."""
    known = all(size > 0 or dim == 0 for dim, size in zip(dims, shape, strict=True))
    return known and math.prod(shape) <= MOST_ELEMENTS


def _draw(generator: np.random.Generator, value: Value, shape: Sequence[int], limits: Interval, attempt: int) -> Array:
    dtype = value.dtype or DataType.FLOAT
    if dtype is DataType.STRING:
        return np.asarray(generator.choice(np.array(_WORDS, object), shape), object)
    if dtype is DataType.BOOL:
        return np.asarray(generator.random(shape) < 0.5)
    if is_float(dtype) or dtype.numpy.kind == "c":
        numbers = generator.standard_normal(shape)
        return np.asarray(np.clip(numbers, *limits)).astype(dtype.numpy)
    low, high = _INTEGERS[attempt]
    least, most = max(low, limits[0]), min(high - 1, limits[1])
    least, most = (limits[0], limits[0]) if least > most else (least, most)
    return np.asarray(generator.integers(int(least), int(most) + 1, shape)).astype(dtype.numpy)
