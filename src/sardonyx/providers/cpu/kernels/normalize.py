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

import dataclasses
from collections.abc import Callable

from sardonyx.codegen.emit.expr import argument, substitute
from sardonyx.codegen.emit.module import float_word
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.kernels.lines import Along
from sardonyx.codegen.kernels.normalize import Norm, write_normalize
from sardonyx.dtypes import DataType
from sardonyx.ir import Node, Shape, Value
from sardonyx.partition.layout import NHWC_DOMAIN
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.lines import Lines, is_uniform, joins_lines
from sardonyx.providers.cpu.lowering import Lowering, lowers
from sardonyx.providers.cpu.operands import constant_of, given
from sardonyx.providers.cpu.sizes import Sizes

_SCALE, _BIAS = 1, 2
"""Inputs of a node."""


@dataclasses.dataclass(frozen=True, slots=True)
class _View:
    """How a normalization sees its input."""

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
    affine: tuple[tuple[int, Shape], ...] = ()
    """The inputs that are scale and bias, where there are, with shapes that broadcast to `shape`."""
    groups: int = 0
    """Where the channels are split: into how many groups."""

    def of(self, shape: Shape) -> Shape:
        """The shape of a tensor that broadcasts to the input, as it broadcasts to the view."""
        if not self.groups:
            return shape
        padded = (1,) * (len(self.shape) - 1 - len(shape)) + tuple(shape)
        return (padded[0], *((1, 1) if padded[1] == 1 else self.shape[1:3]), *padded[2:])


def _shape(node: Node) -> Shape:
    x = node.inputs[0]
    return (x.shape if x is not None else None) or ()


def _affine(node: Node, shape: Shape | None = None) -> tuple[tuple[int, Shape], ...]:
    """Scale and bias by number, which may be one and the same tensor, seen with `shape` where given."""
    present = ((index, value) for index in (_SCALE, _BIAS) if (value := node.input(index)) is not None)
    return tuple((index, value.shape or () if shape is None else shape) for index, value in present)


def _view_layer(node: Node) -> _View:
    """Lines are as long as scale and bias let them be."""
    shape = _shape(node)
    first = node.get("axis", -1) % len(shape)
    affine = _affine(node)
    uniform = (split for split in range(first, len(shape) + 1) if all(is_uniform(shape, own, split) for _, own in affine))
    norm = Norm.STANDARD if node.op_type == "LayerNormalization" else Norm.ROOT_MEAN
    return _View(shape, first, next(uniform), Along.ROWS, norm, affine)


def _view_instance(node: Node) -> _View:
    shape = _shape(node)
    if node.domain == NHWC_DOMAIN:
        return _View(shape, 1, len(shape) - 1, Along.COLUMNS, Norm.STANDARD, _affine(node))
    return _View(shape, 2, 2, Along.ROWS, Norm.STANDARD, _affine(node, (shape[1], *[1] * (len(shape) - 2))))


def _view_group(node: Node) -> _View:
    """Scale and bias are for each channel; before opset 21 for each group."""
    batch, channels, *spatial = _shape(node)
    groups = node.get("num_groups")
    shape = (batch, groups, channels // groups, *spatial)
    affine = (groups, channels // groups if node.version >= 21 else 1, *[1] * len(spatial))
    return _View(shape, 2, 3, Along.ROWS, Norm.STANDARD, _affine(node, affine), groups)


def _view_lp(node: Node) -> _View:
    shape = _shape(node)
    axis = node.get("axis", -1) % len(shape)
    norm = Norm.NORM_1 if node.get("p", 2) == 1 else Norm.NORM_2
    rows = all(dim == 1 for dim in shape[axis + 1 :])
    return _View(shape, axis, axis if rows else axis + 1, Along.ROWS if rows else Along.COLUMNS, norm)


_VIEWS: dict[str, Callable[[Node], _View]] = {
    "GroupNormalization": _view_group,
    "InstanceNormalization": _view_instance,
    "LayerNormalization": _view_layer,
    "LpNormalization": _view_lp,
    "RMSNormalization": _view_layer,
    "SimplifiedLayerNormalization": _view_layer,
}


def _check(node: Node) -> str | None:
    values = [value for value in (*node.inputs, *node.outputs) if value is not None]
    if any(value.dtype is not DataType.FLOAT for value in values):
        return f"{node.op_type} of other types than float32"
    if not _shape(node):
        return "a scalar"
    if not -len(_shape(node)) <= node.get("axis", -1) < len(_shape(node)):
        return f"axis={node.get('axis')} for {len(_shape(node))} dimensions"
    return _CHECKS[node.op_type](node)


def _check_layer(node: Node) -> str | None:
    if node.get("stash_type", 1) != DataType.FLOAT:
        return "statistics in another type than float32"
    if not all(is_uniform(_shape(node), own, len(_shape(node))) for _, own in _affine(node)):
        return "how scale or bias is broadcast depends on sizes"
    return None


def _check_instance(node: Node) -> str | None:
    shape = _shape(node)
    if len(shape) < 3:
        return f"{len(shape)} dimensions"
    channels = shape[-1] if node.domain == NHWC_DOMAIN else shape[1]
    if [own for _, own in _affine(node)] != [(channels,)] * 2:
        return "scale and bias are not known to have a number for each channel"
    return None


def _check_group(node: Node) -> str | None:
    shape, groups = _shape(node), node.get("num_groups", 0)
    if len(shape) < 3 or not isinstance(shape[1], int):
        return "the number of channels is not known"
    if groups < 1 or shape[1] % groups or node.get("stash_type", 1) != DataType.FLOAT:
        return f"{groups} groups of {shape[1]} channels, or statistics in another type than float32"
    if [own for _, own in _affine(node)] != [(shape[1] if node.version >= 21 else groups,)] * 2:
        return "scale and bias have another length"
    return None


def _check_lp(node: Node) -> str | None:
    return None if node.get("p", 2) in (1, 2) else f"p={node.get('p')}"


_CHECKS: dict[str, Callable[[Node], str | None]] = {
    "GroupNormalization": _check_group,
    "InstanceNormalization": _check_instance,
    "LayerNormalization": _check_layer,
    "LpNormalization": _check_lp,
    "RMSNormalization": _check_layer,
    "SimplifiedLayerNormalization": _check_layer,
}


def _joins(group: Group, node: Node, value: Value) -> bool:
    view = _VIEWS[group.anchor.op_type](group.anchor)
    return joins_lines(view.split - bool(view.groups), group, node, value)


@lowers("InstanceNormalization", domain=NHWC_DOMAIN, check=_check, joins=_joins)
@lowers(*_VIEWS, check=_check, joins=_joins)
def normalize(low: Lowering, group: Group) -> None:
    """Lower to one kernel that reads its input twice at most, and once where a row fits the first-level cache."""
    node = group.anchor
    view = _VIEWS[node.op_type](node)
    expr, tail = low.epilogue(group)
    affine = [(index, shape) for index, shape in view.affine if not _is_neutral(node, index)]
    element = argument(0, F32)
    for number, (index, _) in enumerate(affine, 1 + len(tail)):
        element = element * argument(number, F32) if index == _SCALE else element + argument(number, F32)
    after = substitute(expr, {0: element})
    operands = [
        *((value, view.of(value.shape or ())) for value in tail),
        *((given(node.inputs[index]), shape) for index, shape in affine),
    ]
    source, besides = low.of(node.inputs[0]), [low.of(value) for value, _ in operands]
    lines = Lines(
        view.shape,
        view.first,
        view.split,
        view.along,
        [(buffer.dtype, shape) for buffer, (_, shape) in zip(besides, operands, strict=True)],
    )
    saved = max((value.index for value in node.outputs if value.use_count), default=0)
    statistics = [low.result(value) for value in node.outputs[1 : saved + 1]]
    result = low.result(group.result)
    symbol = low.symbol(f"normalize_{view.norm.value}", [after], lines.name, str(saved or ""))
    low.kernel(
        symbol,
        lambda module, name: write_normalize(module, name, view.along, view.norm, after=after, besides=lines.besides, saved=saved),
    )
    epsilon = float_word(node.get("epsilon", 1e-5))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = lines.params(sizes)
        return [*params.words(), epsilon, *lines.walk(sizes)], params.tasks()

    writes = [1, *range(2, 2 + saved)]
    low.step(group, symbol, [source, result, *statistics, *besides], writes=writes, plan=plan, in_place=[0])


def _is_neutral(node: Node, index: int) -> bool:
    """Whether it is a scale of ones or a bias of zeros."""
    number = constant_of(node.inputs[index])
    return number is not None and bool((number == (1 if index == _SCALE else 0)).all())
