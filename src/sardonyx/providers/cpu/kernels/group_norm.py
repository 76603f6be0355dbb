"""GroupNormalization over channels-last data: moments of channels, put together to those of groups, then one map.

x (N, spatial, C) ─ moments ─► mean, rest, squares (N, C) ─ groups ─► mean, factor, summand (N, C)
                y = (x - mean) * factor + summand, with the element-wise nodes that follow
"""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import argument, substitute
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.float_words import float_word
from sardonyx.codegen.kernels.lines import Along
from sardonyx.codegen.kernels.normalize import write_group_terms, write_moments
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.ir import Node, Shape
from sardonyx.ops.schema import NHWC_DOMAIN
from sardonyx.ops.views.normalize import GroupNormalization
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.batch_norm import lower_map
from sardonyx.providers.cpu.kernels.elementwise import joins_elementwise
from sardonyx.providers.cpu.kernels.lines import Lines
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import open_or_wrong, shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer

__all__ = ["group_normalization"]


@dataclasses.dataclass(frozen=True, slots=True)
class GroupNormSpec:
    """A normalization of groups of channels."""

    shape: Shape
    """(N, spatial, C)."""
    groups: int
    """How many groups."""
    epsilon: float
    """What is added to the variance."""


def claim(node: Node) -> GroupNormSpec | str:
    """Return the groups that a GroupNormalization has, or why it cannot be compiled."""
    values = [value for value in (*node.inputs, *node.outputs) if value is not None]
    other = next((value.dtype for value in values if value.dtype is not DataType.FLOAT), None)
    if other is not None:
        return f"GroupNormalization of elements of type {other}"
    shape, view = shape_of(node.inputs[0]), GroupNormalization.of(node)
    if view.stash_type != DataType.FLOAT:
        return "statistics in another type than float32"
    if len(shape) < 3:
        return f"{len(shape)} dimensions"
    if not isinstance(shape[-1], int):
        return "the number of channels is not known"
    if shape[-1] % view.groups:
        return f"{view.groups} groups of {shape[-1]} channels"
    if not view.scales_channels:
        return "scale and bias are for each group"
    if any(shape_of(value) != (shape[-1],) for value in node.inputs[1:3]):
        return (
            f"that scale and bias have a number for each of {shape[-1]} channels {open_or_wrong(*map(shape_of, node.inputs[1:3]))}"
        )
    return GroupNormSpec(shape, view.groups, view.epsilon)


@dataclasses.dataclass(frozen=True, slots=True)
class MomentsKernel:
    """Moments of columns."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"moments_columns_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_moments(module, symbol, Along.COLUMNS)


@dataclasses.dataclass(frozen=True, slots=True)
class GroupTermsKernel:
    """What the groups of channels are normalized with."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"group_terms_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_group_terms(module, symbol)


@lowers("GroupNormalization", domain=NHWC_DOMAIN, claim=claim, joins=joins_elementwise, inputs=3)
def group_normalization(low: Lowering, group: Group, spec: GroupNormSpec) -> None:
    """Lower to three steps; the input is read three times."""
    node, shape = group.node, spec.shape
    channels: Shape = (shape[0], *[1] * (len(shape) - 2), shape[-1])
    lines = Lines(shape, 1, len(shape) - 1, Along.COLUMNS)
    moments = [low.temporary(DataType.FLOAT, channels) for _ in range(3)]
    symbol = low.kernel(MomentsKernel())

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = lines.params(sizes)
        return params.words(), params.tasks()

    low.step(group, symbol, [low.of(node.inputs[0]), *moments], writes=[1, 2, 3], plan=plan)
    terms = _terms(low, group, moments, spec)
    expr, tail = low.epilogue(group)
    count = len(tail) + 1
    mean, factor, summand = (argument(count + k, F32) for k in range(3))
    element = (argument(0, F32) - mean) * factor + summand
    own = [low.of(value) for value in tail]
    lower_map(low, group, substitute(expr, {0: element}), own, [(term, channels) for term in terms])


def _terms(low: Lowering, group: Group, moments: list[Buffer], spec: GroupNormSpec) -> list[Buffer]:
    """Add the step that makes mean, factor and summand of each channel, and return these."""
    node, shape = group.node, spec.shape
    groups, epsilon = spec.groups, float_word(spec.epsilon)
    terms = [low.temporary(DataType.FLOAT, moments[0].shape) for _ in range(3)]
    symbol = low.kernel(GroupTermsKernel())

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        total = sizes(shape[0]) * groups
        return [total, groups, sizes(shape[-1]) // groups, sizes.product(shape[1:-1]), epsilon], total

    buffers = [*moments, low.of(node.inputs[1]), low.of(node.inputs[2]), *terms]
    low.step(group, symbol, buffers, writes=[5, 6, 7], plan=plan)
    return terms
