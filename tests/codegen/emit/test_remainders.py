"""Quotients of integers and remainders of floats: exact for all operands."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.remainders import float_remainder, integer_quotient
from sardonyx.codegen.emit.types import of_dtype
from sardonyx.codegen.emit.values import Register
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

_RNG = np.random.default_rng(0)


def _run(target: Target, name: str, x: Array, y: Array) -> Array:
    """A function of two vectors, by name; x.size is a multiple of all vectors."""
    functions = {"quotient": integer_quotient, "remainder": float_remainder}
    kind, module = of_dtype(x.dtype), Module(target)
    with module.kernel("divide") as b:
        _walk(b, functions[name], [b.buffer(place, kind) for place in range(3)], b.param(0))
    engine, result = Engine(target), np.empty_like(x)
    engine.add(module)
    call(engine, "divide", [x, y, result], [x.size])
    return result


def _walk(b: Function, function: object, arrays: list[Register], count: Register) -> None:
    assert callable(function)
    x, y, result = arrays
    for i, span in b.vectors(0, count, x.element):
        result.store(function(b, x.load(i, span), y.load(i, span)), i, span)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_quotients_are_truncated(target: Target, dtype: str) -> None:
    """Of numbers of all sizes, the greatest and least among them, and of multiples and their neighbours."""
    info = np.iinfo(dtype)
    ends = [info.max, info.max - 1, info.min, info.min + 1, 1, 2, 3, 7]
    drawn = _RNG.integers(info.min, info.max, 4096, dtype, endpoint=True) >> _RNG.integers(0, info.bits, 4096).astype(dtype)
    numbers = np.concatenate([np.array(ends, dtype), drawn])
    x = np.concatenate(
        [np.repeat(np.array(ends, dtype), len(ends)), numbers, numbers // 7 * 7, numbers // 7 * 7 - (numbers > info.min)]
    )
    y = np.concatenate([np.tile(np.array(ends, dtype), len(ends)), _RNG.permutation(numbers), np.full_like(numbers, 7), numbers])
    x, y = (side[: side.size // 64 * 64] for side in (x, y))
    y = np.where((y == 0) | ((y.astype(object) == -1) & (x == info.min)), np.array(1, dtype), y)
    exact = [abs(int(a)) // abs(int(b)) * (1 if (a < 0) == (b < 0) else -1) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    np.testing.assert_array_equal(_run(target, "quotient", x, y), np.array(exact, dtype))


def test_remainders_are_exact(target: Target) -> None:
    """Of floats of all sizes, denormal and not finite, near multiples of the divisor, and far above it."""
    special = np.array(
        [0, -0.0, 1e-45, -1e-45, 1e-40, 1, -1, 3, np.inf, -np.inf, np.nan, 3.4e38, -3.4e38, 0.1, 2**24 + 2, 7], np.float32
    )
    wide = (_RNG.standard_normal(4096) * np.exp2(_RNG.uniform(-120, 120, 4096))).astype(np.float32)
    near = _RNG.uniform(-4, 4, 4096).astype(np.float32)
    multiple = (near * np.trunc(np.exp2(_RNG.uniform(0, 30, 4096)))).astype(np.float32)
    x = np.concatenate([np.repeat(special, 16), wide, near * 1000, multiple, np.nextafter(multiple, np.float32(0))])
    y = np.concatenate([np.tile(special, 16), _RNG.permutation(wide), _RNG.permutation(near), near, near])
    with np.errstate(all="ignore"):
        exact = np.fmod(x, y)
    found = _run(target, "remainder", x, y)
    np.testing.assert_array_equal(found, exact)
    np.testing.assert_array_equal(np.signbit(found[~np.isnan(exact)]), np.signbit(exact[~np.isnan(exact)]))
