"""Dot products of two bfloat16."""

from __future__ import annotations

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen import llvm
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


def _odd(exact: Array) -> Array:
    """Float64 numbers as float32 rounded to odd: cut off, and the last bit set where something was."""
    near = exact.astype(np.float32)
    bits = near.view(np.int32) - (np.abs(near.astype(np.float64)) > np.abs(exact))
    cut = bits.view(np.float32)
    return np.where(cut.astype(np.float64) == exact, bits, bits | 1).astype(np.int32).view(np.float32)


def test_sums_of_arm_are_rounded_to_odd() -> None:
    """Of both products first, then with the total; float64 holds each exact one here."""
    draw = np.random.default_rng(0)
    left, right = (draw.standard_normal(2 * 512).astype(BFLOAT) for _ in range(2))
    totals = draw.standard_normal(512).astype(np.float32)
    wide = left.astype(np.float64) * right.astype(np.float64)
    expected = _odd(totals + _odd(wide[0::2] + wide[1::2]).astype(np.float64))
    assert not np.array_equal(expected, (totals + (wide[0::2] + wide[1::2])).astype(np.float32))
    np.testing.assert_array_equal(_dots(emulated_target("neon", ["bf16"]), totals, left, right), expected)


@pytest.mark.parametrize(
    "emulated", [emulated_target("avx512", ["avx512bf16"]), emulated_target("neon", ["bf16"])], ids=lambda t: t.isa
)
def test_instructions_take_denormal_numbers_for_zeros(emulated: Target) -> None:
    """Operands, products, and totals."""
    left = np.array([1e-39, 1, 1e-30, 0, 0, 0] * 16).astype(BFLOAT)
    right = np.array([1e30, 0, 1e-10, 0, 0, 0] * 16).astype(BFLOAT)
    totals = np.array([0, 0, 1e-40] * 16, np.float32)
    assert not _dots(emulated, totals, left, right).any()


@pytest.mark.parametrize("level", [level for level in available_levels() if host_target(level).has_feature("avx512bf16")])
def test_the_instruction_computes_its_meaning(level: str) -> None:
    """Of any bits that are no NaN, also denormal and infinite ones."""
    draw, emulated = np.random.default_rng(0), emulated_target("avx512", ["avx512bf16"])
    left, right = (draw.integers(0, 1 << 16, 1 << 12).astype(np.uint16).view(BFLOAT) for _ in range(2))
    totals = draw.integers(0, 1 << 32, 1 << 11).astype(np.uint32).view(np.float32)
    found, expected = (_dots(target, totals, left, right) for target in (host_target(level), emulated))
    np.testing.assert_array_equal(found, expected)


def test_the_template_for_arm_is_an_instruction_of_llvm() -> None:
    """LLVM makes code for it."""
    llvm.binding().initialize_all_targets()
    llvm.binding().initialize_all_asmprinters()
    target = machine_target("aarch64", ["bf16"])
    module = Module(target)
    with module.kernel("dots") as b:
        words = b.buffer(0, F32).load(0, 4)
        b.buffer(1, F32).store(dot2(b, words, words, words), 0, 4)
    assert "llvm.aarch64.neon.bfdot" in str(module)
    assert llvm.compile_text(str(module), target.triple, target.features, 1)


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
    assert has_fast_dot2(machine_target("aarch64", ["bf16"]))
    assert not has_fast_dot2(machine_target("aarch64", ["dotprod"]))
