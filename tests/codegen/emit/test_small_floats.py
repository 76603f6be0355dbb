"""Conversions of floats of 8 and 4 bits, bit by bit."""

import math

import ml_dtypes
import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.narrow import from_narrow, to_narrow
from sardonyx.codegen.emit.small_floats import SMALL_FLOATS
from sardonyx.codegen.emit.types import E2M1, E4M3FN, E4M3FNUZ, E5M2, E5M2FNUZ, F32, Type
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

_KINDS = {
    ml_dtypes.float8_e4m3fn: E4M3FN,
    ml_dtypes.float8_e4m3fnuz: E4M3FNUZ,
    ml_dtypes.float8_e5m2: E5M2,
    ml_dtypes.float8_e5m2fnuz: E5M2FNUZ,
    ml_dtypes.float4_e2m1fn: E2M1,
}


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """Both directions for all types."""
    module = Module(target)
    for kind in _KINDS.values():
        with module.kernel(f"widen_{kind.name}") as b:
            for i, span in b.vectors(b.begin, b.end, F32):
                b.buffer(1, F32).store(from_narrow(b, b.buffer(0, kind).load(i, span)), i, span)
        with module.kernel(f"narrow_{kind.name}") as b:
            for i, span in b.vectors(b.begin, b.end, F32):
                b.buffer(1, kind).store(to_narrow(b, b.buffer(0, F32).load(i, span), kind), i, span)
    engine = Engine(target)
    engine.add(module)
    return engine


@pytest.mark.parametrize("dtype", _KINDS, ids=lambda dtype: dtype.__name__)
def test_every_code_is_widened_exactly(engine: Engine, dtype: type) -> None:
    """Also denormal numbers, infinities and NaN."""
    kind = _KINDS[dtype]
    codes = np.arange(16 if kind == E2M1 else 256, dtype=np.uint8)
    found = np.zeros(codes.size, np.float32)
    call(engine, f"widen_{kind.name}", [codes, found], [], 0, codes.size)
    expected = codes.view(dtype).astype(np.float32)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def _numbers(dtype: type) -> Array:
    """Numbers of every size, all numbers of the type, what is half-way between two, and the floats beside these."""
    bits = np.random.default_rng(0).integers(0, 1 << 32, 100_000, dtype=np.uint32).view(np.float32)
    own = np.arange(16 if "4_" in dtype.__name__ else 256, dtype=np.uint8).view(dtype).astype(np.float32)
    own = np.unique(own[np.isfinite(own)])
    half = np.concatenate([(own[:-1] + own[1:]) / 2, own[-1:] * np.float32(1.0625), own[-1:] * np.float32(1.125)])
    near = np.concatenate([own, half, -half])
    beside = [np.nextafter(near, np.float32(end)) for end in (-np.inf, np.inf)]
    special = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45], np.float32)
    return np.concatenate([bits, near, *beside, special]).astype(np.float32)


@pytest.mark.parametrize("dtype", _KINDS, ids=lambda dtype: dtype.__name__)
def test_numbers_are_rounded_to_the_nearest_code(engine: Engine, dtype: type) -> None:
    """Ties to even; what is too large, and NaN, are what ml_dtypes makes of them."""
    kind, numbers = _KINDS[dtype], _numbers(dtype)
    found = np.zeros(numbers.size, np.uint8)
    call(engine, f"narrow_{kind.name}", [numbers, found], [], 0, numbers.size)
    with np.errstate(all="ignore"):
        expected = numbers.astype(dtype).view(np.uint8)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("dtype", "kind"), _KINDS.items(), ids=lambda item: getattr(item, "name", ""))
def test_the_largest_number_is_that_of_the_type(dtype: type, kind: Type) -> None:
    """To which quantization saturates."""
    assert math.isclose(SMALL_FLOATS[kind.kind].largest, float(ml_dtypes.finfo(dtype).max), rel_tol=0)
