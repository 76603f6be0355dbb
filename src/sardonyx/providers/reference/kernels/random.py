"""Random numbers.

A node with a `seed` draws the same numbers at every call. Nodes without one draw from a source of the whole process: different
numbers at every call, the same ones again after `set_seed`, provided that the calls come in the same order.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

import numpy as np

from sardonyx.arguments import as_index
from sardonyx.cancellation import check_cancelled
from sardonyx.dtypes import Array, DataType, is_float
from sardonyx.errors import InvalidArgument
from sardonyx.forks import new_lock
from sardonyx.providers.reference.algorithms.blocks import ROW_BLOCK_ELEMENTS
from sardonyx.providers.reference.algorithms.dimensions import as_float, check_output_size
from sardonyx.providers.reference.algorithms.element_types import element_type
from sardonyx.providers.reference.algorithms.precision import compute_type, quiet
from sardonyx.providers.reference.registry import Call, kernel

__all__ = [
    "bernoulli",
    "dropout",
    "dropout_1",
    "dropout_7",
    "dropout_10",
    "generator_of",
    "multinomial",
    "random_normal",
    "random_normal_like",
    "random_uniform",
    "random_uniform_like",
    "set_seed",
]


class _Source:
    """Hands out generators that are independent of each other; any thread may ask. `numpy.random` is loaded when one does."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._sequence: np.random.SeedSequence | None = None

    def restart(self, seed: int) -> None:
        """Begin anew from `seed`, a number of 0 or more."""
        with self._lock:
            self._sequence = np.random.SeedSequence(seed)

    def generator(self) -> np.random.Generator:
        """Return the next generator."""
        with self._lock:
            if self._sequence is None:
                self._sequence = np.random.SeedSequence()
            (child,) = self._sequence.spawn(1)
        return np.random.default_rng(child)


_SOURCE = _Source()


def set_seed(seed: int) -> None:
    """Make the nodes without a seed of their own, in the whole process, repeat their numbers from here on.

    A negative seed is the number of 64 bits that has its bits.
    """
    _SOURCE.restart(as_index("seed", seed) % 2**64)


def generator_of(seed: float | None) -> np.random.Generator:
    """Return a generator that `seed` fixes, or the next of the process where it is None."""
    if seed is None:
        return _SOURCE.generator()
    (bits,) = struct.unpack("<Q", struct.pack("<d", seed))
    return np.random.default_rng(bits)


def _float_type(dtype: int | None, default: np.dtype[np.generic]) -> np.dtype[np.generic]:
    """Return the floating-point type numbered `dtype`, or `default` where it is None."""
    found = DataType.from_numpy(default) if dtype is None else element_type(dtype, "dtype")
    if not is_float(found):
        raise InvalidArgument(f"the output would have type {found}; expected a floating-point type: set dtype")
    return found.numpy


def _require_shape(shape: Sequence[int]) -> None:
    if any(size < 0 for size in shape):
        raise InvalidArgument(f"shape={list(shape)} has a negative size; expected sizes of 0 or more")
    check_output_size(shape, 8)


def _drawn(shape: Sequence[int], wide: np.dtype[np.generic], draw: Callable[[Array], object]) -> Array:
    """Return an array that `draw` fills block after block: float64 where `wide` is that, else float32.

    Raises as `check_cancelled` between blocks.
    """
    found = np.empty(tuple(shape), np.float64 if wide == np.float64 else np.float32)
    elements = found.reshape(-1)
    for start in range(0, elements.size, ROW_BLOCK_ELEMENTS):
        check_cancelled()
        draw(elements[start : start + ROW_BLOCK_ELEMENTS])
    return found


def _normal(shape: Sequence[int], dtype: np.dtype[np.generic], mean: float, scale: float, seed: float | None) -> Array:
    """Return numbers of a normal distribution, drawn in the compute type of `dtype`."""
    _require_shape(shape)
    wide = compute_type(dtype)
    generator = generator_of(seed)

    def draw(out: Array) -> None:
        generator.standard_normal(dtype=out.dtype.type, out=out)
        out *= wide.type(scale)
        out += wide.type(mean)

    return _drawn(shape, wide, draw).astype(dtype, copy=False)


def _uniform(shape: Sequence[int], dtype: np.dtype[np.generic], low: float, high: float, seed: float | None) -> Array:
    """Return numbers of a uniform distribution on [low, high), drawn in the compute type of `dtype`."""
    _require_shape(shape)
    wide = compute_type(dtype)
    generator = generator_of(seed)

    def draw(out: Array) -> None:
        generator.random(dtype=out.dtype.type, out=out)
        out *= wide.type(high - low)
        out += wide.type(low)

    return _drawn(shape, wide, draw).astype(dtype, copy=False)


@kernel("RandomNormal")
@quiet
def random_normal(
    _node: Call, *, shape: tuple[int, ...], dtype: int = 1, mean: float = 0.0, scale: float = 1.0, seed: float | None = None
) -> Array:
    """Draw a tensor of `shape` and float type `dtype` from the normal distribution. ONNX RandomNormal-1, -22."""
    return _normal(shape, _float_type(dtype, np.dtype(np.float32)), mean, scale, seed)


@kernel("RandomNormalLike")
@quiet
def random_normal_like(
    _node: Call, x: Array, *, dtype: int | None = None, mean: float = 0.0, scale: float = 1.0, seed: float | None = None
) -> Array:
    """Draw a tensor of the shape, and unless `dtype` says otherwise the type, of x. ONNX RandomNormalLike-1, -22."""
    return _normal(x.shape, _float_type(dtype, x.dtype), mean, scale, seed)


@kernel("RandomUniform")
@quiet
def random_uniform(
    _node: Call, *, shape: tuple[int, ...], dtype: int = 1, low: float = 0.0, high: float = 1.0, seed: float | None = None
) -> Array:
    """Draw a tensor of `shape` and float type `dtype` evenly from [low, high). ONNX RandomUniform-1, -22."""
    return _uniform(shape, _float_type(dtype, np.dtype(np.float32)), low, high, seed)


@kernel("RandomUniformLike")
@quiet
def random_uniform_like(
    _node: Call, x: Array, *, dtype: int | None = None, low: float = 0.0, high: float = 1.0, seed: float | None = None
) -> Array:
    """Draw a tensor of the shape, and unless `dtype` says otherwise the type, of x. ONNX RandomUniformLike-1, -22."""
    return _uniform(x.shape, _float_type(dtype, x.dtype), low, high, seed)


@kernel("Bernoulli")
@quiet
def bernoulli(_node: Call, x: Array, *, dtype: int | None = None, seed: float | None = None) -> Array:
    """Return 1 with probability x, else 0, for each element; type `dtype`, or that of x. ONNX Bernoulli-15, -22."""
    generator = generator_of(seed)
    drawn = _drawn(x.shape, np.dtype(np.float64), lambda out: generator.random(out=out))
    return np.asarray(drawn < x.astype(np.float64)).astype(x.dtype if dtype is None else element_type(dtype, "dtype").numpy)


@kernel("Multinomial")
@quiet
def multinomial(_node: Call, x: Array, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None) -> Array:
    """Draw `sample_size` classes per row of x (batch, classes), log-weights; int32 or int64 out. ONNX Multinomial-7, -22."""
    if x.ndim != 2 or x.shape[1] == 0:
        raise InvalidArgument(f"the input has shape {x.shape}; expected (batch, classes), one class at least")
    if sample_size < 1:
        raise InvalidArgument(f"sample_size={sample_size}; expected 1 or more")
    if dtype not in (DataType.INT32, DataType.INT64):
        raise InvalidArgument(f"dtype={dtype}; expected 6 (int32) or 7 (int64)")
    _require_shape((len(x), sample_size))
    exact = x.astype(np.float64)
    sums = np.cumsum(np.exp(exact - exact.max(axis=1, keepdims=True)), axis=1)
    drawn = generator_of(seed).random((len(x), sample_size)) * sums[:, -1:]
    out = np.empty(drawn.shape, DataType(dtype).numpy)
    for row, limits in enumerate(sums):
        check_cancelled()
        out[row] = np.minimum(np.searchsorted(limits, drawn[row], side="right"), x.shape[1] - 1)
    return out


@kernel("Dropout", since=1)
@quiet
def dropout_1(_node: Call, x: Array, *, is_test: int = 0, ratio: float = 0.5) -> tuple[Array, Array]:
    """Return x, or unless `is_test` x with a share `ratio` dropped, and the mask in the type of x. ONNX Dropout-1, Dropout-6."""
    y, mask = (x, np.ones(x.shape, np.bool_)) if is_test else _drop(x, ratio, None)
    return y, mask.astype(x.dtype)


@kernel("Dropout", since=7)
def dropout_7(node: Call, x: Array) -> tuple[Array, ...]:
    """Return x, and if used a mask of ones in the type of x. ONNX Dropout-7."""
    return _keep_all(node, x, x.dtype)


@kernel("Dropout", since=10)
def dropout_10(node: Call, x: Array) -> tuple[Array, ...]:
    """Return x, and if used a mask of True. ONNX Dropout-10."""
    return _keep_all(node, x, np.dtype(np.bool_))


@kernel("Dropout", since=12)
@quiet
def dropout(
    node: Call, x: Array, ratio: Array | None = None, training_mode: Array | None = None, *, seed: int | None = None
) -> tuple[Array, ...]:
    """Return x, or in training x with a share `ratio` dropped (0.5), and the mask, True for what stays. ONNX Dropout-12 to -22."""
    if training_mode is None or not training_mode.all():
        return _keep_all(node, x, np.dtype(np.bool_))
    share = 0.5 if ratio is None else as_float(ratio, "ratio")
    return _drop(x, share, seed)


def _keep_all(node: Call, x: Array, mask_type: np.dtype[np.generic]) -> tuple[Array, ...]:
    """Return X, and a mask of ones where anything uses it."""
    return (x, np.ones(x.shape, mask_type)) if any(node.present[1:]) else (x,)


def _drop(x: Array, ratio: float, seed: int | None) -> tuple[Array, Array]:
    """Return x / (1 - ratio) where a coin of probability 1 - ratio says so, else 0; and what the coin said.

    A seed starts NumPy's Mersenne Twister, whose numbers the conformance suite of onnx expects.
    """
    if not 0.0 <= ratio < 1.0:
        raise InvalidArgument(f"ratio={ratio}; expected a share in [0, 1)")
    if ratio == 0.0:
        return x, np.ones(x.shape, np.bool_)
    drawn = _SOURCE.generator().random(x.shape) if seed is None else np.random.RandomState(seed % (1 << 32)).uniform(size=x.shape)
    keep = np.asarray(drawn >= ratio)
    scaled = x.astype(compute_type(x.dtype), copy=False) / (1.0 - ratio)
    return np.where(keep, scaled, scaled.dtype.type(0)).astype(x.dtype), keep
