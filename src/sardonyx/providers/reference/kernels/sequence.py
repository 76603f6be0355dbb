"""Sequences (lists of tensors) and optionals (a value or None)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import Array, OnnxValue
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.dimensions import as_int, as_ints, normalize_axis, normalize_position
from sardonyx.providers.reference.registry import Call, kernel

__all__: list[str] = []


def _check_types(tensors: Sequence[Array]) -> None:
    types = {tensor.dtype for tensor in tensors}
    if len(types) > 1:
        raise InvalidArgument(f"the tensors have types {sorted(map(str, types))}; a sequence holds tensors of one type")


@kernel("SequenceConstruct", since=11)
def sequence_construct(_node: Call, *inputs: Array) -> list[Array]:
    """Make a sequence of the inputs, which have one type. ONNX SequenceConstruct-11."""
    _check_types(inputs)
    return list(inputs)


@kernel("SequenceEmpty", since=11)
def sequence_empty(_node: Call) -> list[Array]:
    """Make an empty sequence; its element type is known to the model only. ONNX SequenceEmpty-11."""
    return []


@kernel("SequenceInsert", since=11)
def sequence_insert(_node: Call, sequence: list[Array], tensor: Array, position: Array | None = None) -> list[Array]:
    """Copy the sequence with `tensor` before `position` in [-n, n], or at the end. ONNX SequenceInsert-11."""
    _check_types([*sequence[:1], tensor])
    count = len(sequence)
    at = count if position is None else as_int(position, "position")
    if not -count <= at <= count:
        raise InvalidArgument(f"position={at} for a sequence of {count} tensors; expected [{-count}, {count}]")
    result = list(sequence)
    result.insert(at, tensor)
    return result


@kernel("SequenceErase", since=11)
def sequence_erase(_node: Call, sequence: list[Array], position: Array | None = None) -> list[Array]:
    """Copy the sequence without the tensor at `position` in [-n, n - 1], or the last. ONNX SequenceErase-11."""
    at = normalize_position(-1 if position is None else as_int(position, "position"), len(sequence))
    return sequence[:at] + sequence[at + 1 :]


@kernel("SequenceAt", since=11)
def sequence_at(_node: Call, sequence: list[Array], position: Array) -> Array:
    """Return the tensor at `position` in [-n, n - 1]; no copy. ONNX SequenceAt-11."""
    return sequence[normalize_position(as_int(position, "position"), len(sequence))]


@kernel("SequenceLength", since=11)
def sequence_length(_node: Call, sequence: list[Array]) -> Array:
    """Count the tensors: an int64 scalar. ONNX SequenceLength-11."""
    return np.array(len(sequence), np.int64)


@kernel("ConcatFromSequence", since=11)
def concat_from_sequence(_node: Call, sequence: list[Array], *, axis: int, new_axis: int = 0) -> Array:
    """Join the tensors along `axis`, or stack them along a new one there. ONNX ConcatFromSequence-11."""
    if not sequence:
        raise InvalidArgument("the sequence is empty; expected at least one tensor to join")
    shapes = [tensor.shape for tensor in sequence]
    at = normalize_axis(axis, len(shapes[0]) + (1 if new_axis else 0))
    kept = {shape if new_axis else shape[:at] + shape[at + 1 :] for shape in shapes}
    if len(kept) > 1 or len({len(shape) for shape in shapes}) > 1:
        raise InvalidArgument(f"the tensors have shapes {shapes}; except along axis {at} they must agree")
    return np.stack(sequence, axis=at) if new_axis else np.concatenate(sequence, axis=at)


@kernel("SplitToSequence", since=11)
def split_to_sequence(_node: Call, data: Array, split: Array | None = None, *, axis: int = 0, keepdims: int = 1) -> list[Array]:
    """Cut `data` along `axis` into a sequence: slices of one entry, chunks of a scalar's length, or given lengths. Views.

    Without `split`, keepdims=0 drops the axis. ONNX SplitToSequence-11.
    """
    at = normalize_axis(axis, data.ndim)
    length = data.shape[at]
    before = (slice(None),) * at
    if split is None:
        return [data[(*before, slice(k, k + 1) if keepdims else k)] for k in range(length)]
    if split.ndim == 0:
        chunk = as_int(split, "split")
        if chunk < 1:
            raise InvalidArgument(f"split={chunk}; expected a chunk length of at least 1")
        return [data[(*before, slice(start, start + chunk))] for start in range(0, length, chunk)]
    sizes = as_ints(split, "split")
    if any(size < 0 for size in sizes) or sum(sizes) != length:
        raise InvalidArgument(f"split={list(sizes)} for an axis of length {length}; expected lengths >= 0 that add up to it")
    ends = np.cumsum(sizes).tolist()
    return [data[(*before, slice(end - size, end))] for size, end in zip(sizes, ends, strict=True)]


@kernel("Optional", since=15)
def optional(_node: Call, value: OnnxValue = None) -> OnnxValue:
    """Wrap a tensor or sequence, or nothing, as an optional: the value itself, or None. ONNX Optional-15."""
    return value


@kernel("OptionalGetElement", since=15)
def optional_get_element(_node: Call, value: OnnxValue) -> OnnxValue:
    """Return what the optional holds; a tensor or sequence holds itself. ONNX OptionalGetElement-15, -18."""
    if value is None:
        raise InvalidArgument("the optional is empty; test it with OptionalHasElement before its element is taken")
    return value


@kernel("OptionalHasElement", since=15)
def optional_has_element(_node: Call, value: OnnxValue = None) -> Array:
    """Say whether the optional holds anything: a bool scalar. ONNX OptionalHasElement-15, -18."""
    return np.array(value is not None)
