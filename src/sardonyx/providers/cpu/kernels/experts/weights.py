"""Pack the weights of experts: panels of one expert after the other, the two halves of a gated layer one behind the other.

W (E, out, in)                     [E][out / width][in][width]
gate and linear rows in turn       all rows of the gate, then the linear ones
linear rows in a second tensor     the same
"""

from __future__ import annotations

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.bit_fields import unpack_bits
from sardonyx.codegen.kernels.pack import aligned_zeros, pack_columns
from sardonyx.codegen.kernels.panels import BlockPanels
from sardonyx.dtypes import Array
from sardonyx.ir import Tensor, Value
from sardonyx.providers.cpu.operands import constant_of

__all__ = ["PER_ROW", "Numbers", "ordered", "pack_numbers", "pack_plain"]

PER_ROW = 128
"""Elements of a block of a row that has one scale."""


def ordered(array: Array, linear: Array | None, *, alternates: bool) -> Array:
    """Return (E, out, …) with the rows of the gate first; `linear` are the others, where they are apart."""
    if alternates:
        return np.concatenate([array[:, ::2], array[:, 1::2]], axis=1)
    return array if linear is None else np.concatenate([array, linear], axis=1)


def pack_plain(weights: Tensor, linear: Value | None, alternates: bool, width: int) -> Array:
    """Return the panels of plain weights (E, out, in); those that are narrow in the file are narrow in panels."""
    tensors = [weights] if linear is None or linear.constant is None else [weights, linear.constant]
    narrow = [tensor.narrow for tensor in tensors if tensor.narrow is not None]
    if len(narrow) == len(tensors) and len({tensor.dtype for tensor in narrow}) == 1:
        tensors = narrow
    array, other = tensors[0].numpy(), tensors[1].numpy() if len(tensors) > 1 else None
    E, _, K = array.shape
    rows = array.shape[1] + (0 if other is None else other.shape[1])
    packed = aligned_zeros((E, -(-rows // width), K, width), array.dtype)
    for expert in range(E):
        here = slice(expert, expert + 1)
        matrix = ordered(array[here], None if other is None else other[here], alternates=alternates)[0]
        packed[expert] = pack_columns(matrix.T, width, array.dtype)
    return packed


@dataclasses.dataclass(frozen=True, slots=True)
class Numbers:
    """Weights of few bits: each is a value of the model, compared by identity."""

    weights: Value | None
    """The numbers (E, out, in x bits / 8)."""
    scales: Value | None
    """(E, out) or (E, out, blocks)."""
    zeros: Value | None
    """Zero points, packed along the blocks of each row, or along rows of one block; None where all are half the range."""


def pack_numbers(
    weights: Tensor, panels: BlockPanels, numbers: Numbers, linear: Numbers | None, alternates: bool, blocks: int, width: int
) -> Array:
    """Return the panels of weights of few bits, whose rows have `blocks` scales."""
    first, second = _read(numbers, panels.bits, blocks), None if linear is None else _read(linear, panels.bits, blocks)
    codes = ordered(first.codes, None if second is None else second.codes, alternates=alternates)
    scales = ordered(first.scales, None if second is None else second.scales, alternates=alternates)
    zeros = None
    if first.zeros is not None:
        zeros = ordered(first.zeros, None if second is None else second.zeros, alternates=alternates)
    E, rows, row_bytes = codes.shape
    stored = -(-(row_bytes * 8 // panels.bits) // panels.block_size)
    packed = aligned_zeros((E, -(-rows // width), stored, panels.block_bytes(width)), np.uint8)
    for expert in range(E):
        packed[expert] = _pack_expert(
            codes[expert],
            panels,
            _for_blocks(scales[expert], stored),
            None if zeros is None else _for_blocks(zeros[expert], stored),
            width,
        )
    return packed


def _pack_expert(codes: Array, panels: BlockPanels, scales: Array, zeros: Array | None, width: int) -> Array:
    stored = scales.shape[1]

    def numbers(columns: slice) -> Array:
        unpacked = unpack_bits(codes[columns], panels.bits)
        padded = np.zeros((len(unpacked), stored * panels.block_size), np.uint8)
        padded[:, : unpacked.shape[1]] = unpacked
        return padded.reshape(len(unpacked), stored, panels.block_size)

    return panels.pack(numbers, scales, zeros, width)


def _for_blocks(numbers: Array, stored: int) -> Array:
    """Return (rows, stored): numbers of rows are those of all their blocks."""
    return np.repeat(numbers, stored, axis=1) if numbers.shape[1] == 1 else numbers


@dataclasses.dataclass(frozen=True, slots=True)
class _Read:
    """Elements of Numbers."""

    codes: Array
    """uint8 (E, rows, bytes of a row)."""
    scales: Array
    """float32 (E, rows, blocks)."""
    zeros: Array | None
    """uint8 (E, rows, blocks)."""


def _read(numbers: Numbers, bits: int, blocks: int) -> _Read:
    codes, scales, zeros = (constant_of(value) for value in (numbers.weights, numbers.scales, numbers.zeros))
    if codes is None or scales is None:
        raise ValueError("weights of few bits that are no constants were claimed")
    E, rows = codes.shape[:2]
    factors = scales.astype(np.float32).reshape(E, rows, blocks)
    if zeros is not None:
        points = unpack_bits(zeros, bits)
        zeros = points[:, :rows, None] if zeros.ndim == 2 else points[:, :, :blocks]
    return _Read(codes, factors, zeros)
