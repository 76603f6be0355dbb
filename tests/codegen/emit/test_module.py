"""Kernels, functions and tables of one module."""

from collections.abc import Callable

import numpy as np

from sardonyx.codegen.emit.module import Address, Module
from sardonyx.codegen.emit.types import F32, I64
from sardonyx.codegen.target import Target

Run = Callable[..., None]


def _saxpy(target: Target) -> Module:
    module = Module(target)
    with module.kernel("saxpy_f32") as b:
        x, y, a = b.buffer(0, F32), b.buffer(1, F32), b.param_float(0)
        for i, span in b.vectors(b.begin, b.end, F32):
            y.store(b.fma(x.load(i, span), a, y.load(i, span)), i, span)
    return module


def test_a_kernel_works_on_its_range_of_tasks(target: Target, run: Run) -> None:
    """Elements outside [begin, end) stay as they are."""
    x, y = np.arange(100, dtype=np.float32), np.ones(100, np.float32)
    run(_saxpy(target), "saxpy_f32", [x, y], [2.0], begin=3, end=77)
    assert y.tolist() == [1.0 + 2 * i if 3 <= i < 77 else 1.0 for i in range(100)]


def test_the_text_of_a_module_is_always_the_same(target: Target) -> None:
    """Equal kernels have equal text, so that the object cache finds them."""
    assert str(_saxpy(target)) == str(_saxpy(target))


def test_tables_are_constants_of_the_module(target: Target, run: Run) -> None:
    """A table is read through the pointer that names it."""
    out = np.zeros(3, np.float32)
    module = Module(target)
    numbers = module.table("numbers", np.array([1.5, -2, 3e38], np.float32))
    with module.kernel("k") as b, b.loop(0, 3) as i:
        b.buffer(0, F32).store(b.pointer(numbers, F32).load(i), i)
    run(module, "k", [out])
    assert out.tolist() == [1.5, -2, float(np.float32(3e38))]


def test_addresses_are_arguments(target: Target, run: Run) -> None:
    """A function takes typed addresses; one that is inlined leaves no symbol."""
    out = np.zeros(2, np.float32)
    module = Module(target)
    with module.function("put", Address(F32), Address(F32, unique=False), I64, inline=True) as put:
        first, second = put.addresses
        first.store(put.arguments[0].to(F32))
        second.store(-put.arguments[0].to(F32))
    with module.kernel("k") as b:
        array = b.buffer(0, F32)
        b.call(put, array, array.at(1), b.param(0))
    run(module, "k", [out], [5])
    assert out.tolist() == [5, -5]
    assert module.exports == ["k"]
