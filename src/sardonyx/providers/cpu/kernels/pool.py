"""Pools over windows of channels-last data: MaxPool, AveragePool, LpPool, and those of com.microsoft.

These are NhwcMaxPool, QLinearAveragePool and QLinearGlobalAveragePool.

Integers of 8 bits stay what they are in memory. They are averaged, and rounded to integers again, as onnxruntime does it:

    QLinearAveragePool           round(mean((x - x_zero) x_scale) / y_scale + y_zero)
    QLinearGlobalAveragePool     round(sum(x - x_zero) (x_scale / (y_scale count))) + y_zero
"""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import OPERATORS, ElementExpr, argument, constant, number
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.scalars import scalar
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.kernels.pool import PoolParams, PoolTypes, write_pool
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.ir import Node
from sardonyx.ops.schema import NHWC_DOMAIN
from sardonyx.ops.views.pool import Pool
from sardonyx.ops.views.window import Window
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.expressions import argument_of, expression_symbol, scalar_of
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.elementwise import joins_alone
from sardonyx.providers.cpu.kernels.windows import channels_of, conv_axes, place_window, problem_of
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, open_or_wrong, shape_of
from sardonyx.providers.cpu.qlinear import saturated
from sardonyx.providers.cpu.sizes import Sizes

__all__ = ["PoolSpec", "claim_global", "fold_name", "windows_problem"]

_BYTES = (DataType.INT8, DataType.UINT8)


@dataclasses.dataclass(frozen=True, slots=True)
class PoolSpec:
    """A pool."""

    window: Window[int] | None
    """The window that is folded at every place; None for one that is as large as the input."""
    rank: int
    """How many spatial axes there are."""
    fold: str
    """How: a name in FOLDS."""
    counts_padding: bool
    """Whether a mean counts the padding."""
    before: ElementExpr
    """What is folded, of argument 0, an element."""
    after: ElementExpr
    """What is stored, of argument 0, the result of the fold, and argument 1, how many elements count."""


def claim(node: Node) -> PoolSpec | str:
    """Return what a pool folds, or why it cannot be compiled."""
    data, result, view = given(node.inputs[0]), node.outputs[0], Pool.of(node)
    types = {data.dtype, result.dtype}
    if types != {DataType.FLOAT} and not (fold_name(node, view) == "max" and len(types) == 1 and data.dtype in _BYTES):
        return f"{node.op_type} of elements of type {data.dtype}"
    if len(node.outputs) > 1 and node.outputs[1].use_count:
        return "where the greatest elements are is asked for"
    if node.op_type == "LpPool" and view.order not in (1, 2):
        return f"a norm of order {view.order:g}"
    fold, element = fold_name(node, view), argument_of(0, data.dtype or DataType.UNDEFINED)
    return windows_problem(node, view) or PoolSpec(
        view.window, len(view.window.kernel), fold, fold == "mean" and view.counts_padding, element, element
    )


def fold_name(node: Node, view: Pool) -> str:
    """Return the name in FOLDS of what a pool does with a window."""
    return f"norm{view.order:.0f}" if node.op_type == "LpPool" else {"AveragePool": "mean"}.get(node.op_type, "max")


def windows_problem(node: Node, view: Pool) -> str | None:
    """Return why the windows of a pool, in either layout, cannot be folded by a kernel; None where they can."""
    data, result, kernel = given(node.inputs[0]), node.outputs[0], view.sliding.kernel_shape
    if len(kernel) not in (1, 2, 3) or {len(shape_of(data)), len(shape_of(result))} != {len(kernel) + 2}:
        return f"a window of {len(kernel)} axes over {len(shape_of(data))} dimensions"
    if channels_of(node, data) != channels_of(node, result):
        return f"that its channels stay as they are {open_or_wrong(channels_of(node, data), channels_of(node, result))}"
    return problem_of(view.window)


def claim_quantized(node: Node) -> PoolSpec | str:
    """Return what a QLinearAveragePool averages, or why it cannot be compiled."""
    numbers = _scales_of(node)
    if isinstance(numbers, str):
        return numbers
    view, (x, x_scale, x_zero, y_scale, y_zero) = Pool.of(node), numbers
    mean = argument(0, F32) / y_scale + y_zero
    before, after = (x.to(F32) - x_zero) * x_scale, saturated(mean, x.type)
    window = view.window
    return windows_problem(node, view) or PoolSpec(window, len(window.kernel), "mean", view.counts_padding, before, after)


def claim_global(node: Node) -> PoolSpec | str:
    """Return what a QLinearGlobalAveragePool averages, or why it cannot be compiled."""
    numbers, rank = _scales_of(node), len(shape_of(node.inputs[0])) - 2
    if isinstance(numbers, str) or rank not in (1, 2, 3):
        return numbers if isinstance(numbers, str) else f"{rank} spatial axes, expected 1 to 3"
    x, x_scale, x_zero, y_scale, y_zero = numbers
    mean = argument(0, F32) * (x_scale / (y_scale * argument(1, F32)))
    after = saturated(OPERATORS["round"](mean) + y_zero, x.type)
    return PoolSpec(None, rank, "sum", False, x.to(F32) - x_zero, after)


def _scales_of(node: Node) -> tuple[ElementExpr, ElementExpr, ElementExpr, ElementExpr, ElementExpr] | str:
    """Return an element, its scale and zero point, and those of the result, or why they are not known."""
    data = given(node.inputs[0])
    if data.dtype not in _BYTES or node.outputs[0].dtype is not data.dtype:
        return f"{node.op_type} of elements of type {data.dtype}"
    numbers: list[ElementExpr] = []
    for index in range(1, 5):
        given_number = scalar_of(node, index)
        if given_number is None and node.input(index) is not None:
            return f"input {index} is not one constant number"
        numbers.append(constant(0.0, F32) if given_number is None else scalar(float(given_number), F32))
    x_scale, x_zero, y_scale, y_zero = numbers
    return argument_of(0, data.dtype), x_scale, x_zero, y_scale, y_zero


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
    before: ElementExpr
    """What is folded."""
    after: ElementExpr
    """What is stored."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        words = [f"pool{self.rank}d", self.fold, "dilated" * self.dilated, "padding" * self.counts_padding]
        return expression_symbol(target, "_".join(word for word in words if word), [self.before, self.after])

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        read = next(step.type for step in number([self.before])[0] if step.primitive == "argument")
        types = PoolTypes(read, self.before, self.after)
        write_pool(module, symbol, self.fold, self.rank, dilated=self.dilated, counts_padding=self.counts_padding, types=types)


@lowers("QLinearAveragePool", claim=claim_quantized, joins=joins_alone, domain=NHWC_DOMAIN, inputs=4)
@lowers("QLinearGlobalAveragePool", claim=claim_global, joins=joins_alone, domain=NHWC_DOMAIN, inputs=4)
@lowers("NhwcMaxPool", claim=claim, joins=joins_alone, domain="com.microsoft")
@lowers("AveragePool", "LpPool", "MaxPool", claim=claim, joins=joins_alone, domain=NHWC_DOMAIN)
def lower(low: Lowering, group: Group, spec: PoolSpec) -> None:
    """Add the step that folds every window."""
    data, result = low.of(group.node.inputs[0]), low.result(group.result)
    before, after = low.lift(group, spec.before, low.tail(group, spec.after))
    dilated = spec.window is not None and set(spec.window.dilations) != {1}
    symbol = low.kernel(PoolKernel(spec.rank, spec.fold, dilated, spec.counts_padding, before, after))
    spatial, threads = data.shape[1:-1], low.threads

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        images, *places, C = sizes.shape(result.shape)
        held = sizes.shape(spatial)
        window = spec.window or _whole(held)
        placed = place_window(window, held, places)
        axes = conv_axes(window, held, placed, C, sizes(result.row))
        params = PoolParams.blocked(images, C, axes, [place.end for place in placed], threads=threads)
        return params.words(), params.tasks()

    low.step(group, symbol, [data, result], writes=[1], plan=plan, pitched=True)


def _whole(sizes: tuple[int, ...]) -> Window[int]:
    """Return a window as large as the input."""
    ones = (1,) * len(sizes)
    return Window(sizes, ones, ones, (0,) * (2 * len(sizes)))
