"""A custom operator with a kernel of the CPU provider, written with sardonyx's kernel compiler.

    sardonyx run MODEL --load examples/cpu_kernel/running_sum.py

RunningSum adds up along the last axis: y[r, i] = x[r, 0] + … + x[r, i], in float32. A task of the kernel is one row, and the
rows are divided among the session's threads.
"""

import numpy as np

import sardonyx
from sardonyx.cpu_kernels import F32, CpuKernel, DataType, Group, Lowering, Module, Node, Sizes, UserKernel, product, shape_of

X, Y = range(2)
"""The buffers of the kernel."""
LENGTH = 0
"""Its integer parameter: the elements of a row."""


def write_running_sum(module: Module, symbol: str) -> None:
    """Write the kernel: tasks are rows, from `b.begin` to `b.end`."""
    with module.kernel(symbol) as b:
        length = b.param(LENGTH)
        x, y = b.buffer(X, F32), b.buffer(Y, F32)
        with b.loop(b.begin, b.end) as row:
            total = b.variable(b.const(F32, 0.0))
            with b.loop(0, length) as i:
                total.add(x.load(row * length + i))
                y.store(total.value, row * length + i)


def claim(node: Node) -> int | str:
    """Return the axis along which a node sums, or why it is left to the Python function."""
    shape = shape_of(node.inputs[0])
    if not shape:
        return "a sum along a scalar"
    if node.inputs[0].dtype is not DataType.FLOAT:
        return f"elements of type {node.inputs[0].dtype}"
    return len(shape) - 1


def lower(low: Lowering, group: Group, axis: int) -> None:
    """Add one step: the kernel, its buffers, and what its parameter and its number of tasks are for given sizes."""
    source, result = low.of(group.node.inputs[0]), low.result(group.result)
    symbol = low.kernel(UserKernel("running_sum_f32", write_running_sum))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        rows, length = sizes(product(source.shape[:axis])), sizes(source.shape[axis])
        return [length], rows

    low.step(group, symbol, [source, result], writes=[Y], plan=plan, in_place=[X])


@sardonyx.op("my.domain", "RunningSum", outputs=["x"], shape=lambda x: x, cpu_kernel=CpuKernel(claim, lower))
def running_sum(x):
    """Compute the sum where the kernel does not: elements of other types, and shapes of unknown rank."""
    return np.cumsum(x, -1, dtype=x.dtype)
