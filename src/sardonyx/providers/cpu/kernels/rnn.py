"""RNN, GRU and LSTM: one product with W for all steps and directions, then one kernel that walks the steps.

    X (T, N, I) ─ MatMul ─► (T, N, D x gates x H) ─ steps ─► Y (T, D, N, H), Y_h (D, N, H), Y_c (D, N, H)

Dimension letters: T time steps, N batch, I input features, H hidden units, D directions. With layout 1 N comes first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import ElementExpr, argument
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, F64, Type
from sardonyx.codegen.kernels.gemm import WIDE, tiling
from sardonyx.codegen.kernels.gemm_params import PART_TASKS, GemmParams
from sardonyx.codegen.kernels.panels import NumberPanels
from sardonyx.codegen.kernels.recurrent import write_recurrent
from sardonyx.codegen.kernels.recurrent_params import PLANES, Cell, RecurrentParams, together
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Dim, Node, Shape, Value
from sardonyx.ops.views.rnn import Recurrent
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.expressions import expression_symbol
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.matmul import COLUMN, ProductKernel
from sardonyx.providers.cpu.kernels.rnn_cell import PHASE_GATES, cell_of
from sardonyx.providers.cpu.kernels.rnn_weights import ABSENT, Arrangement, pack_arranged
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, shape_of
from sardonyx.providers.cpu.precision import FLOAT32
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import STATUS, Buffer

_X, _W, _R, _B, _LENGTHS, _INITIAL_H, _INITIAL_C, _PEEPHOLES = range(8)
"""The inputs."""

_Y, _Y_H, _Y_C = range(3)
"""The outputs."""


_KINDS = {DataType.FLOAT: F32, DataType.DOUBLE: F64}
_LENGTH_FAILURE = "element {} of sequence_lens is out of range; each must lie between 0 and the number of steps of X"


@dataclasses.dataclass(frozen=True, slots=True)
class RecurrentSpec:
    """A recurrent network."""

    view: Recurrent
    """Its attributes."""
    kind: str
    """Its cell, one of PHASE_GATES."""
    T: Dim
    """Steps."""
    N: Dim
    """Batch."""
    features: int
    """Elements that a step reads for each row of the batch."""
    H: int
    """Hidden units."""
    dtype: DataType
    """The type of elements and sums, float32 or float64."""
    equal: tuple[tuple[str, Dim, Dim], ...]
    """What must be equal, and is known to be only when sizes are, with the input or output that it is found in."""

    @property
    def element(self) -> Type:
        """The type of elements and sums."""
        return _KINDS[self.dtype]

    @property
    def directions(self) -> int:
        """How many directions there are."""
        return len(self.view.backward)

    def strides(self, inner: Dim) -> tuple[Dim, Dim]:
        """Return the strides of step and row of the batch in a tensor (T, N, inner), in the node's layout."""
        return (inner, self.T * inner) if self.view.is_batch_first else (self.N * inner, inner)

    def require_fit(self, sizes: Sizes) -> None:
        """Raise InvalidArgument where inputs and outputs do not fit."""
        for name, found, expected in self.equal:
            if sizes(found) != sizes(expected):
                raise InvalidArgument(
                    f"{name} has a dimension {sizes(found)} where the shapes of X and R, direction and layout make it "
                    f"{sizes(expected)}"
                )


def claim(node: Node) -> RecurrentSpec | str:
    """Return what a recurrent node computes, or why it cannot be compiled."""
    view = Recurrent.of(node)
    lengths, dtype = node.input(_LENGTHS), given(node.inputs[_X]).dtype
    if dtype is None or dtype not in _KINDS:
        return f"elements of type {dtype}"
    for value in (*node.inputs, *node.outputs):
        if value is not None and value is not lengths and value.dtype is not dtype:
            return f"elements of type {value.dtype} beside {dtype}"
    if lengths is not None and lengths.dtype is not DataType.INT32:
        return f"lengths of sequences of type {lengths.dtype}"
    x, weights, recurrence = (shape_of(value) for value in node.inputs[:3])
    if len(x) != 3 or len(weights) != 3 or len(recurrence) != 3:
        return "X, W or R do not have three dimensions"
    H, features = recurrence[2], weights[2]
    if not isinstance(H, int) or not isinstance(features, int) or H < 1:
        return "the number of hidden units or of features is not known, or none"
    if view.hidden_size not in (None, H):
        return f"hidden_size is {view.hidden_size}, and R of shape {recurrence} has {H} units"
    N, T = x[:2] if view.is_batch_first else (x[1], x[0])
    kind = "GRU linear" if view.is_linear_before_reset and node.op_type == "GRU" else node.op_type
    pairs = _pairs(node, view, (T, N, features, H))
    if isinstance(pairs, str):
        return pairs
    return RecurrentSpec(view, kind, T, N, features, H, dtype, pairs)


def _pairs(node: Node, view: Recurrent, dims: tuple[Dim, Dim, int, int]) -> tuple[tuple[str, Dim, Dim], ...] | str:
    """Return what has to be equal of the dimensions of inputs and outputs, or why they do not fit."""
    (T, N, features, H), D, rows = dims, len(view.backward), view.gates * dims[3]
    first = view.is_batch_first
    state: Shape = (N, D, H) if first else (D, N, H)
    inputs = {
        _X: ("X", (N, T, features) if first else (T, N, features)),
        _W: ("W", (D, rows, features)),
        _R: ("R", (D, rows, H)),
        _B: ("B", (D, 2 * rows)),
        _LENGTHS: ("sequence_lens", (N,)),
        _INITIAL_H: ("initial_h", state),
        _INITIAL_C: ("initial_c", state),
        _PEEPHOLES: ("P", (D, 3 * H)),
    }
    every = ("Y", (N, T, D, H) if first else (T, D, N, H))
    found = [(node.input(place), name, shape) for place, (name, shape) in inputs.items()]
    found += [(value, *wanted) for value, wanted in zip(node.outputs, (every, ("Y_h", state), ("Y_c", state)), strict=False)]
    pairs: list[tuple[str, Dim, Dim]] = []
    for value, name, wanted in found:
        if value is None:
            continue
        shape = shape_of(value)
        if len(shape) != len(wanted):
            return f"{name} has shape {shape}, expected {wanted}"
        for left, right in zip(shape, wanted, strict=True):
            if isinstance(left, int) and isinstance(right, int) and left != right:
                return f"{name} has shape {shape}, expected {wanted}"
            if left != right:
                pairs.append((name, left, right))
    return tuple(dict.fromkeys(pairs))


@dataclasses.dataclass(frozen=True, slots=True)
class RecurrentKernel:
    """A cell that walks the steps."""

    cell: Cell
    """The cell."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return expression_symbol(target, "recurrent", self.cell.expressions, self.cell.name)

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_recurrent(module, symbol, self.cell)


@lowers("RNN", "GRU", "LSTM", claim=claim, inputs=3)
def recurrent(low: Lowering, group: Group, spec: RecurrentSpec) -> None:
    """Project the input of all steps, then walk them: all directions in one step where they have the same activations."""
    node = group.node
    has_columns = node.input(_PEEPHOLES if node.op_type == "LSTM" else _B) is not None
    cells = [
        cell_of(
            spec.kind,
            spec.view,
            d,
            has_columns=has_columns,
            is_ragged=node.input(_LENGTHS) is not None,
            element=spec.element,
        )
        for d in range(spec.directions)
    ]
    padded = cells[0].padded(low.target, spec.H)
    projected = _project(low, group, spec, padded)
    buffers, writes = _buffers(low, node, spec, cells[0], padded)
    symbols = [low.kernel(RecurrentKernel(cell)) for cell in cells]
    if len(set(symbols)) == 1:
        _walk(low, group, spec, cells[0], [projected, *buffers], writes, (0, spec.directions))
        return
    for d, cell in enumerate(cells):
        _walk(low, group, spec, cell, [projected, *buffers], writes, (d, 1))


def _project(low: Lowering, group: Group, spec: RecurrentSpec, padded: int) -> Buffer:
    """Return X W^T and the biases (rows, D x gates x padded) of all rows of X, arranged as the cell reads them."""
    node, gates, width = group.node, spec.view.gates, tiling(low.target, spec.element).panel
    groups = tuple(tuple(gate * spec.H for gate in phase) for phase in PHASE_GATES[spec.kind])
    rows = Arrangement(spec.directions, gates * spec.H, groups, spec.H, padded, low.target.lanes(spec.element.bits), width)
    packed = pack_arranged(low, node, node.inputs[_W], rows, spec.features)
    biases = _biases(low, node, spec, rows)
    expr: ElementExpr = argument(0, spec.element)
    for index in range(len(biases)):
        expr = expr + argument(1 + index, spec.element)
    panels = WIDE if spec.element == F32 else NumberPanels(spec.element)
    symbol = low.kernel(ProductKernel(expr, COLUMN * len(biases), panels))
    columns, count = rows.count, spec.T * spec.N
    projected = low.temporary(spec.dtype, (count, columns))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        spec.require_fit(sizes)
        params = GemmParams.blocked(low.target, sizes(count), columns, spec.features, threads=low.threads).in_parts(1)
        return [*params.words(), columns], params.tasks()

    buffers = [low.of(node.inputs[_X]), packed, projected, *biases]
    precision = FLOAT32 if spec.element == F32 else "float64"
    low.step(group, symbol, buffers, writes=[2], plan=plan, precision=precision, together=PART_TASKS)
    return projected


def _biases(low: Lowering, node: Node, spec: RecurrentSpec, rows: Arrangement) -> list[Buffer]:
    """Return the two rows of B that are added to the projected input; in a linear GRU the reset gate has a part of the second."""
    value, half = node.input(_B), spec.view.gates * spec.H
    if value is None:
        return []
    inner = 2 * spec.H if spec.kind == "GRU linear" else half
    second = tuple(tuple(half + start if start < inner else ABSENT for start in group) for group in rows.groups)
    both = (rows.groups, second)
    return [pack_arranged(low, node, value, dataclasses.replace(rows, rows=2 * half, groups=groups), 1) for groups in both]


def _columns(low: Lowering, node: Node, spec: RecurrentSpec, cell: Cell, padded: int) -> Buffer:
    """Return what each unit has besides (D, columns, padded): weights of peepholes, or the bias in the reset gate."""
    if not cell.columns:
        return low.constant(np.zeros(1, spec.dtype.numpy))
    H = spec.H
    is_lstm = spec.kind == "LSTM"
    value, rows = (node.input(_PEEPHOLES), 3 * H) if is_lstm else (node.input(_B), 6 * H)
    starts = (0, H, 2 * H) if is_lstm else (5 * H,)
    arrangement = Arrangement(
        spec.directions, rows, tuple((start,) for start in starts), H, padded, low.target.lanes(spec.element.bits), padded
    )
    return pack_arranged(low, node, value, arrangement, 1)


def _buffers(low: Lowering, node: Node, spec: RecurrentSpec, cell: Cell, padded: int) -> tuple[list[Buffer], list[int]]:
    """Return the buffers of the kernel after the projected input, and which of all it writes."""
    D, N, H = spec.directions, spec.N, spec.H
    state = low.temporary(spec.dtype, (PLANES, D, N, padded))
    last = (N, D, H) if spec.view.is_batch_first else (D, N, H)
    y, *lasts = [_result(low, node, place, last, spec.dtype) for place in range(1 + len(cell.states))]
    weights = [
        pack_arranged(low, node, node.inputs[_R], _panels(spec, cell, number, padded, low.target.lanes(spec.element.bits)), H)
        for number in range(len(cell.phases))
    ]
    initial = [_initial(low, node, place, spec) for place in (_INITIAL_H, _INITIAL_C)[: len(cell.states)]]
    hidden, inner = (initial[0], lasts[0]), (initial[-1], lasts[-1])
    buffers = [state, y, _columns(low, node, spec, cell, padded), *hidden, weights[0], weights[-1], *inner]
    writes = [1, 2, 5] if len(lasts) == 1 else [1, 2, 5, 9]
    lengths = node.input(_LENGTHS)
    return [*buffers, *([] if lengths is None else [low.of(lengths), STATUS])], writes


def _panels(spec: RecurrentSpec, cell: Cell, number: int, padded: int, lanes: int) -> Arrangement:
    """Return how the rows of R for a phase are packed."""
    gates = PHASE_GATES[spec.kind][number]
    width = cell.panel_units(number) * len(gates) * lanes
    return Arrangement(
        spec.directions, spec.view.gates * spec.H, (tuple(gate * spec.H for gate in gates),), spec.H, padded, lanes, width
    )


def _result(low: Lowering, node: Node, place: int, last: Shape, dtype: DataType) -> Buffer:
    """Return where an output goes: where nobody reads it, to a buffer for the states of one step."""
    value = node.outputs[place] if place < len(node.outputs) else None
    return low.temporary(dtype, last) if not _is_read(value) or value is None else low.result(value)


def _is_read(value: Value | None) -> bool:
    return value is not None and value.use_count > 0


def _initial(low: Lowering, node: Node, place: int, spec: RecurrentSpec) -> Buffer:
    value = node.input(place)
    return low.constant(np.zeros(spec.H, spec.dtype.numpy)) if value is None else low.of(value)


def _walk(
    low: Lowering,
    group: Group,
    spec: RecurrentSpec,
    cell: Cell,
    buffers: Sequence[Buffer],
    writes: Sequence[int],
    directions: tuple[int, int],
) -> None:
    """Add the step that walks the steps of some directions: the first, and how many."""
    node, view, D, H = group.node, spec.view, spec.directions, spec.H
    padded, (first, count) = cell.padded(low.target, H), directions
    projected = spec.strides(D * view.gates * padded)
    has_y, (has_h, has_c) = _is_read(node.outputs[_Y]), (node.input(place) is not None for place in (_INITIAL_H, _INITIAL_C))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        spec.require_fit(sizes)
        N, T = sizes(spec.N), sizes(spec.T)
        every, last = ((D * H, T * D * H, H), (D * H, H)) if view.is_batch_first else ((D * N * H, H, N * H), (H, N * H))
        params = RecurrentParams(
            N=N,
            T=T,
            H=H,
            padded=padded,
            directions=D,
            first=first,
            count=count,
            backward=sum(1 << d for d, backward in enumerate(view.backward) if backward),
            projected=(sizes(projected[0]), sizes(projected[1])),
            y=every if has_y else (0, *last),
            last=last,
            initial=last if has_h else (0, 0),
            initial_cell=last if has_c else (0, 0),
        )
        work = params.cut(low.target, cell, low.threads)
        return params.words(work), params.tasks(cell, work)

    symbol = low.kernel(RecurrentKernel(cell))
    low.step(group, symbol, buffers, writes=writes, plan=plan, together=together(low.threads), failure=_LENGTH_FAILURE)
