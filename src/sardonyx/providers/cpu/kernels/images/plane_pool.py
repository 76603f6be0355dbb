"""Pools over data whose channels come first, where nothing around them is computed with the channels last."""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import ElementExpr
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import Type
from sardonyx.codegen.kernels.images.plane_pool import LONGEST_EXTENT, MOST_STRIDE, PlanePoolCode, PlanePoolParams, write_plane_pool
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.ir import Node
from sardonyx.ops.views.pool import Pool
from sardonyx.ops.views.window import Window
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.expressions import element_type, expression_symbol
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.elementwise import joins_alone
from sardonyx.providers.cpu.kernels.pool import fold_name, windows_problem
from sardonyx.providers.cpu.kernels.windows import conv_axes, place_window
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given
from sardonyx.providers.cpu.sizes import Sizes

__all__ = ["PlanePoolSpec", "claim", "lower"]

_FLOATS = (DataType.FLOAT, DataType.DOUBLE)
_TYPES = {"MaxPool": (*_FLOATS, DataType.INT8, DataType.UINT8)}
_FEW_TAPS = 5


@dataclasses.dataclass(frozen=True, slots=True)
class PlanePoolSpec:
    """A pool."""

    window: Window[int]
    """The window that is folded at every place."""
    kind: Type
    """The type of elements."""
    fold: str
    """How: a name in FOLDS."""
    counts_padding: bool
    """Whether a mean counts the padding."""


def claim(node: Node) -> PlanePoolSpec | str:
    """Return what a pool folds, or why it cannot be compiled; a MaxPool whose indices are read is another kernel's."""
    data, result, view = given(node.inputs[0]), node.outputs[0], Pool.of(node)
    kind = element_type(data.dtype)
    if kind is None or data.dtype not in _TYPES.get(node.op_type, _FLOATS) or result.dtype is not data.dtype:
        return f"{node.op_type} of elements of type {data.dtype}"
    if node.op_type == "LpPool" and view.order not in (1, 2):
        return f"a norm of order {view.order:g}"
    problem, fold = windows_problem(node, view), fold_name(node, view)
    if problem is None and view.window.extents[-1] > LONGEST_EXTENT:
        return f"a window of {view.window.extents[-1]} elements on the last axis"
    return problem or PlanePoolSpec(view.window, kind, fold, fold == "mean" and view.counts_padding)


@dataclasses.dataclass(frozen=True, slots=True)
class PlanePoolKernel:
    """A fold of windows."""

    code: PlanePoolCode
    """What its code depends on."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        code = self.code
        words = [f"plane_pool{code.rank}d", code.fold, f"{code.kind.kind.value}{code.kind.bits}"]
        words += [f"s{code.stride}", f"t{code.taps}", "padding" * code.counts_padding, "dilated" * code.dilated]
        return expression_symbol(target, "_".join(word for word in words if word), [code.after])

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_plane_pool(module, symbol, self.code)


@lowers("AveragePool", "LpPool", claim=claim, joins=joins_alone)
def lower(low: Lowering, group: Group, spec: PlanePoolSpec) -> None:
    """Add the step that folds every window."""
    data, result = low.of(group.node.inputs[0]), low.result(group.result)
    symbol, threads, window = low.kernel(PlanePoolKernel(_code(spec, low.epilogue(group)[0]))), low.threads, spec.window

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        images, channels, *places = sizes.shape(result.shape)
        held = sizes.shape(data.shape[2:])
        placed = place_window(window, held, places)
        axes = conv_axes(window, held, placed, 1, 1)
        params = PlanePoolParams.blocked(images * channels, axes, [place.end for place in placed], threads=threads)
        return params.words(), params.tasks()

    low.step(group, symbol, [data, result], writes=[1], plan=plan)


def _code(spec: PlanePoolSpec, after: ElementExpr) -> PlanePoolCode:
    window = spec.window
    stride, taps = window.strides[-1], window.kernel[-1]
    return PlanePoolCode(
        spec.fold,
        spec.kind,
        len(window.kernel),
        stride if stride <= MOST_STRIDE else 0,
        taps if taps <= _FEW_TAPS else 0,
        spec.counts_padding,
        set(window.dilations) != {1},
        after,
    )
