"""Conversions of the 16-bit floats, bit by bit."""

import ml_dtypes
import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.narrow import from_narrow, to_narrow
from sardonyx.codegen.emit.types import BF16, F16, F32
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

_KINDS = {"float16": F16, "bfloat16": BF16}


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """Both directions for both types."""
    module = Module(target)
    for name, kind in _KINDS.items():
        with module.kernel(f"widen_{name}") as b:
            for i, span in b.vectors(b.begin, b.end, F32):
                b.buffer(1, F32).store(from_narrow(b, b.buffer(0, kind).load(i, span)), i, span)
        with module.kernel(f"narrow_{name}") as b:
            for i, span in b.vectors(b.begin, b.end, F32):
                b.buffer(1, kind).store(to_narrow(b, b.buffer(0, F32).load(i, span), kind), i, span)
    engine = Engine(target)
    engine.add(module)
    return engine


@pytest.mark.parametrize(("name", "dtype"), [("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16)])
def test_every_narrow_number_is_widened_exactly(engine: Engine, name: str, dtype: type) -> None:
    """All 65,536 bit patterns give the float32 of the same value; NaN stays NaN."""
    x: Array = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    out = np.zeros(x.size, np.float32)
    call(engine, f"widen_{name}", [x, out], [], 0, x.size)
    expected = x.astype(np.float32)
    np.testing.assert_array_equal(out, expected)
    assert (np.signbit(out) == np.signbit(expected)).all()


@pytest.mark.parametrize(("name", "dtype"), [("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16)])
def test_numbers_are_narrowed_to_the_nearest_even(engine: Engine, name: str, dtype: type) -> None:
    """Numbers of every size, ties among them, are rounded once as NumPy rounds them."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 32, 100_000, dtype=np.uint32)
    ties = (rng.integers(0, 1 << 19, 50_000, dtype=np.uint32) << 13) | 0x1000
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 65519.9, 65520, 2.0**-24, 2.0**-25, 3e-8, 1e-40, 3.4e38], np.float32)
    x = np.concatenate([bits.view(np.float32), ties.view(np.float32), edges])
    out = np.zeros(x.size, np.uint16)
    call(engine, f"narrow_{name}", [x, out], [], 0, x.size)
    with np.errstate(all="ignore"):
        expected: Array = x.astype(dtype)
    numeric = ~np.isnan(x)
    np.testing.assert_array_equal(out[numeric], expected.view(np.uint16)[numeric])
    assert np.isnan(out.view(dtype)[~numeric].astype(np.float32)).all()
