"""Normalizations along rows (layer, root mean square, group, instance, Lp) or columns (channels-last instances, Lp).

    operator                         outer         lines           length
    LayerNormalization, RMS          before axis   …               all of the normalized axes that scale and bias go along with
    InstanceNormalization            N, C          1               spatial
    the same, channels-last          N             spatial         C                             columns
    GroupNormalization               N, groups     C / groups      spatial
    LpNormalization                  before axis   1               the axis                      or columns

Scale and bias are part of the expression that writes the result, like the element-wise nodes that follow.
"""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import ElementExpr, argument, substitute
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, Type
from sardonyx.codegen.float_words import float_word
from sardonyx.codegen.kernels.lines import Along
from sardonyx.codegen.kernels.normalize import Norm, write_normalize
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.ir import Node, Shape, Value
from sardonyx.ops.schema import NHWC_DOMAIN
from sardonyx.ops.views.axes import normalize_axis
from sardonyx.ops.views.normalize import GroupNormalization, LayerNormalization, LpNormalization, epsilon_of
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.expressions import element_type, expression_symbol
from sardonyx.providers.cpu.fuse import Group, Member
from sardonyx.providers.cpu.kernels.lines import NARROWED, Lines, LinesCode, is_uniform, joins_lines
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import constant_of, given, open_or_wrong, shape_of
from sardonyx.providers.cpu.sizes import Sizes

_SCALE, _BIAS = 1, 2
"""Inputs of a node."""


@dataclasses.dataclass(frozen=True, slots=True)
class NormSpec:
    """A normalization, and how it sees its input."""

    shape: Shape
    """The dimensions, some of which may be split."""
    first: int
    """The first axis that is folded."""
    split: int
    """The axis at which lines begin."""
    along: Along
    """What is folded."""
    norm: Norm
    """What it is divided by."""
    epsilon: float
    """What is added to the variance, or to the mean square."""
    affine: tuple[tuple[int, Shape], ...] = ()
    """The inputs that are scale and bias, where there are, with shapes that broadcast to `shape`."""
    groups: int = 0
    """Where the channels are split: into how many groups."""

    def of(self, shape: Shape) -> Shape:
        """Return the shape of a tensor that broadcasts to the input, as it broadcasts to the view."""
        if not self.groups:
            return shape
        padded = (1,) * (len(self.shape) - 1 - len(shape)) + tuple(shape)
        return (padded[0], *((1, 1) if padded[1] == 1 else self.shape[1:3]), *padded[2:])


def _affine(node: Node, shape: Shape | None = None) -> tuple[tuple[int, Shape], ...]:
    """Return scale and bias by number, which may be one and the same tensor, seen with `shape` where given."""
    present = ((index, value) for index in (_SCALE, _BIAS) if (value := node.input(index)) is not None)
    return tuple((index, shape_of(value) if shape is None else shape) for index, value in present)


def _problem_of(node: Node) -> str | None:
    values = [value for value in (*node.inputs, *node.outputs) if value is not None]
    dtypes = {value.dtype for value in values}
    if dtypes not in ({DataType.FLOAT}, {DataType.DOUBLE}):
        return f"{node.op_type} of elements of type {', '.join(sorted(map(str, dtypes - {DataType.FLOAT})))}"
    if not shape_of(node.inputs[0]):
        return f"{node.op_type} of a scalar"
    return None


_STASH = "statistics in another type than float32"


def claim_layer(node: Node) -> NormSpec | str:
    """Return how a LayerNormalization sees its input, or why it cannot be compiled.

    Lines are as long as scale and bias let them be.
    """
    problem, shape, affine = _problem_of(node), shape_of(node.inputs[0]), _affine(node)
    if problem is not None:
        return problem
    view = LayerNormalization.of(node)
    if not view.stashes_float:
        return _STASH
    first = view.first(len(shape))
    uniform = [split for split in range(first, len(shape) + 1) if all(is_uniform(shape, own, split) for _, own in affine)]
    if not uniform:
        shapes = [own for _, own in affine]
        return f"that scale or bias of shapes {shapes} are broadcast to {shape} {open_or_wrong(shape, *shapes)}"
    norm = Norm.STANDARD if node.op_type == "LayerNormalization" else Norm.ROOT_MEAN
    return NormSpec(shape, first, uniform[0], Along.ROWS, norm, view.epsilon, affine)


def claim_instance(node: Node) -> NormSpec | str:
    """Return how an InstanceNormalization sees its input, or why it cannot be compiled."""
    problem, shape = _problem_of(node), shape_of(node.inputs[0])
    if problem is not None:
        return problem
    if len(shape) < 3:
        return f"{len(shape)} dimensions"
    is_last, epsilon = node.domain == NHWC_DOMAIN, epsilon_of(node)
    channels = shape[-1] if is_last else shape[1]
    own = [shape for _, shape in _affine(node)]
    if own != [(channels,)] * 2:
        return f"that scale and bias have a number for each of {channels} channels {open_or_wrong((channels,), *own)}"
    if is_last:
        return NormSpec(shape, 1, len(shape) - 1, Along.COLUMNS, Norm.STANDARD, epsilon, _affine(node))
    return NormSpec(shape, 2, 2, Along.ROWS, Norm.STANDARD, epsilon, _affine(node, (channels, *[1] * (len(shape) - 2))))


def claim_group(node: Node) -> NormSpec | str:
    """Return how a GroupNormalization sees its input, or why it cannot be compiled.

    Before opset 21 scale and bias are for groups.
    """
    problem, given_shape, view = _problem_of(node), shape_of(node.inputs[0]), GroupNormalization.of(node)
    if problem is not None:
        return problem
    if len(given_shape) < 3:
        return f"{len(given_shape)} dimensions"
    if view.stash_type != DataType.FLOAT:
        return _STASH
    batch, channels, *spatial = given_shape
    groups = view.groups
    if not isinstance(channels, int):
        return "the number of channels is not known"
    if channels % groups:
        return f"{groups} groups of {channels} channels"
    count = channels if view.scales_channels else groups
    if [own for _, own in _affine(node)] != [(count,)] * 2:
        return f"scale and bias have shapes {[own for _, own in _affine(node)]}, expected ({count},)"
    shape = (batch, groups, channels // groups, *spatial)
    affine = _affine(node, (groups, count // groups, *[1] * len(spatial)))
    return NormSpec(shape, 2, 3, Along.ROWS, Norm.STANDARD, view.epsilon, affine, groups)


def claim_lp(node: Node) -> NormSpec | str:
    """Return how an LpNormalization sees its input, or why it cannot be compiled."""
    problem, shape, view = _problem_of(node), shape_of(node.inputs[0]), LpNormalization.of(node)
    if problem is not None:
        return problem
    axis = normalize_axis(view.axis, len(shape))
    norm = Norm.NORM_1 if view.order == 1 else Norm.NORM_2
    rows = all(dim == 1 for dim in shape[axis + 1 :])
    return NormSpec(shape, axis, axis if rows else axis + 1, Along.ROWS if rows else Along.COLUMNS, norm, epsilon=0.0)


def _joins(group: Group, spec: NormSpec, member: Member, value: Value) -> bool:
    return joins_lines(spec.split - bool(spec.groups), group, member, value, NARROWED)


@dataclasses.dataclass(frozen=True, slots=True)
class NormalizeKernel:
    """A normalization of lines."""

    norm: Norm
    """What they are divided by."""
    lines: LinesCode
    """How they and the extra operands are walked."""
    after: ElementExpr
    """What is stored, of the normalized element and the extra operands."""
    saved: int
    """How many statistics are stored too."""
    kind: Type
    """The type of what is normalized."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        kind = "" if self.kind == F32 else f"{self.kind.text}_"
        name = f"normalize_{self.norm.value}"
        return expression_symbol(target, name, [self.after], f"{kind}{self.lines.name}", str(self.saved or ""))

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_normalize(
            module,
            symbol,
            self.lines.along,
            self.norm,
            after=self.after,
            extra_operands=self.lines.extra_operands,
            saved=self.saved,
            kind=self.kind,
        )


@lowers("GroupNormalization", claim=claim_group, joins=_joins, inputs=3)
@lowers("InstanceNormalization", claim=claim_instance, joins=_joins, inputs=3, domain=NHWC_DOMAIN)
@lowers("InstanceNormalization", claim=claim_instance, joins=_joins, inputs=3)
@lowers("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization", claim=claim_layer, joins=_joins)
@lowers("LpNormalization", claim=claim_lp, joins=_joins)
def normalize(low: Lowering, group: Group, view: NormSpec) -> None:
    """Lower to one kernel that reads its input twice at most, and once where a row fits the first-level cache."""
    node, kind = group.node, element_type(group.node.outputs[0].dtype) or F32
    expr, tail = low.epilogue(group)
    affine = [(index, shape) for index, shape in view.affine if not _is_neutral(node, index)]
    element = argument(0, kind)
    for number, (index, _) in enumerate(affine, 1 + len(tail)):
        element = element * argument(number, kind) if index == _SCALE else element + argument(number, kind)
    after = substitute(expr, {0: element})
    operands = [
        *((value, view.of(value.shape or ())) for value in tail),
        *((given(node.inputs[index]), shape) for index, shape in affine),
    ]
    source, extra_operands = low.of(node.inputs[0]), [low.of(value) for value, _ in operands]
    lines = Lines(
        view.shape,
        view.first,
        view.split,
        view.along,
        [(buffer.dtype, shape) for buffer, (_, shape) in zip(extra_operands, operands, strict=True)],
    )
    saved = max((value.index for value in node.outputs if value.use_count), default=0)
    statistics = [low.result(value) for value in node.outputs[1 : saved + 1]]
    result = low.result(group.result)
    symbol = low.kernel(NormalizeKernel(view.norm, lines.code, after, saved, kind))
    epsilon = float_word(view.epsilon)

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = lines.params(sizes)
        return [*params.words(), epsilon, *lines.walk(sizes)], params.tasks()

    writes, in_place = [1, *range(2, 2 + saved)], [0] if result.dtype is source.dtype else []
    low.step(group, symbol, [source, result, *statistics, *extra_operands], writes=writes, plan=plan, in_place=in_place)


def _is_neutral(node: Node, index: int) -> bool:
    """Return whether it is a scale of ones or a bias of zeros."""
    number = constant_of(node.inputs[index])
    return number is not None and bool((number == (1 if index == _SCALE else 0)).all())
