"""LinearAttention: a recurrence over time whose state is one matrix per head, in place in the state that is its result.

Dimension letters: B batch, T steps, N query heads, M states of a batch, K and V rows and columns of a state.
"""

from __future__ import annotations

import math

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import ElementExpr, argument
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.kernels.attention.linear import LinearAttentionCode, LinearAttentionParams, write_linear_attention
from sardonyx.codegen.kernels.elementwise import Access, MapParams
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Dim, Node, Shape, Value
from sardonyx.ops.schema import place_of
from sardonyx.ops.views.attention import LinearAttention
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.elementwise import MapKernel
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer

_Q, _K, _V, _PAST, _DECAY, _BETA = range(6)
"""The inputs."""

_NAMES = ("query", "key", "value", "past_state", "decay", "beta")
_TASKS_PER_THREAD = 4


@dataclasses.dataclass(frozen=True, slots=True)
class LinearAttentionSpec:
    """A LinearAttention."""

    code: LinearAttentionCode
    """Which of its inputs count."""
    B: Dim
    """Batch."""
    T: Dim
    """Steps."""
    N: int
    """Query heads."""
    M: int
    """States of a batch."""
    K: int
    """Rows of a state."""
    V: int
    """Columns of a state."""
    scale: float
    """Factor of the outputs."""
    shapes: tuple[tuple[str, Shape, Shape], ...]
    """Inputs whose shapes are known to fit only when sizes are: name, shape, what it has to be."""


def claim(node: Node) -> LinearAttentionSpec | str:
    """Return what a LinearAttention computes, or why it cannot be compiled."""
    view = LinearAttention.of(node)
    if not view.is_known:
        return f"update_rule {view.rule!r} is unknown"
    if view.slots:
        return "a window of states"
    for value in (*node.inputs, *node.outputs):
        if value is not None and value.dtype is not DataType.FLOAT:
            return f"elements of type {value.dtype}"
    heads = _sizes(node, view)
    if isinstance(heads, str):
        return heads
    K, V = heads
    gates = _gates(node, view)
    if isinstance(gates, str):
        return gates
    B, T = shape_of(node.inputs[_Q])[:2]
    wanted: dict[int, Shape] = {
        _Q: (B, T, view.N * K),
        _K: (B, T, view.M * K),
        _V: (B, T, view.M * V),
        _PAST: (B, view.M, K, V),
        **{place: (B, T, width) for place, width in gates.items()},
    }
    found = [(_NAMES[place], value, shape) for place, shape in wanted.items() if (value := node.input(place)) is not None]
    made = ((B, T, max(view.N, view.M) * V), wanted[_PAST])
    found += [(f"output {place}", value, shape) for place, (value, shape) in enumerate(zip(node.outputs, made, strict=False))]
    open_shapes = [(name, shape_of(value), shape) for name, value, shape in found if shape_of(value) != shape]
    for name, shape, fits in open_shapes:
        if _is_wrong(shape, fits):
            return f"{name} has shape {shape}, expected {fits}"
    code = LinearAttentionCode(node.input(_PAST) is not None, _DECAY in gates, _BETA in gates)
    return LinearAttentionSpec(code, B, T, view.N, view.M, K, V, view.scale or 1 / math.sqrt(K), tuple(open_shapes))


def _sizes(node: Node, view: LinearAttention) -> tuple[int, int] | str:
    """Return rows and columns of a state, or why they are not known."""
    shapes = [shape_of(node.inputs[place]) for place in (_Q, _V)]
    if any(len(shape) != 3 for shape in shapes) or view.N < 1 or view.M < 1:
        return "query and value do not have three dimensions, or there are no heads"
    more = max(view.N, view.M)
    if more % view.N or more % view.M or (view.N < view.M and not node.domain):
        return f"{view.N} query heads and {view.M} states do not share heads"
    widths = (shapes[0][2], shapes[1][2])
    if not isinstance(widths[0], int) or not isinstance(widths[1], int):
        return "sizes of heads that are not known"
    if widths[0] % view.N or widths[1] % view.M or not widths[0] or not widths[1]:
        return f"{widths[0]} elements of {view.N} heads and {widths[1]} of {view.M} are no equal heads"
    return widths[0] // view.N, widths[1] // view.M


def _gates(node: Node, view: LinearAttention) -> dict[int, int] | str:
    """Return the inputs that the rule needs with how many elements of a step they have, or why it cannot be compiled."""
    K = shape_of(node.inputs[_K])[-1:]
    widths = {_DECAY: (view.M, *K), _BETA: (view.M, 1)}
    gates: dict[int, int] = {}
    for place, is_needed in ((_DECAY, view.decays), (_BETA, view.corrects)):
        value = node.input(place)
        if not is_needed:
            if value is not None and not node.domain:
                return f"update_rule {view.rule!r} takes no input {_NAMES[place]}"
            continue
        last = shape_of(value)[-1] if value is not None and len(shape_of(value)) == 3 else None
        if not isinstance(last, int) or last not in widths[place]:
            return f"update_rule {view.rule!r} needs an input {_NAMES[place]} of a known size of {widths[place]}"
        gates[place] = last
    return gates


def _is_wrong(shape: Shape, wanted: Shape) -> bool:
    """Return whether a shape can never be what it has to be."""
    pairs = zip(shape, wanted, strict=False)
    return len(shape) != len(wanted) or any(isinstance(x, int) and isinstance(y, int) and x != y for x, y in pairs)


@dataclasses.dataclass(frozen=True, slots=True)
class LinearAttentionKernel:
    """A linear attention."""

    code: LinearAttentionCode
    """Its form."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"linear_attention_{self.code.name}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_linear_attention(module, symbol, self.code)


@lowers("LinearAttention", claim=claim, inputs=3)
@lowers("LinearAttention", domain="com.microsoft", claim=claim, inputs=3)
def linear_attention(low: Lowering, group: Group, spec: LinearAttentionSpec) -> None:
    """Turn decays into factors, then walk the steps."""
    node, code = group.node, spec.code
    inputs = [low.of(value) for value in node.inputs[:_PAST]]
    further = [low.of(node.inputs[_PAST])] if code.has_past else []
    decay_row = 1
    if code.decays:
        decays = node.inputs[_DECAY]
        decay_row = spec.K if shape_of(decays)[-1] == spec.M * spec.K and spec.K > 1 else 1
        further.append(_factors(low, group, decays))
    beta_row = 1
    if code.corrects:
        beta_row = 1 if shape_of(node.inputs[_BETA])[-1] == 1 else spec.M
        further.append(low.of(node.inputs[_BETA]))
    result = low.result(node.outputs[0])
    is_kept = len(node.outputs) > 1
    state = low.result(node.outputs[1]) if is_kept else low.temporary(DataType.FLOAT, (spec.B, spec.M, spec.K, spec.V))
    together = 1 if low.threads == 1 else _TASKS_PER_THREAD * low.threads

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        for name, shape, wanted in spec.shapes:
            if sizes.shape(shape) != sizes.shape(wanted):
                raise InvalidArgument(f"{place_of(node)}: {name} has shape {sizes.shape(shape)}, expected {sizes.shape(wanted)}")
        B, T = sizes(spec.B), sizes(spec.T)
        params = LinearAttentionParams(B, T, spec.N, spec.M, spec.K, spec.V, decay_row, beta_row, spec.scale, together)
        return params.words(), params.tasks()

    symbol = low.kernel(LinearAttentionKernel(code))
    work = low.temporary(DataType.FLOAT, (LinearAttentionParams.work(spec.K, together),))
    low.step(group, symbol, [*inputs, result, state, work, *further], writes=[3, 4, 5], plan=plan, together=together)


def _factors(low: Lowering, group: Group, decays: Value | None) -> Buffer:
    """Return the exponentials of decays."""
    source = low.of(decays)
    result = low.temporary(DataType.FLOAT, source.shape)
    accesses = (Access.ORDERED, Access.ORDERED)
    exponential = ElementExpr("exp", F32, (argument(0, F32),))
    symbol = low.kernel(MapKernel("decay", (F32,), (exponential,), accesses))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = MapParams.over([sizes.product(source.shape)], [[1], [1]], accesses, threads=low.threads)
        return params.words(), params.tasks()

    low.step(group, symbol, [source, result], writes=[1], plan=plan)
    return result
