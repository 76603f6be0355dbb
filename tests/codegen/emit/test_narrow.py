"""Conversions of the 16-bit floats, bit by bit, for processors with and without instructions for them."""

import ml_dtypes
import numpy as np
import pytest
from support.kernels import call
from support.machines import runnable_machines

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.narrow import from_narrow, to_narrow
from sardonyx.codegen.emit.types import BF16, F16, F32, U16
from sardonyx.codegen.run.jit import Engine
from sardonyx.dtypes import Array

_MACHINES = runnable_machines()
_SIGNALLING = 0x7D81
"""A signalling NaN of float16."""
_KINDS = {"float16": F16, "bfloat16": BF16}


@pytest.fixture(scope="module", params=_MACHINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Both directions for both types."""
    target = _MACHINES[request.param]
    module = Module(target)
    for name, kind in _KINDS.items():
        with module.kernel(f"widen_{name}") as b:
            for i, span in b.vectors(b.begin, b.end, F32):
                b.buffer(1, F32).store(from_narrow(b, b.buffer(0, kind).load(i, span)), i, span)
        with module.kernel(f"narrow_{name}") as b:
            for i, span in b.vectors(b.begin, b.end, F32):
                b.buffer(1, kind).store(to_narrow(b, b.buffer(0, F32).load(i, span), kind), i, span)
        with module.kernel(f"move_{name}") as b:
            for i, span in b.vectors(b.begin, b.end, kind):
                x, one = b.buffer(0, kind).load(i, span), b.buffer(0, kind).load(_SIGNALLING)
                chosen = b.select(x.bits_as(U16) >= 0x8000, x, one)
                b.buffer(1, kind).store(chosen, i, span)
    engine = Engine(target)
    engine.add(module)
    return engine


@pytest.mark.parametrize(("name", "dtype"), [("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16)])
def test_every_narrow_number_is_widened_exactly(engine: Engine, name: str, dtype: type) -> None:
    """All 65,536 bit patterns give the float32 of the same value; a NaN keeps its bits, one of float16 becomes quiet."""
    x = np.arange(1 << 16, dtype=np.uint16)
    out = np.zeros(x.size, np.uint32)
    call(engine, f"widen_{name}", [x, out], [], 0, x.size)
    expected = x.view(dtype).astype(np.float32)
    nan = np.isnan(expected)
    np.testing.assert_array_equal(out[~nan], expected[~nan].view(np.uint32))
    bits = x[nan].astype(np.uint32)
    kept = bits << 16 if name == "bfloat16" else (bits & 0x8000) << 16 | (bits & 0x7FFF) << 13 | 0x7FC00000
    np.testing.assert_array_equal(out[nan], kept)


def _numbers() -> Array:
    """Numbers of every size, many of them between two narrow ones, and what is special in any format."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 32, 100_000, dtype=np.uint32)
    halves = (rng.integers(0, 1 << 19, 50_000, dtype=np.uint32) << 13) | 0x1000
    bfloats = np.arange(1 << 16, dtype=np.uint32) << 16
    ties = [halves, *(bfloats + near for near in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF))]
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 65519.9, 65520, 2.0**-24, 2.0**-25, 3e-8, 1e-40, 3.4e38], np.float32)
    return np.concatenate([bits, *ties, edges.view(np.uint32)]).view(np.float32)


@pytest.mark.parametrize(("name", "dtype"), [("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16)])
def test_numbers_are_narrowed_to_the_nearest_even(engine: Engine, name: str, dtype: type) -> None:
    """Numbers of every size, ties among them, are rounded once, with the bits of NumPy and of ml_dtypes."""
    x = _numbers()
    out = np.zeros(x.size, np.uint16)
    call(engine, f"narrow_{name}", [x, out], [], 0, x.size)
    with np.errstate(all="ignore"):
        expected: Array = x.astype(dtype).view(np.uint16)
    numeric = ~np.isnan(x)
    np.testing.assert_array_equal(out[numeric], expected[numeric])


def test_nan_of_bfloat16_has_the_bits_of_ml_dtypes(engine: Engine) -> None:
    """Only the sign is kept, whatever the NaN was: signalling ones, and those whose upper bits are those of infinity, too."""
    x = _numbers()
    x = x[np.isnan(x)]
    out = np.zeros(x.size, np.uint16)
    call(engine, "narrow_bfloat16", [x, out], [], 0, x.size)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(out, x.astype(ml_dtypes.bfloat16).view(np.uint16))


def test_nan_of_float16_is_quiet_and_keeps_its_upper_bits(engine: Engine) -> None:
    """The bits of VCVTPS2PH, also where there is no such instruction."""
    x = _numbers()
    x = x[np.isnan(x)]
    out = np.zeros(x.size, np.uint16)
    call(engine, "narrow_float16", [x, out], [], 0, x.size)
    bits = x.view(np.uint32)
    np.testing.assert_array_equal(out, (bits >> 16 & 0x8000 | 0x7E00 | bits >> 13 & 0x3FF).astype(np.uint16))


def test_narrow_numbers_are_moved_without_a_conversion(engine: Engine) -> None:
    """Every pattern of 16 bits, signalling NaN among them, stays as it is when it is loaded, chosen, spread and stored."""
    x = np.arange(1 << 16, dtype=np.uint16)
    for name in _KINDS:
        out = np.zeros(x.size, np.uint16)
        call(engine, f"move_{name}", [x, out], [], 0, x.size)
        np.testing.assert_array_equal(out, np.where(x >= 0x8000, x, np.uint16(_SIGNALLING)))
