"""Tensors of TensorFlow Lite models: element types, shapes, quantization, and constants.

    tensor = TensorInfo.of(table, index)
    tensor.dtype, tensor.shape, tensor.quantization

A constant's elements stay in the file until they are asked for. A dimension of the signature that is -1 is a symbol.
"""

from __future__ import annotations

import math

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array, DataType
from sardonyx.formats.flat.reader import Table
from sardonyx.ir.shape import Shape, symbol

__all__ = ["INTEGERS", "Blocks", "Quantization", "TensorInfo"]

_TYPES = {
    "FLOAT32": DataType.FLOAT,
    "FLOAT16": DataType.FLOAT16,
    "INT32": DataType.INT32,
    "UINT8": DataType.UINT8,
    "INT64": DataType.INT64,
    "STRING": DataType.STRING,
    "BOOL": DataType.BOOL,
    "INT16": DataType.INT16,
    "COMPLEX64": DataType.COMPLEX64,
    "INT8": DataType.INT8,
    "FLOAT64": DataType.DOUBLE,
    "COMPLEX128": DataType.COMPLEX128,
    "UINT64": DataType.UINT64,
    "UINT32": DataType.UINT32,
    "UINT16": DataType.UINT16,
    "INT4": DataType.INT4,
    "UINT4": DataType.UINT4,
    "INT2": DataType.INT2,
    "BFLOAT16": DataType.BFLOAT16,
    "FLOAT8_E4M3FN": DataType.FLOAT8E4M3FN,
    "FLOAT8_E5M2": DataType.FLOAT8E5M2,
}
_HANDLES = ("RESOURCE", "VARIANT")

INTEGERS = frozenset([DataType.INT8, DataType.UINT8, DataType.INT16, DataType.UINT16, DataType.INT4, DataType.UINT4, DataType.INT2])
"""The types of elements that stand for real numbers where a tensor has a scale."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Quantization:
    """What the integers of a tensor stand for: scale x (integer - zero point)."""

    scales: Array
    """float32, (1,) or one for each index of `axis`."""
    zero_points: Array
    """int64, as many."""
    axis: int
    """The dimension that scales belong to, where there are several."""

    @property
    def is_per_tensor(self) -> bool:
        """Whether one scale serves the whole tensor."""
        return len(self.scales) == 1

    def same_as(self, other: Quantization | None) -> bool:
        """Return whether integers stand for the same numbers under both."""
        return (
            other is not None
            and np.array_equal(self.scales, other.scales)
            and np.array_equal(self.zero_points, other.zero_points)
            and (self.is_per_tensor or self.axis == other.axis)
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Blocks:
    """How a matrix is quantized that has a scale for each so many elements of a row."""

    scales: int
    """The tensor of the scales, by its number in the subgraph; (rows, blocks of a row)."""
    zero_points: int
    """That of the zero points; no such tensor where they are 0."""
    size: int
    """How many elements have one scale; at least 1."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class TensorInfo:
    """What a file says about a tensor."""

    table: Table
    """Its table."""
    index: int
    """Its number in the subgraph."""
    name: str
    """Its name; may be empty, and need not be the only one of that name."""
    kind: str
    """Its type's name in the file."""
    dtype: DataType
    """Its element type; UNDEFINED for handles of resources."""
    shape: tuple[int, ...]
    """Its sizes in the file, which those of a run may differ from where the signature has symbols."""
    signature: tuple[int, ...]
    """Its sizes, -1 where a run decides."""
    has_shape: bool
    """Whether the file gives a shape at all; an empty one may mean that not even the rank is known."""
    quantization: Quantization | None
    """What its integers stand for; None for plain numbers, and where there are `blocks`."""
    blocks: Blocks | None = None
    """What they stand for where scales are of blocks."""

    @staticmethod
    def of(table: Table, index: int) -> TensorInfo:
        """Return what `table` says; raises InvalidFlatBuffer where it contradicts itself."""
        kind = table.choice("type")
        dtype = _TYPES.get(kind, DataType.UNDEFINED)
        if dtype is DataType.UNDEFINED and kind not in _HANDLES:
            table.refuse("type", f"tensors of {kind} are not supported")
        shape = tuple(table.numbers("shape").tolist())
        signature = tuple(table.numbers("shape_signature").tolist()) or shape
        if len(signature) != len(shape):
            table.refuse("shape_signature", f"it has {len(signature)} dimensions, and the shape {len(shape)}")
        shape = tuple(1 if size == -1 else size for size in shape)
        if min(shape, default=0) < 0 or min(signature, default=0) < -1 or math.prod(map(max, shape, (1,) * len(shape))) >= 1 << 62:
            table.refuse("shape", f"{list(shape)} are no sizes")
        known = bool(shape) or table.flag("has_rank") or bool(table.integer("buffer"))
        blocks = _blocks(table)
        scales = _quantization(table, shape, dtype) if blocks is None else None
        return TensorInfo(table, index, table.text("name"), kind, dtype, shape, signature, known, scales, blocks)

    @property
    def rank(self) -> int:
        """How many dimensions it has in the file."""
        return len(self.shape)

    @property
    def is_variable(self) -> bool:
        """Whether it keeps its elements from run to run."""
        return self.table.flag("is_variable")

    @property
    def is_quantized(self) -> bool:
        """Whether its integers stand for real numbers."""
        return self.quantization is not None and self.dtype in INTEGERS

    @property
    def is_dynamic(self) -> bool:
        """Whether a run decides about a size."""
        return -1 in self.signature or not self.has_shape

    def dims(self) -> Shape | None:
        """Return its dimensions, with a symbol of its own name for each that a run decides about; None for an unknown rank."""
        if not self.has_shape:
            return None
        return tuple(symbol(f"{self.name or 'tensor'}_{axis}") if size < 0 else size for axis, size in enumerate(self.signature))

    def same_scale(self, other: TensorInfo) -> bool:
        """Return whether the integers of both stand for the same numbers, or both are plain."""
        if self.quantization is None or not self.is_quantized:
            return not other.is_quantized
        return self.dtype is other.dtype and self.quantization.same_as(other.quantization)


def _blocks(table: Table) -> Blocks | None:
    found = table.table("quantization")
    details = None if found is None else found.union("details")
    if found is None or details is None:
        return None
    if details.name != "BlockwiseQuantization":
        found.refuse("details", f"{details.name} is not supported; scales may be of a tensor, an axis, or blocks")
    if details.integer("block_size") < 1:
        details.refuse("block_size", f"it is {details.integer('block_size')}; a block has elements")
    return Blocks(details.integer("scales"), details.integer("zero_points"), details.integer("block_size"))


def _quantization(table: Table, shape: tuple[int, ...], dtype: DataType) -> Quantization | None:
    found = table.table("quantization")
    if found is None:
        return None
    scales = found.numbers("scale")
    if len(scales) == 0:
        return None
    points = found.numbers("zero_point")
    if len(points) not in (0, 1, len(scales)):
        found.refuse("zero_point", f"there are {len(points)} zero points for {len(scales)} scales")
    axis = found.integer("quantized_dimension")
    if len(scales) > 1 and not (0 <= axis < len(shape) and shape[axis] == len(scales)):
        found.refuse("scale", f"there are {len(scales)} scales along axis {axis} of a tensor of shape {list(shape)}")
    if not np.isfinite(scales).all():
        found.refuse("scale", "a scale is not finite")
    zero_points = np.zeros(len(scales), np.int64) if len(points) == 0 else np.broadcast_to(points, len(scales)).astype(np.int64)
    if dtype in INTEGERS:
        lowest, highest = _limits(dtype)
        if zero_points.min() < lowest or zero_points.max() > highest:
            found.refuse("zero_point", f"a zero point is not within the {dtype} of the tensor")
    return Quantization(scales.astype(np.float32), zero_points, axis)


def _limits(dtype: DataType) -> tuple[int, int]:
    bits = {DataType.INT4: 4, DataType.UINT4: 4, DataType.INT2: 2}.get(dtype, dtype.numpy.itemsize * 8)
    if dtype in (DataType.UINT8, DataType.UINT16, DataType.UINT4):
        return 0, (1 << bits) - 1
    return -(1 << bits - 1), (1 << bits - 1) - 1
