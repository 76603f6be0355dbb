"""Pools over windows of channels-last data: MaxPool, AveragePool, LpPool."""

from __future__ import annotations

from sardonyx.codegen.kernels.pool import PoolParams, write_pool
from sardonyx.dtypes import DataType
from sardonyx.ir import Node
from sardonyx.partition.layout import NHWC_DOMAIN
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.windows import Window, channels_of, check_window, conv_axes
from sardonyx.providers.cpu.lowering import Lowering, lowers
from sardonyx.providers.cpu.sizes import Sizes

__all__: list[str] = []


def _check(node: Node) -> str | None:
    """Why a pool, in either layout, cannot be lowered."""
    data, result = node.inputs[0], node.outputs[0]
    if data is None or data.shape is None or result.shape is None:
        return "its input is left out"
    if {data.dtype, result.dtype} != {DataType.FLOAT}:
        return f"a pool of {data.dtype}"
    kernel = node.get("kernel_shape") or ()
    if len(kernel) not in (1, 2, 3) or len(data.shape) != len(kernel) + 2 or len(result.shape) != len(kernel) + 2:
        return f"a window of {len(kernel)} axes over {len(data.shape)} dimensions"
    if channels_of(node, data) != channels_of(node, result):
        return "that its channels stay as they are depends on sizes"
    if len(node.outputs) > 1 and node.outputs[1].use_count:
        return "where the greatest elements are is asked for"
    if node.op_type == "LpPool" and node.get("p", 2) not in (1, 2):
        return f"a norm of order {node.get('p')}"
    return check_window(node, kernel)


def _fold_of(node: Node) -> str:
    if node.op_type == "LpPool":
        return f"norm{int(node.get('p', 2))}"
    return {"MaxPool": "max", "AveragePool": "mean"}[node.op_type]


@lowers("AveragePool", "LpPool", "MaxPool", check=_check, domain=NHWC_DOMAIN)
def lower(low: Lowering, group: Group) -> None:
    """Add the step that folds every window."""
    node = group.anchor
    window = Window.of(node, node.get("kernel_shape"))
    data, result = low.of(node.inputs[0]), low.result(group.result)
    rank, fold = len(window.kernel), _fold_of(node)
    dilated = set(window.dilations) != {1}
    counts_padding = fold == "mean" and bool(node.get("count_include_pad", 0))
    words = [f"pool{rank}d", fold, "dilated" * dilated, "padding" * counts_padding, "f32", low.target.isa]
    symbol = low.kernel(
        "_".join(word for word in words if word),
        lambda module, name: write_pool(module, name, fold, rank, dilated=dilated, counts_padding=counts_padding),
    )
    spatial, threads = data.shape[1:-1], low.threads

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        images, *places, C = sizes.shape(result.shape)
        held = sizes.shape(spatial)
        placed = window.place(held, places)
        axes = conv_axes(window, held, placed, C, sizes(result.row))
        params = PoolParams.blocked(images, C, axes, [place.end for place in placed], threads=threads)
        return params.words(), params.tasks()

    low.step(group, symbol, [data, result], writes=[1], plan=plan, pitched=True)
