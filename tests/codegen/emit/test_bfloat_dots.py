"""Dot products of two bfloat16."""

from __future__ import annotations

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.bfloat_dots import dot2, has_fast_dot2
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target, available_levels, emulated_target, host_target, machine_target
from sardonyx.dtypes import Array, DataType

BFLOAT = DataType.BFLOAT16.numpy
TARGETS = [*map(host_target, available_levels()), emulated_target("avx512", ["avx512bf16"])]
ZEN4 = ("avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512bf16")


def _dots(target: Target, totals: Array, left: Array, right: Array) -> Array:
    module, lanes = Module(target), target.lanes(32)
    with module.kernel("dots") as b, b.loop(b.begin, b.end, lanes) as at:
        operands = [b.buffer(place, F32).load(at, lanes) for place in range(3)]
        b.buffer(3, F32).store(dot2(b, *operands), at, lanes)
    engine, result = Engine(target), np.empty_like(totals)
    engine.add(module)
    call(engine, "dots", [totals, left.view(np.float32), right.view(np.float32), result], [], 0, totals.size)
    return result


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.isa)
def test_products_are_exact_and_sums_rounded_to_nearest(target: Target) -> None:
    """The upper product is added first."""
    draw = np.random.default_rng(0)
    left, right = (draw.standard_normal(2 * 64).astype(BFLOAT) for _ in range(2))
    totals = draw.standard_normal(64).astype(np.float32)
    wide = left.astype(np.float64) * right.astype(np.float64)
    expected = ((totals + wide[1::2]).astype(np.float32) + wide[0::2]).astype(np.float32)
    np.testing.assert_array_equal(_dots(target, totals, left, right), expected)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.isa)
def test_infinities_and_nan_are_kept(target: Target) -> None:
    """0 x infinity is NaN."""
    left = np.array([np.inf, 1, 0, 1, np.nan, 1, -np.inf, 1] * 16).astype(BFLOAT)
    right = np.array([2, 1, np.inf, 1, 1, 1, 2, 1] * 16).astype(BFLOAT)
    found = _dots(target, np.zeros(64, np.float32), left, right)
    np.testing.assert_array_equal(found[:4], [np.inf, np.nan, np.nan, -np.inf])


def test_the_instruction_is_fast_where_no_unit_for_half_precision_is_beside_it() -> None:
    """Zen 4 has none, Sapphire Rapids one."""
    assert has_fast_dot2(machine_target("x86_64", ZEN4))
    assert not has_fast_dot2(machine_target("x86_64", [*ZEN4, "avx512fp16"]))
    assert not has_fast_dot2(machine_target("x86_64", ZEN4[:-1]))
