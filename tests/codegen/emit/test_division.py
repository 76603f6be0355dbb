"""Quotients by one divisor."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.division import Divisor, is_fit_divisor
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, F64, U8
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target, host_target
from sardonyx.dtypes import Array


def _quotients(target: Target, x: Array, divisor: np.float32) -> tuple[Array, bool]:
    module, lanes = Module(target), target.lanes(32)
    with module.kernel("divide") as b:
        by = Divisor(b, b.buffer(1, F32).load(0))
        b.buffer(3, U8).store(by.is_fit.to(U8), 0)
        with b.loop(0, b.param(0), lanes) as i:
            b.buffer(2, F32).store(by.quotient(b.buffer(0, F32).load(i, lanes)), i, lanes)
    engine, result, fit = Engine(target), np.zeros_like(x), np.zeros(1, np.uint8)
    engine.add(module)
    call(engine, "divide", [x, np.array([divisor], np.float32), result, fit], [x.size])
    return result, bool(fit[0])


def test_quotients_are_rounded_to_nearest() -> None:
    """Bit for bit those of the instruction, for divisors of all significands, and numbers around ties."""
    rng, target = np.random.default_rng(0), host_target()
    for divisor in np.exp2(rng.uniform(-60, 60, 200)).astype(np.float32):
        near = ((rng.integers(-300, 300, 4096) + 0.5) * divisor).astype(np.float32)
        near = (near.view(np.int32) + rng.integers(-2, 3, near.size, dtype=np.int32)).view(np.float32)
        x = np.concatenate([near, (rng.standard_normal(4096) * 100 * divisor).astype(np.float32)])
        result, is_fit = _quotients(target, x, divisor)
        assert is_fit
        np.testing.assert_array_equal(result, x / divisor)


def test_what_is_far_out_keeps_its_sign() -> None:
    """Infinities, NaN, and quotients that no float holds, which saturate."""
    x = np.array([np.inf, -np.inf, np.nan, 3e38, -3e38, 0, -0.0, 1e-40] * 2, np.float32)
    for divisor in (np.float32(1e-3), np.float32(7e20)):
        result, _ = _quotients(host_target(), x, divisor)
        with np.errstate(all="ignore"):
            exact = x / divisor
        np.testing.assert_array_equal(np.clip(np.rint(result), -1000, 1000), np.clip(np.rint(exact), -1000, 1000))


@pytest.mark.parametrize("divisor", [0.0, -1.0, np.inf, np.nan, 1e-40, 1e30, np.float32(2 - 2**-23)])
def test_other_divisors_are_not_fit(divisor: float) -> None:
    """Zero, negative, not finite, denormal, huge, or of a significand of ones."""
    assert not _quotients(host_target(), np.zeros(16, np.float32), np.float32(divisor))[1]
    assert not is_fit_divisor(divisor)
    assert is_fit_divisor(0.1)


def test_only_float32_is_divided() -> None:
    """The proof is about one precision."""
    module = Module(host_target())
    with module.kernel("divide") as b, pytest.raises(TypeError, match="quotients of double"):
        Divisor(b, b.const(F32, 3.0)).quotient(b.const(F64, 1.0))


def test_it_takes_a_fused_multiply_add() -> None:
    """Levels without one divide."""
    module = Module(host_target("portable"))
    with module.kernel("none") as b:
        assert not Divisor.pays(b)
