"""If, Loop, Scan and SequenceMap: the operators whose attributes are graphs, here `Body` callables."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from sardonyx.config import LIMITS
from sardonyx.dtypes import Array, DataType, OnnxValue
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Dim, Expr, Graph
from sardonyx.ir.shape import evaluate
from sardonyx.providers.reference.registry import Body, Call, kernel

__all__ = ["GraphBody", "if_", "loop", "scan", "scan_batch", "sequence_map"]


@runtime_checkable
class GraphBody(Protocol):
    """A body that shows the graph it runs: what its outputs are, where a loop makes no iteration to tell."""

    graph: Graph
    """The graph."""


@kernel("If")
def if_(call: Call, cond: Array, *, then_branch: Body, else_branch: Body) -> tuple[OnnxValue, ...]:
    """Run the branch that `cond`, one boolean of any rank, selects; its outputs are the node's. Source: ONNX If-25."""
    return tuple(then_branch() if _read_scalar("cond", cond) else else_branch())


@kernel("Loop")
def loop(
    call: Call, trip_count: Array | None = None, cond: Array | None = None, *v_initial: OnnxValue, body: Body
) -> tuple[OnnxValue, ...]:
    """Repeat `body` while fewer than `trip_count` iterations are done and the condition holds.

    The body takes (iteration, condition, carried...) and gives (condition, carried..., scan outputs...). Carried values may be
    tensors of any shape, sequences and optionals. Scan outputs are stacked along a new first axis in O(iterations). Without
    `cond` the first iteration is unconditional and a false condition from the body still ends the loop, as in ONNX Runtime and
    in ONNX's reference evaluator. Source: ONNX Loop-25.
    """
    carried: list[OnnxValue] = list(v_initial)
    _expect_arity(body, 2 + len(carried), 1 + len(carried))
    collected = _Collected(body.output_count - 1 - len(carried))
    limit = None if trip_count is None else int(_read_scalar("M", trip_count))
    going = True if cond is None else bool(_read_scalar("cond", cond))
    for iteration in itertools.count():
        if not going or (limit is not None and iteration >= limit):
            break
        if iteration == LIMITS.iterations:
            raise InvalidArgument(
                f"the loop has made {iteration} iterations of {'any number' if limit is None else limit}, which is the limit; "
                "check M and the condition, or raise SARDONYX_MAX_ITERATIONS"
            )
        condition, *outputs = body(np.array(iteration, np.int64), np.array(going), *carried)
        going = bool(_read_scalar("the condition that the body returns", condition))
        carried = outputs[: len(carried)]
        collected.add(outputs[len(carried) :])
    first = len(carried)
    stacked = (_stack(call, body, first + k, 1 + first + k, values) for k, values in enumerate(collected.outputs))
    return (*carried, *stacked)


@kernel("Scan", since=9)
def scan(
    call: Call,
    *inputs: OnnxValue,
    body: Body,
    num_scan_inputs: int,
    scan_input_axes: Sequence[int] | None = None,
    scan_input_directions: Sequence[int] | None = None,
    scan_output_axes: Sequence[int] | None = None,
    scan_output_directions: Sequence[int] | None = None,
) -> tuple[OnnxValue, ...]:
    """Run `body` over slices of the last `num_scan_inputs` inputs, carrying the others as state.

    Directions: 1 reads an input from its end, or builds an output by prepending. Axes may be negative. Source: ONNX Scan-25.
    """
    states, scanned = _split_scan(inputs, num_scan_inputs, body)
    axes = _per_item("scan_input_axes", scan_input_axes, len(scanned))
    backward = _per_item("scan_input_directions", scan_input_directions, len(scanned))
    sequences = [_front(x, axis, step) for x, axis, step in zip(scanned, axes, backward, strict=True)]
    lengths = {len(x) for x in sequences}
    if len(lengths) > 1:
        raise InvalidArgument(f"scan inputs have lengths {[len(x) for x in sequences]} along their axes; they must be equal")
    sizes = _sizes_of(body, [*states, *(x[:0] for x in sequences)], len(states))
    states, collected = _iterate(body, states, sequences)
    output_axes = _per_item("scan_output_axes", scan_output_axes, len(collected))
    prepend = _per_item("scan_output_directions", scan_output_directions, len(collected))
    outputs = []
    for k, values in enumerate(collected):
        stacked = _stack(call, body, len(states) + k, len(states) + k, values, sizes)
        stacked = stacked[::-1] if prepend[k] else stacked
        outputs.append(np.moveaxis(stacked, 0, _normalize_axis(output_axes[k], stacked.ndim)))
    return (*states, *outputs)


@kernel("Scan", since=8)
def scan_batch(
    call: Call,
    sequence_lens: Array | None,
    *inputs: OnnxValue,
    body: Body,
    num_scan_inputs: int,
    directions: Sequence[int] | None = None,
) -> tuple[OnnxValue, ...]:
    """Run `body` over axis 1 of the scan inputs, for each element of the batch axis 0 on its own.

    `sequence_lens` (N,) ends an element early; scan outputs are zero behind that. Source: ONNX Scan-8.
    """
    states, scanned = _split_scan(inputs, num_scan_inputs, body)
    backward = _per_item("directions", directions, len(scanned))
    N, T = _read_batch_and_steps(scanned)
    if any(x.shape[:1] != (N,) for x in states):
        shapes = [x.shape for x in states]
        raise InvalidArgument(f"states have shapes {shapes}; Scan-8 needs the batch, {N}, as their first dimension")
    lengths = _read_lengths(sequence_lens, N, T)
    finals: list[list[OnnxValue]] = [[] for _ in states]
    collected: list[list[list[OnnxValue]]] = [[] for _ in range(body.output_count - len(states))]
    for n, length in enumerate(lengths):
        rows = [x[n, :length][::-1] if step else x[n, :length] for x, step in zip(scanned, backward, strict=True)]
        ends, outputs = _iterate(body, [x[n] for x in states], rows)
        for values, value in zip(finals, ends, strict=True):
            values.append(value)
        for rows_of_output, row in zip(collected, outputs, strict=True):
            rows_of_output.append(row)
    final = [np.stack(values) if values else x for values, x in zip(finals, states, strict=True)]
    padded = (_pad(call, body, len(states) + k, rows, T) for k, rows in enumerate(collected))
    return (*final, *padded)


@kernel("SequenceMap", since=17)
def sequence_map(
    call: Call, input_sequence: list[OnnxValue], *additional_inputs: OnnxValue, body: Body
) -> tuple[list[OnnxValue], ...]:
    """Run `body` on each element of the sequence; further sequences go along by index, tensors as they are.

    Each output of the body becomes a sequence. Source: ONNX SequenceMap-17.
    """
    _expect_arity(body, 1 + len(additional_inputs), 0)
    for position, extra in enumerate(additional_inputs, start=1):
        if isinstance(extra, list) and len(extra) != len(input_sequence):
            raise InvalidArgument(
                f"input {position} is a sequence of {len(extra)}; the first input has {len(input_sequence)} elements, and all "
                "sequences must be equally long"
            )
    outputs: list[list[OnnxValue]] = [[] for _ in range(body.output_count)]
    for index, element in enumerate(input_sequence):
        others = [extra[index] if isinstance(extra, list) else extra for extra in additional_inputs]
        for values, value in zip(outputs, body(element, *others), strict=True):
            values.append(value)
    return tuple(outputs)


_NO_SIZES: Mapping[str, int] = {}
_VALUE_BYTES = 128
"""What a value takes besides its elements."""


class _Collected:
    """What a body gave in each iteration, by output; all of it together is bounded by `LIMITS.tensor_bytes`."""

    def __init__(self, count: int) -> None:
        self.outputs: list[list[OnnxValue]] = [[] for _ in range(count)]
        self._bytes = 0

    def add(self, values: Sequence[OnnxValue]) -> None:
        """Keep the values of one iteration."""
        for kept, value in zip(self.outputs, values, strict=True):
            kept.append(value)
            self._bytes += getattr(value, "nbytes", 0) + _VALUE_BYTES
        if self._bytes > LIMITS.tensor_bytes:
            raise InvalidArgument(
                f"{len(self.outputs[0])} iterations have made scan outputs of {self._bytes} bytes; at most {LIMITS.tensor_bytes} "
                "are allowed: check how often the loop runs, or raise SARDONYX_MAX_TENSOR_BYTES"
            )


def _read_scalar(name: str, array: OnnxValue) -> OnnxValue:
    if array is None or np.size(array) != 1:
        found = "no value" if array is None else f"shape {np.shape(array)}"
        raise InvalidArgument(f"{name} has {found}; expected a single element")
    return np.asarray(array).item()


def _expect_arity(body: Body, inputs: int, outputs_at_least: int) -> None:
    if body.input_count != inputs:
        raise InvalidArgument(f"the body takes {body.input_count} inputs, but the node gives it {inputs}")
    if body.output_count < outputs_at_least:
        raise InvalidArgument(f"the body has {body.output_count} outputs; the node's inputs ask for at least {outputs_at_least}")


def _stack(
    call: Call, body: Body, position: int, body_position: int, values: list[OnnxValue], sizes: Mapping[str, int] = _NO_SIZES
) -> Array:
    """Return output `position` of the node, from what output `body_position` of the body gave in each iteration."""
    if not values:
        return _empty(call, body, position, body_position, sizes)
    kinds = {(value.shape, value.dtype) for value in values}
    if len(kinds) > 1:
        found = ", ".join(f"{dtype}{list(shape)}" for shape, dtype in sorted(kinds, key=str))
        raise InvalidArgument(f"scan output {position} changes between iterations ({found}); its shape and type must stay")
    return np.stack(values)


def _empty(call: Call, body: Body, position: int, body_position: int, sizes: Mapping[str, int]) -> Array:
    """Return the result of no iterations: length 0, then the shape that the body states for `sizes`, unknown dimensions 0."""
    stated = body.graph.outputs[body_position] if isinstance(body, GraphBody) else None
    shape = () if stated is None or stated.shape is None else stated.shape
    element = call.output_types[position] if position < len(call.output_types) else None
    if element is None and stated is not None:
        element = stated.dtype
    dims = [_size(dim, sizes) for dim in shape]
    return np.empty((0, *dims), (DataType.FLOAT if element is None else element).numpy)


def _size(dim: Dim | None, sizes: Mapping[str, int]) -> int:
    try:
        return 0 if dim is None else evaluate(dim, sizes)
    except (KeyError, ZeroDivisionError):
        return 0


def _sizes_of(body: Body, given: Sequence[OnnxValue], states: int) -> dict[str, int]:
    """Return what the symbols of a body's inputs are: of the first `states`, and of elements of the others, which are stacked."""
    sizes: dict[str, int] = {}
    for position, (value, array) in enumerate(zip(body.graph.inputs if isinstance(body, GraphBody) else (), given, strict=False)):
        found = np.shape(array)[position >= states :]
        for dim, size in zip(value.shape or (), found, strict=False):
            if isinstance(dim, Expr) and dim.name is not None:
                sizes.setdefault(dim.name, size)
    return sizes


def _split_scan(inputs: Sequence[OnnxValue], scan_inputs: int, body: Body) -> tuple[list[Any], list[Array]]:
    if not 1 <= scan_inputs <= len(inputs):
        raise InvalidArgument(f"num_scan_inputs is {scan_inputs}; the node has {len(inputs)} inputs to scan or to carry")
    count = len(inputs) - scan_inputs
    _expect_arity(body, len(inputs), count)
    return list(inputs[:count]), list(inputs[count:])


def _per_item(name: str, values: Sequence[int] | None, count: int) -> Sequence[int]:
    if values is None or len(values) == 0:
        return (0,) * count
    if len(values) != count:
        raise InvalidArgument(f"{name} {list(values)} has {len(values)} entries; expected {count}, one for each")
    return values


def _normalize_axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise InvalidArgument(f"axis {axis} is out of range for rank {rank}; expected {-rank} to {rank - 1}")
    return axis % rank


def _front(x: Array, axis: int, backward: int) -> Array:
    """Return a view of `x` with the scanned axis first, reversed where the direction says so."""
    moved = np.moveaxis(x, _normalize_axis(axis, x.ndim), 0)
    return moved[::-1] if backward else moved


def _iterate(body: Body, states: list[OnnxValue], sequences: list[Array]) -> tuple[list[OnnxValue], list[list[OnnxValue]]]:
    """Scan `sequences` along their first axes; return the last states and, per scan output, its values in order."""
    collected = _Collected(body.output_count - len(states))
    for elements in zip(*sequences, strict=True):
        outputs = body(*states, *map(np.asarray, elements))
        states, scanned = outputs[: len(states)], outputs[len(states) :]
        collected.add(scanned)
    return states, collected.outputs


def _read_batch_and_steps(scanned: Sequence[Array]) -> tuple[int, int]:
    shapes = [x.shape for x in scanned]
    if any(len(shape) < 2 for shape in shapes) or len({shape[:2] for shape in shapes}) > 1:
        raise InvalidArgument(f"scan inputs have shapes {shapes}; Scan-8 needs equal (batch, steps) in their first two dimensions")
    N, T = shapes[0][:2]
    return N, T


def _read_lengths(lengths: Array | None, N: int, T: int) -> list[int]:
    if lengths is None:
        return [T] * N
    if lengths.shape != (N,) or (N and (lengths.min() < 0 or lengths.max() > T)):
        raise InvalidArgument(f"sequence_lens is {lengths.tolist()}; expected {N} lengths between 0 and {T}")
    return [int(length) for length in lengths]


def _pad(call: Call, body: Body, position: int, rows: list[list[OnnxValue]], T: int) -> Array:
    """Return a scan output (N, T, ...) of Scan-8 from the values of each batch element, zero behind its end."""
    sample = _stack(call, body, position, position, [value for row in rows for value in row])
    result = np.zeros((len(rows), T, *sample.shape[1:]), sample.dtype)
    for out, row in zip(result, rows, strict=True):
        if row:
            out[: len(row)] = np.stack(row)
    return result
