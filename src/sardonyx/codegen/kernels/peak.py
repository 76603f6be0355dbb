"""Kernels that do nothing but keep the processor busy, by which the peak of a machine is measured."""

from __future__ import annotations

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32

__all__ = ["SCALE_BYTES", "write_multiply_adds", "write_scale"]

_SPARE_REGISTERS = 4
SCALE_BYTES = 1 << 16
"""What one task of `write_scale` reads, and writes again."""


def write_multiply_adds(module: Module, symbol: str) -> int:
    """Write a kernel whose tasks are multiply-adds of float32 on registers, in as many chains as there are registers to spare.

    Buffers: x (lanes) read, sums (lanes) written, by each task alike.

    Returns:
        How many operations a task is, a multiplication and an addition as two.
    """
    chains, lanes = module.target.registers - _SPARE_REGISTERS, module.target.lanes(32)
    with module.kernel(symbol) as b:
        x = b.buffer(0, F32).load(0, lanes)
        sums = [b.variable(x + float(place)) for place in range(chains)]  # else they would be one chain
        with b.loop(0, b.param(0)), b.loop(b.begin, b.end):
            for total in sums:
                total.set(b.fma(total.value, x, x))
        result = sums[0].value
        for total in sums[1:]:
            result = result + total.value
        b.buffer(1, F32).store(result, 0, lanes)
    return 2 * chains * lanes


def write_scale(module: Module, symbol: str) -> None:
    """Write a kernel whose task i reads and writes bytes [i, i + 1) x SCALE_BYTES: x *= parameter 0, 4 vectors at a time.

    Buffers: x (tasks x SCALE_BYTES / 4) float32.
    """
    lanes = module.target.lanes(32)
    size = SCALE_BYTES // 4
    with module.kernel(symbol) as b:
        x, factor = b.buffer(0, F32), b.param_float(0)
        with b.loop(b.begin, b.end) as task:
            part = x.at(task * size)
            with b.loop(0, size // (4 * lanes)) as number:
                for place in range(4):
                    index = number * (4 * lanes) + place * lanes
                    part.store(part.load(index, lanes) * factor, index, lanes)
