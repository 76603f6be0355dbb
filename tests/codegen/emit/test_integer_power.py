"""Whole powers of integers: exact modulo 2 to the number of bits, for all operands."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.integer_power import integer_power
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import of_dtype
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

_RNG = np.random.default_rng(0)


def _run(target: Target, x: Array, y: Array) -> Array:
    kind, module = of_dtype(x.dtype), Module(target)
    with module.kernel("power") as b:
        left, right, result = (b.buffer(place, kind) for place in range(3))
        for i, span in b.vectors(0, b.param(0), kind):
            result.store(integer_power(b, left.load(i, span), right.load(i, span)), i, span)
    engine, result = Engine(target), np.empty_like(x)
    engine.add(module)
    call(engine, "power", [x, y, result], [x.size])
    return result


def _wrapped(number: int, dtype: str) -> int:
    info = np.iinfo(dtype)
    low = number & (2**info.bits - 1)
    return low - 2**info.bits if info.min < 0 and low > info.max else low


def _power(x: int, y: int, dtype: str) -> int:
    if y >= 0:
        return _wrapped(pow(x, y, 2 ** np.iinfo(dtype).bits), dtype)
    if x == 0:
        return int(np.iinfo(dtype).min)
    return {1: 1, -1: 1 if y % 2 == 0 else -1}.get(x, 0)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("count", [1, 7, 8, 67])
def test_powers_wrap_around(target: Target, dtype: str, count: int) -> None:
    """Of numbers of all sizes to powers of all sizes, none but the vector's own deciding how many squares are taken."""
    info = np.iinfo(dtype)
    ends = np.array([0, 1, 2, 3, info.max, info.min, info.max - 1, info.min + 1, info.max // 2], dtype)
    x = np.resize(np.repeat(ends, len(ends)), 67)[:count]
    y = np.resize(np.tile(ends, len(ends)), 67)[:count]
    for bases, powers in ((x, y), (_RNG.integers(info.min, info.max, count, dtype), _RNG.integers(0, 70, count).astype(dtype))):
        expected = [_power(int(base), int(power), dtype) for base, power in zip(bases, powers, strict=True)]
        np.testing.assert_array_equal(_run(target, bases, powers), np.array(expected, dtype))


def test_negative_powers_are_truncated_reciprocals(target: Target) -> None:
    """1 and -1 keep their size, all else is 0, and 0 the least integer."""
    x, y = np.array([2, 1, -1, -1, 0, -3], np.int32), np.array([-1, -4, -3, -4, -1, -2], np.int32)
    np.testing.assert_array_equal(_run(target, x, y), [0, 1, -1, 1, np.iinfo(np.int32).min, 0])
