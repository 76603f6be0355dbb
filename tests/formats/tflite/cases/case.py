"""What a case is, and short ways to write one."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from support.flat_models import KINDS, Sketch

from sardonyx.dtypes import Array

Options = tuple[str, Mapping[str, Any]]

LIMITS = {"INT8": (-128, 127), "UINT8": (0, 255), "INT16": (-32768, 32767), "INT4": (-8, 7), "INT2": (-2, 1)}


@dataclasses.dataclass(frozen=True)
class Case:
    """A model and what to feed it."""

    name: str
    data: bytes
    feeds: Sequence[Array]
    steps: int = 1
    """By how many steps integers may differ."""
    tolerance: float = 1e-5
    """By how much floats may, relative to the greatest."""
    peer: str = "reference"
    """Which kernels of LiteRT are right: the reference ones, the optimized ones, or none."""
    is_open: bool = False
    """Whether a run decides about the shapes of the outputs."""
    runs: int = 1
    """How often it is run; the last results count."""


@dataclasses.dataclass(frozen=True)
class Q:
    """An input of integers that stand for real numbers."""

    array: Array
    scale: tuple[Any, ...]
    kind: str = ""


def drawn(shape: Sequence[int], kind: str = "FLOAT32", low: float = -2, high: float = 2, seed: int = 0) -> Array:
    """Return random elements of a type."""
    rng = np.random.default_rng([seed, *shape])
    if kind in LIMITS:
        first, last = LIMITS[kind]
        return rng.integers(first, last + 1, shape).astype(
            {"INT8": np.int8, "UINT8": np.uint8, "INT16": np.int16, "INT4": np.int8, "INT2": np.int8}[kind]
        )
    if kind == "BOOL":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in ("INT32", "INT64"):
        return rng.integers(int(low), int(high) + 1, shape).astype(kind.lower())
    if kind == "COMPLEX64":
        return (rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)).astype(np.complex64)
    return rng.uniform(low, high, shape).astype(kind.lower())


def case(
    name: str,
    code: str,
    inputs: Sequence[Any],
    outputs: Sequence[tuple[Any, ...]],
    options: Options | None = None,
    *,
    constants: Sequence[int] = (),
    steps: int = 1,
    tolerance: float = 1e-5,
    version: int = 1,
    peer: str = "reference",
    is_open: bool = False,
    **fields: Any,
) -> Case:
    """Return a case of one operator.

    Args:
        name: its name.
        code: the operator.
        inputs: arrays, `Q` for quantized ones, None for one that is left out.
        outputs: arguments of `Sketch.tensor`.
        options: its options.
        constants: which inputs are constants; the others are fed.
        steps: by how many steps integers may differ.
        tolerance: by how much floats may differ.
        version: of the operator.
        peer: which kernels of LiteRT are right: "reference", "optimized" or "".
        is_open: whether a run decides about the shapes of the outputs.
        fields: further fields of the operator.
    """
    sketch = Sketch()
    indices, feeds = [], []
    for index, item in enumerate(inputs):
        if item is None:
            indices.append(-1)
            continue
        array, scale, kind = (item.array, item.scale, item.kind) if isinstance(item, Q) else (item, None, "")
        kind = kind or KINDS[array.dtype.name]
        if index in constants:
            indices.append(sketch.constant(_PACKED.get(kind, np.asarray)(array), scale, kind=kind, shape=array.shape))
        else:
            indices.append(sketch.input(array.shape, kind, scale))
            feeds.append(array)
    made = [sketch.tensor(*output) for output in outputs]
    sketch.operator(code, indices, made, options, version=version, **fields)
    return Case(name, sketch.model(made), feeds, steps, tolerance, peer, is_open)


def packed4(array: Array) -> Array:
    """Return 4-bit integers two by two in bytes."""
    flat = array.reshape(-1).astype(np.uint8) & 15
    flat = np.concatenate([flat, np.zeros(len(flat) % 2, np.uint8)])
    return (flat[::2] | flat[1::2] << 4).astype(np.uint8)


def packed2(array: Array) -> Array:
    """Return 2-bit integers four by four in bytes."""
    flat = array.reshape(-1).astype(np.uint8) & 3
    flat = np.concatenate([flat, np.zeros(-len(flat) % 4, np.uint8)])
    return (flat[::4] | flat[1::4] << 2 | flat[2::4] << 4 | flat[3::4] << 6).astype(np.uint8)


_PACKED = {"INT4": packed4, "INT2": packed2}


def blockwise(sketch: Sketch, rows: int, depth: int, size: int) -> int:
    """Add a matrix of 4 bits with a random scale for each `size` elements of a row; returns its tensor."""
    scales = sketch.constant(drawn((rows, depth // size), low=0.01, high=0.02).astype(np.float16))
    details = {"scales": scales, "zero_points": -1, "block_size": size}
    quantization = {"details": ("BlockwiseQuantization", details)}
    return sketch.constant(packed4(drawn((rows, depth), "INT4")), kind="INT4", shape=(rows, depth), quantization=quantization)
