"""MaxPool: the greatest elements, and where they are, if that is read."""

from __future__ import annotations

from math import prod

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, F64, Type
from sardonyx.codegen.emit.window import axis_words
from sardonyx.codegen.kernels.images.pool_places import write_pool_places
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Node, Value
from sardonyx.ops.views.pool import Pool
from sardonyx.ops.views.window import Window
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group, Member
from sardonyx.providers.cpu.kernels.elementwise import joins_alone
from sardonyx.providers.cpu.kernels.images import plane_pool
from sardonyx.providers.cpu.kernels.windows import conv_axes, place_window, problem_of
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, shape_of
from sardonyx.providers.cpu.sizes import Sizes

_KINDS = {DataType.FLOAT: F32, DataType.DOUBLE: F64}
_MOST_AXES = 3
_MOST_ELEMENTS = 1 << 31
"""Places in a plane are numbers of 32 bits."""


@dataclasses.dataclass(frozen=True, slots=True)
class PlacesSpec:
    """A MaxPool with indices."""

    kind: Type
    """The type of elements."""
    window: Window[int]
    """The window."""
    counts_by_column: bool
    """Whether indices count the first spatial axis fastest."""


@dataclasses.dataclass(frozen=True, slots=True)
class MaxPoolSpec:
    """A MaxPool, with indices or without."""

    found: PlacesSpec | plane_pool.PlanePoolSpec
    """What it finds."""


def claim(node: Node) -> MaxPoolSpec | str:
    """Return what a MaxPool finds, or why it cannot be compiled."""
    reads_places = any(value.use_count for value in node.outputs[1:])
    found = claim_places(node) if reads_places else plane_pool.claim(node)
    return found if isinstance(found, str) else MaxPoolSpec(found)


def claim_places(node: Node) -> PlacesSpec | str:
    """Return what a MaxPool whose indices are read finds, or why it cannot be compiled."""
    x, view = given(node.inputs[0]), Pool.of(node)
    rank = len(view.sliding.kernel_shape)
    if x.dtype not in _KINDS:
        return f"places of elements of type {x.dtype}"
    if not 1 <= rank <= _MOST_AXES or len(shape_of(x)) != rank + 2:
        return f"a window of {rank} axes over {len(shape_of(x))} dimensions"
    return problem_of(view.window) or PlacesSpec(_KINDS[x.dtype], view.window, view.counts_by_column)


@dataclasses.dataclass(frozen=True, slots=True)
class PoolPlacesKernel:
    """The greatest elements of windows, and their places."""

    kind: Type
    """The type of elements."""
    rank: int
    """How many spatial axes."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"pool_places{self.rank}d_{self.kind}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_pool_places(module, symbol, self.kind, self.rank)


def _joins(group: Group, spec: MaxPoolSpec, member: Member, value: Value) -> bool:
    return isinstance(spec.found, plane_pool.PlanePoolSpec) and joins_alone(group, spec, member, value)


@lowers("MaxPool", claim=claim, joins=_joins)
def max_pool(low: Lowering, group: Group, spec: MaxPoolSpec) -> None:
    """Fold windows alone, or go through the windows of a row after another."""
    if isinstance(spec.found, PlacesSpec):
        find_places(low, group, spec.found)
    else:
        plane_pool.lower(low, group, spec.found)


def find_places(low: Lowering, group: Group, spec: PlacesSpec) -> None:
    """Add the step that finds the greatest elements and where they are."""
    node, window = group.node, spec.window
    x, y, indices = low.of(node.inputs[0]), low.result(node.outputs[0]), low.result(node.outputs[1])

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        images, channels, *places = sizes.shape(y.shape)
        held = sizes.shape(x.shape[2:])
        axes = conv_axes(window, held, place_window(window, held, places), 1, 1)
        tasks = images * channels * prod(places[:-1]) if places[-1] else 0
        if tasks and not 0 < prod(held) < _MOST_ELEMENTS:
            raise InvalidArgument(f"X has shape {sizes.shape(x.shape)}; a channel must have elements, and fewer than 2^31")
        steps = [prod(held[:axis]) for axis in range(len(held))] if spec.counts_by_column else [axis.in_step for axis in axes]
        return [*axis_words(axes), *steps], tasks

    low.step(group, low.kernel(PoolPlacesKernel(spec.kind, len(window.kernel))), [x, y, indices], writes=[1, 2], plan=plan)
