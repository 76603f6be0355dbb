"""TensorScatter: steps written into a copy of a cache."""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I64, Type
from sardonyx.codegen.kernels.cache_write import write_cache_write
from sardonyx.codegen.target import Target
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Node
from sardonyx.ops.views.axes import normalize_axis
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import index_type, moved_as, open_or_wrong, shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import STATUS

_MODES = {"linear": False, "circular": True}


@dataclasses.dataclass(frozen=True, slots=True)
class CacheSpec:
    """A TensorScatter."""

    element: Type
    """The type as which elements are moved."""
    axis: int
    """The axis of steps."""
    wraps: bool
    """Whether steps go on at the first one behind the last."""


def claim(node: Node) -> CacheSpec | str:
    """Return how a TensorScatter writes steps, or why it cannot be compiled."""
    cache, update, starts, element = shape_of(node.inputs[0]), shape_of(node.inputs[1]), node.input(2), moved_as(node)
    mode = node.text("mode", "linear")
    if isinstance(element, str):
        return element
    if not cache or mode not in _MODES:
        return f"mode {mode!r} of a cache of {len(cache)} dimensions"
    axis = normalize_axis(node.integer("axis", -2), len(cache))
    others = [shape[:axis] + shape[axis + 1 :] for shape in (cache, update)]
    if not axis or len(update) != len(cache) or others[0] != others[1]:
        return f"that cache and update differ in axis {axis} alone, which is not that of the batch, {open_or_wrong(cache, update)}"
    if starts is not None and (index_type(starts) != I64 or shape_of(starts) != cache[:1]):
        return f"that there is an int64 start for each of the batch {open_or_wrong(shape_of(starts), cache)}"
    return CacheSpec(element, axis, _MODES[mode])


@dataclasses.dataclass(frozen=True, slots=True)
class CacheWriteKernel:
    """Steps written into a copy."""

    element: Type
    """The type as which elements are moved."""
    wraps: bool
    """Whether steps go on at the first one behind the last."""
    reads_starts: bool
    """Whether each of the batch has a start."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        words = f"{'_wraps' * self.wraps}{'_starts' * self.reads_starts}"
        return f"cache_write_{self.element.size_bytes}{words}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_cache_write(module, symbol, self.element, wraps=self.wraps, reads_starts=self.reads_starts)


@lowers("TensorScatter", claim=claim, inputs=2)
def tensor_scatter(low: Lowering, group: Group, spec: CacheSpec) -> None:
    """Copy the cache and the update, a part of the batch after another."""
    node, axis, starts = group.node, spec.axis, group.node.input(2)
    cache, update, result = low.of(node.inputs[0]), low.of(node.inputs[1]), low.result(node.output)

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        steps, length = sizes(cache.shape[axis]), sizes(update.shape[axis])
        if length > steps:
            raise InvalidArgument(f"an update of {length} steps does not fit a cache of {steps}")
        outer, inner = sizes.product(cache.shape[1:axis]), sizes.product(cache.shape[axis + 1 :])
        return [outer, steps, length, inner], sizes(cache.shape[0]) * outer

    symbol = low.kernel(CacheWriteKernel(spec.element, spec.wraps, starts is not None))
    buffers = [cache, update, result, STATUS, *([] if starts is None else [low.of(starts)])]
    low.step(group, symbol, buffers, writes=[2], plan=plan, failure=_FAILURE)


_FAILURE = "write_indices[{}] is negative, or its steps do not fit the cache; expected 0 to the cache's steps less the update's"
