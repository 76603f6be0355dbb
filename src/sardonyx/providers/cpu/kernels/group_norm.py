"""GroupNormalization over channels-last data: moments of channels, put together to those of groups, then one map.

x (N, spatial, C) ─ moments ─► mean, rest, squares (N, C) ─ groups ─► mean, factor, summand (N, C)
                y = (x - mean) * factor + summand, with the element-wise nodes that follow
"""

from __future__ import annotations

from sardonyx.codegen.emit.expr import argument, substitute
from sardonyx.codegen.emit.module import float_word
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.kernels.lines import Along
from sardonyx.codegen.kernels.normalize import write_group_terms, write_moments
from sardonyx.dtypes import DataType
from sardonyx.ir import Node, Shape
from sardonyx.partition.layout import NHWC_DOMAIN
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.batch_norm import lower_map
from sardonyx.providers.cpu.kernels.elementwise import joins_elementwise
from sardonyx.providers.cpu.kernels.lines import Lines
from sardonyx.providers.cpu.lowering import Lowering, lowers
from sardonyx.providers.cpu.operands import shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer

__all__ = ["SCALES_CHANNELS", "group_normalization"]

SCALES_CHANNELS = 21
"""The opset version from which on scale and bias are for each channel."""


def _check(node: Node) -> str | None:
    values = [value for value in (*node.inputs, *node.outputs) if value is not None]
    if any(value.dtype is not DataType.FLOAT for value in values) or node.get("stash_type", 1) != DataType.FLOAT:
        return "GroupNormalization of other types than float32"
    shape, groups = shape_of(node.inputs[0]), node.get("num_groups", 0)
    if len(shape) < 3 or not isinstance(shape[-1], int) or groups < 1 or shape[-1] % groups:
        return f"{groups} groups of {shape[-1] if shape else 0} channels"
    if node.version < SCALES_CHANNELS or any(shape_of(value) != (shape[-1],) for value in node.inputs[1:3]):
        return "scale and bias are not known to have a number for each channel"
    return None


@lowers("GroupNormalization", domain=NHWC_DOMAIN, check=_check, joins=joins_elementwise)
def group_normalization(low: Lowering, group: Group) -> None:
    """Lower to three steps; the input is read three times."""
    node = group.anchor
    shape = shape_of(node.inputs[0])
    channels: Shape = (shape[0], *[1] * (len(shape) - 2), shape[-1])
    lines = Lines(shape, 1, len(shape) - 1, Along.COLUMNS)
    moments = [low.temporary(DataType.FLOAT, channels) for _ in range(3)]
    symbol = f"moments_columns_{low.target.isa}"
    low.kernel(symbol, lambda module, name: write_moments(module, name, Along.COLUMNS))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = lines.params(sizes)
        return params.words(), params.tasks()

    low.step(group, symbol, [low.of(node.inputs[0]), *moments], writes=[1, 2, 3], plan=plan)
    terms = _terms(low, group, moments, shape)
    expr, tail = low.epilogue(group)
    count = len(tail) + 1
    mean, factor, summand = (argument(count + k, F32) for k in range(3))
    element = (argument(0, F32) - mean) * factor + summand
    own = [low.of(value) for value in tail]
    lower_map(low, group, substitute(expr, {0: element}), own, [(term, channels) for term in terms])


def _terms(low: Lowering, group: Group, moments: list[Buffer], shape: Shape) -> list[Buffer]:
    """The step that makes mean, factor and summand of each channel."""
    node = group.anchor
    groups, epsilon = node.get("num_groups"), float_word(node.get("epsilon", 1e-5))
    terms = [low.temporary(DataType.FLOAT, moments[0].shape) for _ in range(3)]
    symbol = f"group_terms_{low.target.isa}"
    low.kernel(symbol, write_group_terms)

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        total = sizes(shape[0]) * groups
        return [total, groups, sizes(shape[-1]) // groups, sizes.product(shape[1:-1]), epsilon], total

    buffers = [*moments, low.of(node.inputs[1]), low.of(node.inputs[2]), *terms]
    low.step(group, symbol, buffers, writes=[5, 6, 7], plan=plan)
    return terms
