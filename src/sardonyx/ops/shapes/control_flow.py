"""If, Loop, Scan and SequenceMap: the facts of their bodies, joined."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph
from sardonyx.ir import Dim, Graph, OptionalType, SequenceType, Shape, TensorType, ValueType
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import UNKNOWN, Fact, ShapeCall, known, shape_function, tensor
from sardonyx.ops.shapes.axes import merge_dims
from sardonyx.ops.shapes.elements import int_of
from sardonyx.ops.views.axes import normalize_axis
from sardonyx.trace import event

__all__: list[str] = []

_ROUNDS = 4
"""After how many rounds through a body a state that still changes counts as unknown."""


def join(left: Fact, right: Fact, fresh: set[Dim] | None = None) -> Fact:
    """Join two facts of a value that is one or the other; see `_join_shapes` for `fresh`."""
    if left.type == right.type:
        return left if left.value is right.value else Fact(left.type)
    return Fact(_join_types(left.type, right.type, set() if fresh is None else fresh))


def _join_types(left: ValueType | None, right: ValueType | None, fresh: set[Dim]) -> ValueType | None:
    if left is None or right is None or type(left) is not type(right):
        return None
    if isinstance(left, TensorType) and isinstance(right, TensorType):
        return TensorType(left.dtype, _join_shapes(left.shape, right.shape, fresh)) if left.dtype is right.dtype else None
    if isinstance(left, SequenceType) and isinstance(right, SequenceType):
        return SequenceType(_join_types(left.element, right.element, fresh))
    if isinstance(left, OptionalType) and isinstance(right, OptionalType):
        return OptionalType(_join_types(left.element, right.element, fresh))
    return left if left == right else None


def _join_shapes(left: Shape | None, right: Shape | None, fresh: set[Dim]) -> Shape | None:
    """Join two shapes dimension by dimension.

    A difference makes an anonymous one, kept in `fresh` so that the next round does not make another.
    """
    if left is None or right is None or len(left) != len(right):
        return None
    dims = list(left)
    for axis, (a, b) in enumerate(zip(left, right, strict=True)):
        if a != b and a not in fresh:
            dims[axis] = anonymous()
            fresh.add(dims[axis])
    return tuple(dims)


@shape_function("If")
def if_(call: ShapeCall, condition: Fact, *, then_branch: Graph, else_branch: Graph) -> tuple[Fact, ...]:
    """Return the outputs of the branch that a known condition chooses, else what both branches have in common.

    A branch whose shapes cannot be is one that never runs, such as a Squeeze where no axis is 1; only where it is the one to run,
    or both are such, the node is invalid.
    """
    chosen = condition.constant
    takes_then = None if chosen is None or chosen.size != 1 else bool(chosen.reshape(-1)[0])
    first, second = _branch(call, then_branch, "then_branch"), _branch(call, else_branch, "else_branch")
    if isinstance(first, InvalidGraph) and (takes_then is True or isinstance(second, InvalidGraph)):
        raise first
    if isinstance(second, InvalidGraph) and takes_then is False:
        raise second
    if isinstance(first, InvalidGraph) or takes_then is False:
        return tuple(second) if not isinstance(second, InvalidGraph) else ()
    if isinstance(second, InvalidGraph) or takes_then is True:
        return tuple(first)
    return tuple([join(a, b) for a, b in zip(first, second, strict=True)])


def _branch(call: ShapeCall, graph: Graph, name: str) -> list[Fact] | InvalidGraph:
    try:
        found = call.infer_body(graph, [])
    except InvalidGraph as error:
        event("infer.dead_branch", node=call.name, branch=name, error=str(error))
        return error
    if len(found) != call.output_count:
        raise InvalidGraph(f"{name} has {len(found)} outputs, but the node has {call.output_count}; expected as many")
    return found


def _settle(states: list[Fact], run: Callable[[list[Fact]], list[Fact]]) -> list[Fact]:
    """Run a body until its states no longer change what is known of them; returns all outputs of the last run.

    `states` is changed to what holds in every iteration. `run` takes the states and returns them first, perhaps more after.
    """
    for index, state in enumerate(states):
        states[index] = Fact(state.type)
    fresh: set[Dim] = set()
    for round_number in range(_ROUNDS):
        outputs = run(states)
        joined = [join(before, after, fresh) for before, after in zip(states, outputs, strict=False)]
        changed = [index for index, fact in enumerate(joined) if fact.type != states[index].type]
        if not changed:
            return outputs
        for index in changed:
            states[index] = joined[index] if round_number < _ROUNDS - 1 else tensor(joined[index].dtype)
    return run(states)


@shape_function("Loop")
def loop(call: ShapeCall, *inputs: Fact | None, body: Graph) -> tuple[Fact, ...]:
    """Return the loop-carried states as they settle, then the scan outputs with the number of iterations put first.

    A body whose shapes cannot be is one that never runs; only where it is known to run, the node is invalid. Sizes of scan outputs
    that are no numbers are symbols of their own, unless the body is known to run.
    """
    states = [UNKNOWN if fact is None else fact for fact in inputs[2:]]
    count = len(states)
    if len(body.inputs) != count + 2 or len(body.outputs) != call.output_count + 1:
        raise InvalidGraph(
            f"the body has {len(body.inputs)} inputs and {len(body.outputs)} outputs; expected {count + 2} and "
            f"{call.output_count + 1} for {count} loop-carried values and {call.output_count - count} scan outputs"
        )
    head = [tensor(DataType.INT64, ()), known(DataType.BOOL, np.array(True))]
    conditions: list[Fact] = []

    def run(facts: list[Fact]) -> list[Fact]:
        condition, *outputs = call.infer_body(body, head + facts)
        conditions.append(condition)
        return outputs

    initial = [Fact(state.type) for state in states]
    try:
        outputs = _settle(states, run)
    except InvalidGraph as error:
        if _surely_runs(inputs[0], inputs[1]):
            raise
        event("infer.dead_branch", node=call.name, branch="body", error=str(error))
        return (*initial, *[UNKNOWN] * (call.output_count - count))
    final = [join(first, last) for first, last in zip(initial, outputs, strict=False)]
    trips = _trips(inputs[0], inputs[1], conditions[-1])
    slices = outputs[count:] if _surely_runs(inputs[0], inputs[1]) else [_perhaps_never(fact, trips) for fact in outputs[count:]]
    return (*final, *[_stacked(fact, trips) for fact in slices])


def _perhaps_never(fact: Fact, trips: Dim) -> Fact:
    """Return a slice of a loop that may make none: its sizes that are no numbers are 0 then, as in ONNX Runtime."""
    if fact.shape is None:
        return fact
    return tensor(fact.dtype, tuple(dim if isinstance(dim, int) else 0 if trips == 0 else anonymous() for dim in fact.shape))


def _surely_runs(limit: Fact | None, condition: Fact | None) -> bool:
    count = 1 if limit is None else int_of(limit)
    return count is not None and count > 0 and (condition is None or _is_true(condition))


def _trips(limit: Fact | None, condition: Fact | None, repeated: Fact) -> Dim:
    """Return how often the body runs: `limit` times where the condition is true at first and the body leaves it true."""
    is_bounded_by_limit = (condition is None or _is_true(condition)) and _is_true(repeated)
    count = int_of(limit)
    return max(count, 0) if is_bounded_by_limit and count is not None else anonymous()


def _is_true(fact: Fact) -> bool:
    return fact.constant is not None and bool(np.all(fact.constant))


def _stacked(fact: Fact, count: Dim, axis: int = 0) -> Fact:
    """Return `count` tensors like this one, put together along a new axis."""
    if fact.shape is None:
        return tensor(fact.dtype)
    place = normalize_axis(axis, len(fact.shape) + 1)
    return tensor(fact.dtype, (*fact.shape[:place], count, *fact.shape[place:]))


def _element(fact: Fact | None, axis: int) -> Fact:
    """Return one slice of a tensor along `axis`."""
    if fact is None or fact.shape is None:
        return UNKNOWN if fact is None else tensor(fact.dtype)
    place = normalize_axis(axis, len(fact.shape), "scan_input_axes")
    return tensor(fact.dtype, fact.shape[:place] + fact.shape[place + 1 :])


@shape_function("Scan", since=9)
def scan(
    call: ShapeCall,
    *inputs: Fact | None,
    body: Graph,
    num_scan_inputs: int,
    scan_input_axes: Sequence[int] | None = None,
    scan_output_axes: Sequence[int] | None = None,
) -> tuple[Fact, ...]:
    """Return the final states, then the scan outputs, as long along their axes as the scan inputs are."""
    count = len(inputs) - num_scan_inputs
    if num_scan_inputs < 1 or count < 0:
        raise InvalidGraph(f"num_scan_inputs is {num_scan_inputs} for {len(inputs)} inputs; expected 1 to {len(inputs)}")
    states = [UNKNOWN if fact is None else fact for fact in inputs[:count]]
    axes = scan_input_axes or [0] * num_scan_inputs
    if len(axes) != num_scan_inputs:
        raise InvalidGraph(f"scan_input_axes={list(axes)} has {len(axes)} elements for {num_scan_inputs} scan inputs")
    elements = [_element(fact, axis) for fact, axis in zip(inputs[count:], axes, strict=True)]
    outputs = _settle(states, lambda facts: call.infer_body(body, facts + elements))
    final = [join(before, after) for before, after in zip(states, outputs, strict=False)]
    out_axes = scan_output_axes or [0] * (len(outputs) - count)
    if len(out_axes) != len(outputs) - count:
        raise InvalidGraph(
            f"scan_output_axes={list(out_axes)} has {len(out_axes)} elements for {len(outputs) - count} scan outputs"
        )
    length = _length(inputs[count:], axes)
    return (*final, *[_stacked(fact, length, axis) for fact, axis in zip(outputs[count:], out_axes, strict=True)])


def _length(inputs: Sequence[Fact | None], axes: Sequence[int]) -> Dim:
    """Return how long the scan inputs are along their axes; raises InvalidGraph where they differ."""
    result: Dim | None = None
    for fact, axis in zip(inputs, axes, strict=True):
        if fact is not None and fact.shape is not None:
            dim = fact.shape[normalize_axis(axis, len(fact.shape), "scan_input_axes")]
            result = dim if result is None else merge_dims(result, dim, "the lengths of the scan inputs")
    return anonymous() if result is None else result


@shape_function("Scan")
def scan_8(
    call: ShapeCall, sequence_lens: Fact | None = None, *inputs: Fact | None, body: Graph, num_scan_inputs: int
) -> tuple[Fact, ...]:
    """Return the same, over a batch in the first axis and the sequence in the second."""
    count = len(inputs) - num_scan_inputs
    states = [_element(fact, 0) for fact in inputs[:count]]
    elements = [_element(_element(fact, 0), 0) for fact in inputs[count:]]
    outputs = _settle(states, lambda facts: call.infer_body(body, facts + elements))
    batch, length = _lead(inputs, 0), _lead(inputs[count:], 1)
    final = [join(before, after) for before, after in zip(states, outputs, strict=False)]
    stacked = [_stacked(_stacked(fact, length), batch) for fact in outputs[count:]]
    return (*[_stacked(fact, batch) for fact in final], *stacked)


def _lead(inputs: Sequence[Fact | None], axis: int) -> Dim:
    shapes = [fact.shape for fact in inputs if fact is not None and fact.shape is not None]
    return next((shape[axis] for shape in shapes if len(shape) > axis), anonymous())


@shape_function("SequenceMap")
def sequence_map(call: ShapeCall, *inputs: Fact | None, body: Graph) -> tuple[Fact, ...]:
    """Return sequences of what the body makes of one element of each input sequence."""
    arguments = []
    for fact in inputs:
        type = None if fact is None else fact.type
        arguments.append(Fact(type.element) if isinstance(type, SequenceType) else Fact(type))
    return tuple([Fact(SequenceType(fact.type)) for fact in call.infer_body(body, arguments)])
