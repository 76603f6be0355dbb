"""Overwrite what was sampled outside of an axis; ONNX Resize with tf_crop_and_resize."""

from __future__ import annotations

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, Type
from sardonyx.codegen.kernels.resize import TABLE_WORDS, coordinate_of

__all__ = ["write_outside"]


def write_outside(module: Module, symbol: str, element: Type) -> None:
    """Write the kernel `symbol`: buffers result (outer, output, inner) and the element to put there; a task is one of `outer`.

    Parameters: those of `resize.TableWords`, then the elements behind the axis. NaN lies outside.
    """
    with module.kernel(symbol) as b:
        size, output, inner = b.param(0).to(F32), b.param(1), b.param(TABLE_WORDS)
        number = b.buffer(1, element).load()
        with b.loop(b.begin, b.end) as task, b.loop(0, output) as i:
            coordinate = coordinate_of(b, i)
            inside = (coordinate >= 0.0) & (coordinate <= size - 1.0)
            with b.when(~inside):
                row = b.buffer(0, element).at((task * output + i) * inner)
                for place, span in b.vectors(0, inner, element):
                    row.store(number, place, span)
