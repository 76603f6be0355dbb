"""Pools over windows of channels-last data: MaxPool, AveragePool, LpPool."""

from __future__ import annotations

import dataclasses

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.pool import PoolParams, write_pool
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.ir import Node
from sardonyx.ops.views.pool import Pool
from sardonyx.ops.views.window import Window
from sardonyx.partition.layout import NHWC_DOMAIN
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.windows import channels_of, conv_axes, place_window, problem_of
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, open_or_wrong, shape_of
from sardonyx.providers.cpu.sizes import Sizes

__all__: list[str] = []


@dataclasses.dataclass(frozen=True, slots=True)
class PoolSpec:
    """A pool."""

    window: Window[int]
    """The window that is folded at every place."""
    fold: str
    """How: "max", "mean", "norm1" or "norm2"."""
    counts_padding: bool
    """Whether a mean counts the padding."""


def claim(node: Node) -> PoolSpec | str:
    """Return what a pool, in either layout, folds, or why it cannot be compiled."""
    data, result, view = given(node.inputs[0]), node.outputs[0], Pool.of(node)
    kernel = view.sliding.kernel_shape
    if {data.dtype, result.dtype} != {DataType.FLOAT}:
        return f"{node.op_type} of elements of type {data.dtype}"
    if len(kernel) not in (1, 2, 3) or {len(shape_of(data)), len(shape_of(result))} != {len(kernel) + 2}:
        return f"a window of {len(kernel)} axes over {len(shape_of(data))} dimensions"
    if channels_of(node, data) != channels_of(node, result):
        return f"that its channels stay as they are {open_or_wrong(channels_of(node, data), channels_of(node, result))}"
    if len(node.outputs) > 1 and node.outputs[1].use_count:
        return "where the greatest elements are is asked for"
    if node.op_type == "LpPool" and view.order not in (1, 2):
        return f"a norm of order {view.order:g}"
    fold = f"norm{view.order:.0f}" if node.op_type == "LpPool" else {"MaxPool": "max", "AveragePool": "mean"}[node.op_type]
    return problem_of(view.window) or PoolSpec(view.window, fold, fold == "mean" and view.counts_padding)


@dataclasses.dataclass(frozen=True, slots=True)
class PoolKernel:
    """A fold of windows."""

    rank: int
    """How many spatial axes."""
    fold: str
    """How elements are put together."""
    dilated: bool
    """Whether the elements of a window lie apart."""
    counts_padding: bool
    """Whether a mean counts the padding."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        words = [f"pool{self.rank}d", self.fold, "dilated" * self.dilated, "padding" * self.counts_padding, "f32", target.isa]
        return "_".join(word for word in words if word)

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_pool(module, symbol, self.fold, self.rank, dilated=self.dilated, counts_padding=self.counts_padding)


@lowers("AveragePool", "LpPool", "MaxPool", claim=claim, domain=NHWC_DOMAIN)
def lower(low: Lowering, group: Group, spec: PoolSpec) -> None:
    """Add the step that folds every window."""
    window, fold, counts_padding = spec.window, spec.fold, spec.counts_padding
    data, result = low.of(group.node.inputs[0]), low.result(group.result)
    rank = len(window.kernel)
    dilated = set(window.dilations) != {1}
    symbol = low.kernel(PoolKernel(rank, fold, dilated, counts_padding))
    spatial, threads = data.shape[1:-1], low.threads

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        images, *places, C = sizes.shape(result.shape)
        held = sizes.shape(spatial)
        placed = place_window(window, held, places)
        axes = conv_axes(window, held, placed, C, sizes(result.row))
        params = PoolParams.blocked(images, C, axes, [place.end for place in placed], threads=threads)
        return params.words(), params.tasks()

    low.step(group, symbol, [data, result], writes=[1], plan=plan, pitched=True)
