"""If, Loop and Scan: the steps of their bodies lie among the node's neighbours, with steps that decide which one follows.

    If     branch ─ then ... ─ jump ─ else ... ─ join           both write to the node's outputs
    Loop   enter ─ body ... ─ next                              `next` goes back to the body for each iteration

Loop-carried values keep their shape, so that two buffers, taken by turns, hold one; scan inputs and outputs are read and written
where they are. Sizes do not depend on iterations, and an iteration costs the steps of the body and one more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.control import READ, SLICE, WRITE, write_branch, write_enter, write_jump, write_next
from sardonyx.codegen.target import Target
from sardonyx.config import LIMITS
from sardonyx.dtypes import DataType
from sardonyx.ir import Dim, Expr, Graph, Node, Shape, Value
from sardonyx.ir.shape import is_anonymous, product
from sardonyx.ops.views.axes import normalize_axis
from sardonyx.ops.views.control_flow import Scan
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.bodies import BodySpec, claim_body, lower_body, make_outputs
from sardonyx.providers.cpu.kernels.constant import store_words
from sardonyx.providers.cpu.kernels.elementwise import copy_between
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import STATUS, Buffer, Control, Mark, Move, Plan
from sardonyx.providers.cpu.storage import item_bytes
from sardonyx.providers.cpu.strided import StridedDim, copy_region, dense_strides

__all__ = ["LoopSpec"]

_ANY_NUMBER = (1 << 63) - 1


@dataclasses.dataclass(frozen=True, slots=True)
class ControlKernel:
    """A kernel that decides which step follows."""

    kind: str
    """What it does: "jump", "branch", "enter" or "next"."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"control_{self.kind}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        _WRITERS[self.kind](module, symbol)


_WRITERS: dict[str, Callable[[Module, str], None]] = {
    "jump": write_jump,
    "branch": write_branch,
    "enter": write_enter,
    "next": write_next,
}


def _constantly() -> Plan:
    return lambda sizes: ([], 1)


@dataclasses.dataclass(frozen=True, slots=True)
class IfSpec:
    """Two branches that make results of the same shapes."""

    then: BodySpec
    """What runs where the condition holds."""
    other: BodySpec
    """What runs where it does not."""


def claim_if(node: Node) -> IfSpec | str:
    """Return the branches of an If, or why it cannot be compiled."""
    problem = _scalar_problem(node.inputs[0], DataType.BOOL, "its condition")
    if problem is not None:
        return problem
    found = [_body_of(node, name) for name in ("then_branch", "else_branch")]
    for graph in found:
        if graph is None or len(graph.outputs) != len(node.outputs) or graph.inputs:
            return "a branch does not have the outputs of the node"
        for made, value in zip(graph.outputs, node.outputs, strict=True):
            if made.dtype is not value.dtype or made.shape != value.shape:
                return f"its branches make {value.name or 'an output'} in different shapes, so its size is known only when it runs"
    then, other = (claim_body(graph) for graph in found if graph is not None)
    if isinstance(then, str):
        return then
    return other if isinstance(other, str) else IfSpec(then, other)


@lowers("If", claim=claim_if)
def if_(low: Lowering, group: Group, spec: IfSpec) -> None:
    """Go around the branch that is not chosen; both write to the node's outputs."""
    node = group.node
    condition, results = low.of(node.inputs[0]), [low.result(value) for value in node.outputs]
    at_branch, at_jump, at_join = Mark(), Mark(), Mark()
    _decide(low, group, "branch", [STATUS, condition], results, Control(at_branch, at_jump, True))
    _lower_branch(low, node, spec.then, results)
    _decide(low, group, "jump", [STATUS], results, Control(at_jump, at_join, True))
    _lower_branch(low, node, spec.other, results)
    _decide(low, group, "jump", [STATUS], results, Control(at_join, at_join, True))


def _decide(low: Lowering, group: Group, kind: str, reads: Sequence[Buffer], results: Sequence[Buffer], control: Control) -> None:
    """Add a step that decides which one follows; it counts as a writer of `results`, so that it runs where they are read."""
    buffers = [*reads, *results]
    symbol = low.kernel(ControlKernel(kind))
    low.step(group, symbol, buffers, writes=range(len(reads), len(buffers)), plan=_constantly(), control=control)


def _lower_branch(low: Lowering, node: Node, body: BodySpec, results: Sequence[Buffer]) -> None:
    with low.body():
        lower_body(low, node, body)
        for made, result in zip(make_outputs(low, body.graph.outputs), results, strict=True):
            made.base = result


@dataclasses.dataclass(frozen=True, slots=True)
class LoopSpec:
    """A body that runs any number of times, on loop-carried values that keep their shapes."""

    body: BodySpec
    """The body."""
    carried: int
    """How many values are loop-carried."""
    is_exact: bool
    """Whether the number of iterations is known when the loop begins: the condition does not change."""
    capacities: frozenset[str]
    """The symbols for how many iterations scan outputs have room for, where only the run shows that; else empty."""


def claim_loop(node: Node) -> LoopSpec | str:
    """Return what a Loop repeats, or why it cannot be compiled."""
    body = _body_of(node, "body")
    carried = len(node.inputs) - 2
    if body is None or carried < 0 or len(body.inputs) != carried + 2 or len(body.outputs) != len(node.outputs) + 1:
        return "its body does not fit the node's inputs and outputs"
    problem = (
        _scalar_problem(node.inputs[0], DataType.INT64, "M")
        or _scalar_problem(node.inputs[1], DataType.BOOL, "its condition")
        or _scalar_problem(body.outputs[0], DataType.BOOL, "the condition that its body returns")
        or _carried_problem(node.inputs[2:], body.inputs[2:], body.outputs[1:], node.outputs)
        or _stacked_problem(body.outputs[1 + carried :], node.outputs[carried:])
    )
    if problem is not None:
        return problem
    spec = claim_body(body)
    if isinstance(spec, str):
        return spec
    is_exact = node.inputs[0] is not None and _is_always(node.inputs[1]) and _is_always(body.outputs[0], body.inputs[1])
    lengths = [shape_of(value)[0] for value in node.outputs[carried:]]
    trips = _number(node.inputs[0]) if is_exact else None
    if all(trips is not None and length == max(trips, 0) for length in lengths):
        return LoopSpec(spec, carried, is_exact, frozenset())
    names = [dim.name if isinstance(dim, Expr) else None for dim in lengths]
    known = frozenset(name for name in names if name is not None)
    if None in names:
        return "the model says how long its scan outputs are, which only the run shows"
    return LoopSpec(spec, carried, is_exact, known)


@lowers("Loop", claim=claim_loop, inputs=0)
def loop(low: Lowering, group: Group, spec: LoopSpec) -> None:
    """Run the body until the number of iterations or the condition ends it."""
    node = group.node
    trips, condition = node.inputs[0], node.inputs[1]
    limit = low.constant(np.array([_ANY_NUMBER], np.int64)) if trips is None else low.of(trips)
    always = low.constant(np.array([True]))
    counter = low.temporary(DataType.INT64, ())
    slices = spec.body.graph.outputs[1 + spec.carried :]
    stacked = [(shape_of(whole)[0], *shape_of(part)) for whole, part in zip(node.outputs[spec.carried :], slices, strict=True)]
    run = _Iteration(
        limit=limit,
        counter=counter,
        condition=always if condition is None else low.of(condition),
        initial=[low.of(value) for value in node.inputs[2:]],
        results=[low.result(value) for value in node.outputs[: spec.carried]],
        stacked=[(low.result(value, shape), False) for value, shape in zip(node.outputs[spec.carried :], stacked, strict=True)],
        most=LIMITS.iterations,
        is_exact=spec.is_exact,
        capacity=0 if spec.is_exact or not spec.capacities else shape_of(node.outputs[spec.carried])[0],
    )
    low.counters[node] = counter
    low.part(spec.body.graph.inputs[0], counter)
    low.part(spec.body.graph.inputs[1], always)
    _iterate(low, group, spec.body, run, states=2, gives_condition=True)


@dataclasses.dataclass(frozen=True, slots=True)
class _Iteration:
    """What a body is repeated over."""

    limit: Buffer
    """How often at most."""
    counter: Buffer
    """How often so far."""
    condition: Buffer
    """Whether there is a first iteration."""
    initial: Sequence[Buffer]
    """The first values of what is loop-carried."""
    results: Sequence[Buffer]
    """Their last ones."""
    stacked: Sequence[tuple[Buffer, bool]]
    """The scan outputs, the iterations first, and whether the first iteration makes the last slice."""
    scanned: Sequence[tuple[Buffer, bool]] = ()
    """The scan inputs, the iterations first, and whether the first iteration takes the last slice."""
    most: int = _ANY_NUMBER
    """More iterations are an error."""
    is_exact: bool = True
    """Whether `limit` is the number of iterations, unless the first condition prevents all."""
    capacity: Dim = 0
    """How many iterations scan outputs have room for, where there may be more; 0 where there is room for all."""


def _iterate(low: Lowering, group: Group, body: BodySpec, run: _Iteration, *, states: int, gives_condition: bool) -> None:
    """Add the steps of a loop; `states` says which input of the body is the first loop-carried value."""
    at_enter, at_next = Mark(), Mark()
    condition, carried, slices = _signature(low, body.graph, run, states, gives_condition=gives_condition)
    spare = [low.temporary(each.result.dtype, each.result.shape) for each in carried]
    stacked = [buffer for buffer, _ in run.stacked]
    kept = [*run.results, *spare, *stacked]
    _decide(low, group, "enter", [STATUS, run.counter], [run.counter, *kept], Control(at_enter, at_next, False))
    moves: list[Move] = []
    with low.body():
        moves += [Move(low.part(each.taken, each.initial), READ, number) for number, each in enumerate(carried)]
        taken = body.graph.inputs[states + len(run.initial) :]
        for value, (buffer, is_backward) in zip(taken, run.scanned, strict=True):
            moves.append(_slice(low.part(value, buffer), buffer, is_backward))
        lower_body(low, group.node, body)
        made = make_outputs(low, [*condition, *(each.handed_on for each in carried), *slices])
    going = made.pop(0) if condition else low.constant(np.array([True]))
    for number, (output, each) in enumerate(zip(made, carried, strict=False)):
        output.base = each.result
        moves.append(Move(output, WRITE, number))
    for output, (buffer, is_backward) in zip(made[len(carried) :], run.stacked, strict=True):
        output.base = buffer
        moves.append(_slice(output, buffer, is_backward))

    def plan(sizes: Sizes) -> tuple[Sequence[int], int]:
        sizes_bytes = [sizes.product(each.result.shape) * item_bytes(each.result.dtype) for each in carried]
        return [run.most, int(run.is_exact), sizes(run.capacity), 0, len(carried), *sizes_bytes], 1

    places = [buffer for each, other in zip(carried, spare, strict=True) for buffer in (each.initial, each.result, other)]
    buffers = [STATUS, run.counter, run.limit, run.condition, going, *places, *kept]
    writes = [1, *range(len(buffers) - len(kept), len(buffers))]
    symbol = low.kernel(ControlKernel("next"))
    control = Control(at_next, at_enter, True, tuple(moves))
    low.step(group, symbol, buffers, writes=writes, plan=plan, failure=_too_many(run.most), control=control)


def _too_many(most: int) -> str:
    return f"the loop has made {most} iterations, which is the limit; check M and the condition, or raise SARDONYX_MAX_ITERATIONS"


@dataclasses.dataclass(frozen=True, slots=True)
class _Carried:
    """A loop-carried value."""

    taken: Value
    """What the body takes."""
    handed_on: Value
    """What it gives."""
    initial: Buffer
    """The first one."""
    result: Buffer
    """Where the last one belongs."""


def _signature(
    low: Lowering, graph: Graph, run: _Iteration, states: int, *, gives_condition: bool
) -> tuple[Sequence[Value], list[_Carried], Sequence[Value]]:
    """Return a body's condition, if it gives one, its loop-carried values, and its scan outputs.

    A value that the body hands on as it is counts as none that is carried: it is copied once.
    """
    conditions, rest = (graph.outputs[:1], graph.outputs[1:]) if gives_condition else ((), graph.outputs)
    carried: list[_Carried] = []
    for number, (initial, result) in enumerate(zip(run.initial, run.results, strict=True)):
        each = _Carried(graph.inputs[states + number], rest[number], initial, result)
        if each.taken is each.handed_on:
            low.part(each.taken, initial)
            copy_between(low, initial, result)
        else:
            carried.append(each)
    return conditions, carried, rest[len(run.initial) :]


def _slice(part: Buffer, whole: Buffer, is_backward: bool) -> Move:
    step = product(part.shape) * item_bytes(part.dtype)
    return Move(part, SLICE, (whole.shape[0] - 1) * step if is_backward else 0, -step if is_backward else step)


@dataclasses.dataclass(frozen=True, slots=True)
class ScanSpec:
    """A body that runs over slices."""

    body: BodySpec
    """The body."""
    length: Dim
    """How many slices there are."""
    inputs: tuple[tuple[int, bool], ...]
    """For each scan input its axis, and whether it is read from its end."""
    outputs: tuple[tuple[int, bool], ...]
    """For each scan output its axis, and whether it is written from its end."""


def claim_scan(node: Node) -> ScanSpec | str:
    """Return what a Scan repeats over what, or why it cannot be compiled."""
    view = Scan.of(node)
    states = len(node.inputs) - view.scan_inputs
    body = view.body
    if view.is_batched:
        return "it scans a batch, as before opset 9"
    if body is None or not 0 <= states < len(node.inputs) == len(body.inputs) or len(body.outputs) != len(node.outputs):
        return "its body does not fit the node's inputs and outputs"
    if any(value is None for value in node.inputs):
        return "an input is left out"
    inputs = _ways(view.input_axes, view.input_directions, node.inputs[states:])
    outputs = _ways(view.output_axes, view.output_directions, node.outputs[states:])
    if inputs is None or outputs is None:
        return "the numbers of its axes and directions do not fit its inputs and outputs"
    lengths = {shape_of(value)[axis] for value, (axis, _) in zip(node.inputs[states:], inputs, strict=True)}
    if len(lengths) > 1:
        return f"that its scan inputs are of one length, {', '.join(map(str, lengths))}, depends on sizes"
    (length,) = lengths
    problem = (
        _carried_problem(node.inputs[:states], body.inputs, body.outputs, node.outputs)
        or _slices_problem(body.inputs[states:], node.inputs[states:], inputs, length)
        or _slices_problem(body.outputs[states:], node.outputs[states:], outputs, length)
    )
    if problem is not None:
        return problem
    spec = claim_body(body)
    return spec if isinstance(spec, str) else ScanSpec(spec, length, inputs, outputs)


def _ways(axes: Sequence[int], directions: Sequence[int], values: Sequence[Value | None]) -> tuple[tuple[int, bool], ...] | None:
    """Return for each value its axis and whether its direction is backward; None where there are not as many."""
    axes, directions = axes or (0,) * len(values), directions or (0,) * len(values)
    if not len(axes) == len(directions) == len(values) or any(not shape_of(value) for value in values):
        return None
    return tuple(
        (normalize_axis(axis, len(shape_of(value))), direction != 0)
        for axis, direction, value in zip(axes, directions, values, strict=True)
    )


@lowers("Scan", claim=claim_scan)
def scan(low: Lowering, group: Group, spec: ScanSpec) -> None:
    """Run the body for each slice; what is scanned along another axis than the first is transposed before or afterwards."""
    node = group.node
    states = len(node.inputs) - len(spec.inputs)
    limit = low.temporary(DataType.INT64, (1,))
    store_words(low, node, limit, (spec.length,))
    counter = low.temporary(DataType.INT64, ())
    pairs = zip(node.inputs[states:], spec.inputs, strict=True)
    scanned = [(_in_front(low, node, low.of(value), axis), is_backward) for value, (axis, is_backward) in pairs]
    stacked: list[tuple[Buffer, bool]] = []
    late: list[tuple[Buffer, Buffer, int]] = []
    for value, (axis, is_backward) in zip(node.outputs[states:], spec.outputs, strict=True):
        result = low.result(value)
        if axis:
            late.append((low.temporary(result.dtype, _moved(result.shape, axis)), result, axis))
        stacked.append((late[-1][0] if axis else result, is_backward))
    run = _Iteration(
        limit=limit,
        counter=counter,
        condition=low.constant(np.array([True])),
        initial=[low.of(value) for value in node.inputs[:states]],
        results=[low.result(value) for value in node.outputs[:states]],
        stacked=stacked,
        scanned=scanned,
    )
    _iterate(low, group, spec.body, run, states=0, gives_condition=False)
    for source, result, axis in late:
        strides = dense_strides(source.shape)
        order = (*strides[1 : axis + 1], strides[0], *strides[axis + 1 :])
        _copy_strided(low, node, source, order, result)


def _moved(shape: Shape, axis: int) -> Shape:
    return (shape[axis], *shape[:axis], *shape[axis + 1 :])


def _in_front(low: Lowering, node: Node, buffer: Buffer, axis: int) -> Buffer:
    """Return a buffer with an axis moved to the front."""
    if axis == 0:
        return buffer
    result = low.temporary(buffer.dtype, _moved(buffer.shape, axis))
    strides = dense_strides(buffer.shape)
    _copy_strided(low, node, buffer, (strides[axis], *strides[:axis], *strides[axis + 1 :]), result)
    return result


def _copy_strided(low: Lowering, node: Node, source: Buffer, strides: Sequence[Dim], result: Buffer) -> None:
    triples = zip(result.shape, strides, dense_strides(result.shape), strict=True)
    copy_region(low, node.op_type, source, result, [StridedDim(*triple) for triple in triples], node)


def _body_of(node: Node, name: str) -> Graph | None:
    attribute = node.attributes.get(name)
    return attribute.value if attribute is not None and isinstance(attribute.value, Graph) else None


def _scalar_problem(value: Value | None, dtype: DataType, what: str) -> str | None:
    """Return why a value that may be left out is no single element of a type."""
    if value is None or (value.dtype is dtype and value.shape is not None and product(value.shape) == 1):
        return None
    return f"{what} is {value.type or 'of a type that is not known'}, no single {dtype}"


def _carried_problem(
    initial: Sequence[Value | None], taken: Sequence[Value], given_on: Sequence[Value], results: Sequence[Value]
) -> str | None:
    """Return why loop-carried values do not keep type and shape."""
    for values in zip(initial, taken, given_on, results, strict=False):
        first = values[0]
        if first is None or any(value is None or value.dtype is not first.dtype or value.shape != first.shape for value in values):
            shapes = ", ".join("nothing" if value is None else str(value.type) for value in values[:3])
            return f"a loop-carried value may change its shape or type from iteration to iteration: {shapes}"
    return None


def _stacked_problem(slices: Sequence[Value], stacked: Sequence[Value]) -> str | None:
    """Return why scan outputs are not slices, one after another along a new first axis.

    Where there may be no slice, sizes that are no numbers are others behind the loop.
    """
    for part, whole in zip(slices, stacked, strict=True):
        shape, size = part.shape, whole.shape
        if part.dtype is not whole.dtype or shape is None or not size or len(size) != len(shape) + 1:
            return f"a scan output is {whole.type}, its slices {part.type}"
        if any(a != b and not (isinstance(a, Expr) and is_anonymous(b)) for a, b in zip(shape, size[1:], strict=True)):
            return f"a scan output is {whole.type}, its slices {part.type}"
    return None


def _slices_problem(
    slices: Sequence[Value], whole: Sequence[Value | None], ways: Sequence[tuple[int, bool]], length: Dim
) -> str | None:
    for part, value, (axis, _) in zip(slices, whole, ways, strict=True):
        shape, found = shape_of(value), given(value)
        if part.dtype is not found.dtype or part.shape != shape[:axis] + shape[axis + 1 :] or shape[axis] != length:
            return f"slices {part.type} of {found.type}, {length} of them along axis {axis}, depend on sizes"
    return None


def _is_always(value: Value | None, condition: Value | None = None) -> bool:
    """Return whether a condition is left out, constantly true, or `condition` itself."""
    while value is not None and value.producer is not None and value.producer.op_type == "Identity" and not value.producer.domain:
        value = value.producer.inputs[0]
    if value is None or value is condition:
        return True
    return value.constant is not None and bool(value.constant.numpy().all())


def _number(value: Value | None) -> int | None:
    return None if value is None or value.constant is None else int(value.constant.numpy().reshape(-1)[0])
