"""DeformConv: moved taps are gathered as panels, which the filters are multiplied by."""

from __future__ import annotations

from math import prod

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import argument
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, Type
from sardonyx.codegen.emit.window import axis_words
from sardonyx.codegen.kernels.gemm import WIDE, tiling
from sardonyx.codegen.kernels.gemm_params import PART_TASKS, GemmParams
from sardonyx.codegen.kernels.images.deform import write_deform
from sardonyx.codegen.kernels.panels import NumberPanels
from sardonyx.codegen.target import Target
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Node
from sardonyx.ir.shape import product
from sardonyx.ops.views.conv import Conv
from sardonyx.ops.views.window import Window
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.matmul import ROW, ProductKernel
from sardonyx.providers.cpu.kernels.windows import conv_axes, place_window, problem_of
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import float_type, given, open_or_wrong, shape_of
from sardonyx.providers.cpu.precision import FLOAT32
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer

_MOST_AXES = 3
_MOST_ELEMENTS = 1 << 31
"""Offsets in a channel are numbers of 32 bits."""


@dataclasses.dataclass(frozen=True, slots=True)
class DeformSpec:
    """A DeformConv."""

    window: Window[int]
    """Where the taps are before they are moved."""
    groups: int
    """Groups of channels."""
    offset_groups: int
    """Groups of channels that have offsets of their own."""
    kind: Type
    """The type of all tensors."""


def claim(node: Node) -> DeformSpec | str:
    """Return what a DeformConv does with its filters, or why it cannot be compiled."""
    kind = float_type(*(value for value in node.inputs if value is not None))
    data, filters, offset = (shape_of(value) for value in node.inputs[:3])
    bias, mask, view = node.input(3), node.input(4), Conv.of(node)
    if isinstance(kind, str):
        return f"inputs of {kind}"
    sizes = [size for size in filters if isinstance(size, int)]
    rank = len(filters) - 2
    if not 1 <= rank <= _MOST_AXES or len(sizes) != rank + 2 or len(data) != rank + 2 or len(offset) != rank + 2:
        return f"that filters of a known shape (M, C / group, *kernel) suit the input {open_or_wrong(filters, data, offset)}"
    M, own, *kernel = sizes
    parts, images = node.integer("offset_group", 1), data[0]
    if data[1] != own * view.group or not M or not own or M % view.group:
        return f"{data[1]} channels in {view.group} groups for filters of {tuple(sizes)}"
    if parts < 1 or own * view.group % parts:
        return f"{parts} groups of offsets for {data[1]} channels"
    taps, places = prod(kernel), shape_of(node.output)[2:]
    expected = {offset: (images, parts * taps * rank, *places)}
    if mask is not None:
        expected[shape_of(mask)] = (images, parts * taps, *places)
    if any(shape != wanted for shape, wanted in expected.items()):
        return f"that offsets and mask have one element for each tap of a place {open_or_wrong(*expected, *expected.values())}"
    if bias is not None and shape_of(bias) != (M,):
        return f"a bias of shape {bias.shape} for {M} output channels"
    window = view.window(kernel)
    return problem_of(window) or DeformSpec(window, view.group, parts, kind)


@dataclasses.dataclass(frozen=True, slots=True)
class DeformKernel:
    """Moved taps, as panels."""

    rank: int
    """How many spatial axes."""
    width: int
    """Places of a panel."""
    masked: bool
    """Whether each tap has a factor."""
    kind: Type
    """The type of all tensors."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"deform{self.rank}d_{self.kind}_{self.width}{'_masked' * self.masked}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_deform(module, symbol, self.rank, self.width, masked=self.masked, kind=self.kind)


@lowers("DeformConv", claim=claim, inputs=3)
def deform_conv(low: Lowering, group: Group, spec: DeformSpec) -> None:
    """Gather the taps of every place, and multiply those of each group by its filters."""
    node, window, rank = group.node, spec.window, len(spec.window.kernel)
    x, filters, offset = (low.of(given(value)) for value in node.inputs[:3])
    mask, result = node.input(4), low.result(node.output)
    width = tiling(low.target, spec.kind).panel
    depth = product(filters.shape[1:])
    images, count = x.shape[0], -(-product(result.shape[2:]) // width)
    panels = low.temporary(x.dtype, (spec.groups, images, count, depth, width))
    symbol = low.kernel(DeformKernel(rank, width, mask is not None, spec.kind))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        held, places = sizes.shape(x.shape[2:]), sizes.shape(result.shape[2:])
        axes = conv_axes(window, held, place_window(window, held, places), 1, 1)
        tasks = sizes(images) * sizes(count)
        if tasks and not 0 < prod(held) < _MOST_ELEMENTS:
            raise InvalidArgument(f"X has shape {sizes.shape(x.shape)}; a channel must have elements, and fewer than 2^31")
        return [sizes(images), sizes(x.shape[1]), spec.groups, spec.offset_groups, *axis_words(axes)], tasks

    factors = [] if mask is None else [low.of(mask)]
    low.step(group, symbol, [x, offset, panels, *factors], writes=[2], plan=plan)
    for number in range(spec.groups):
        _multiply(low, group, spec.kind, (filters, panels, result), number)


def _multiply(low: Lowering, group: Group, kind: Type, buffers: tuple[Buffer, Buffer, Buffer], number: int) -> None:
    """Add the product of the filters of one group with its panels."""
    filters, panels, result = buffers
    groups, images, count, depth, width = panels.shape
    M, places, bias = filters.shape[0] // groups, product(result.shape[2:]), group.node.input(3)
    left = Buffer(filters.dtype, (M, depth), base=filters, offset=number * (M * depth))
    right = Buffer(panels.dtype, panels.shape[1:], base=panels, offset=number * product(panels.shape[1:]))
    target = Buffer(result.dtype, (images, M, *result.shape[2:]), base=result, offset=number * (M * places))
    expr, operands = argument(0, kind), []
    if bias is not None:
        expr = expr + argument(1, kind)
        whole = low.of(bias)
        operands.append(Buffer(whole.dtype, (M, 1), base=whole, offset=number * M))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        m, n, k = sizes(M), sizes(places), sizes(depth)
        stride_b, stride_c = k * sizes(count) * sizes(width), m * sizes(groups) * n
        params = GemmParams.blocked(low.target, m, n, k, threads=low.threads, stride_b=stride_b, stride_c=stride_c)
        params = params.in_parts(sizes(images))
        return [*params.words(), n], params.tasks(sizes(images))

    layout, precision = (WIDE, FLOAT32) if kind == F32 else (NumberPanels(kind), "float64")
    symbol = low.kernel(ProductKernel(expr, ROW * len(operands), layout))
    low.step(group, symbol, [left, right, target, *operands], writes=[2], plan=plan, precision=precision, together=PART_TASKS)
