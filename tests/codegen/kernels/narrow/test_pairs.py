"""Pairs of bfloat16, and products of them."""

from __future__ import annotations

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.gemm import tiling, write_gemm
from sardonyx.codegen.kernels.gemm_params import GemmParams
from sardonyx.codegen.kernels.narrow.pairs import (
    PAIR_BLOCK,
    PARTS,
    pack_pairs,
    pack_parts,
    write_pair_rows,
    write_pairs,
    write_part_rows,
)
from sardonyx.codegen.kernels.panels import PairPanels
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target, available_levels, emulated_target, host_target
from sardonyx.dtypes import Array, DataType

BFLOAT = DataType.BFLOAT16.numpy
TARGETS = [*map(host_target, available_levels()), emulated_target("avx512", ["avx512bf16"]), emulated_target("neon", ["bf16"])]


def _engine(target: Target) -> Engine:
    engine, module = Engine(target), Module(target)
    write_pairs(module, "pairs")
    write_gemm(module, "product", None, PairPanels())
    engine.add(module)
    return engine


def _rounded(array: Array) -> Array:
    return array.astype(BFLOAT).astype(np.float64)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.isa)
@pytest.mark.parametrize("count", [0, 1, 5, 64, PAIR_BLOCK - 1, PAIR_BLOCK + 3])
def test_elements_are_rounded_once_and_none_behind_them_is_written(count: int, target: Target) -> None:
    """To nearest, ties to even; NaN and infinities stay."""
    given = np.random.default_rng(count).standard_normal(count).astype(np.float32)
    given[:3] = np.float32([np.inf, np.nan, 1 + 2**-8])[:count]
    result = np.full(count + 8, 7, BFLOAT)
    call(_engine(target), "pairs", [given, result], [count], 0, -(-count // PAIR_BLOCK))
    np.testing.assert_array_equal(result[:count].view(np.uint16) & 0x7FFF, given.astype(BFLOAT).view(np.uint16) & 0x7FFF)
    assert (result[count:] == 7).all()


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.isa)
def test_denormal_numbers_are_kept_or_become_zeros(target: Target) -> None:
    """Dot products of pairs take them for zeros either way; the least normal number stays."""
    given = np.array([1e-40, -1e-40, 2.0**-126, -(2.0**-126)] * 4, np.float32)
    result = np.zeros(len(given), BFLOAT)
    call(_engine(target), "pairs", [given, result], [len(given)], 0, 1)
    kept = given.astype(BFLOAT)
    assert ((result == kept) | ((np.abs(given) < 2.0**-126) & (result == 0))).all()


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.isa)
@pytest.mark.parametrize(("M", "N", "K"), [(1, 1, 2), (1, 130, 64), (7, 65, 30), (13, 64, 258), (6, 17, 2000), (2, 3, 10000)])
def test_products_are_those_of_the_rounded_operands(M: int, N: int, K: int, target: Target) -> None:
    """With sums in float32."""
    draw = np.random.default_rng(M * N)
    a, b = draw.standard_normal((M, K)).astype(np.float32), draw.standard_normal((K, N)).astype(np.float32)
    pairs, c = a.astype(BFLOAT), np.full((M + 1, N), 7, np.float32)
    params = GemmParams.blocked(target, M, N, K // 2)
    call(_engine(target), "product", [pairs, pack_pairs(b, tiling(target).panel), c], params.words(), 0, params.tasks())
    exact = _rounded(a) @ _rounded(b)
    bound = 1e-6 * (np.abs(_rounded(a)) @ np.abs(_rounded(b)))
    assert (np.abs(c[:M] - exact) <= bound).all()
    assert (c[M] == 7).all()


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.isa)
def test_rows_are_rounded_and_filled_up_with_zeros(target: Target) -> None:
    """Each alone; nothing before or behind them is written."""
    engine, module = Engine(target), Module(target)
    write_pair_rows(module, "rows")
    engine.add(module)
    for K, length in ((1, 32), (32, 32), (33, 64), (0, 0)):
        given = np.random.default_rng(K).standard_normal((4, K)).astype(np.float32)
        result = np.full((4, length), 7, BFLOAT)
        call(engine, "rows", [given, result], [K, length], 1, 3)
        np.testing.assert_array_equal(result[1:3, :K], given[1:3].astype(BFLOAT))
        assert not result[1:3, K:].any()
        assert (result[[0, 3]] == 7).all()


def test_panels_have_a_multiple_of_a_unit_of_words() -> None:
    """Also of an odd number of rows; what is behind the last is zero."""
    matrix = np.arange(1, 16, dtype=np.float32).reshape(5, 3)
    plain, wide = pack_pairs(np.concatenate([matrix, np.zeros((1, 3), np.float32)]), 2), pack_pairs(matrix, 2, 4)
    np.testing.assert_array_equal(pack_pairs(matrix, 2), plain)
    assert (plain.shape, wide.shape) == ((2, 3, 2), (2, 4, 2))
    np.testing.assert_array_equal(wide[:, :3], plain)
    assert not wide[:, 3].any()


def test_panels_hold_rows_of_even_k_in_the_lower_bits() -> None:
    """The last panel is filled with zeros."""
    packed = pack_pairs(np.arange(12, dtype=np.float32).reshape(4, 3), 2)
    assert packed.shape == (2, 2, 2)
    halves = packed.view(BFLOAT).reshape(2, 2, 2, 2).astype(np.float32)
    np.testing.assert_array_equal(halves[0, 1], [[6, 9], [7, 10]])
    np.testing.assert_array_equal(halves[1, 0], [[2, 5], [0, 0]])


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.isa)
@pytest.mark.parametrize("K", [1, 15, 32, 50])
def test_rows_in_parts_are_high_high_and_low(K: int, target: Target) -> None:
    """Together they have 16 bits of x; where high is not finite, the others are zeros, and so is what lies behind each part."""
    module, engine = Module(target), Engine(target)
    write_part_rows(module, "parts")
    engine.add(module)
    given = np.random.default_rng(K).standard_normal((4, K)).astype(np.float32)
    given[1, 0], given[2, -1], given[3, K // 2] = np.inf, np.nan, -np.inf
    length = -(-K // 32) * 32
    found = np.full((5, PARTS, length), 7, BFLOAT)
    call(engine, "parts", [given, found], [K, length], 0, 4)
    assert (found[4] == 7).all()
    assert (found[:4, :, K:] == 0).all()
    high, again, low = (part[:, :K].astype(np.float32) for part in found[:4].swapaxes(0, 1))
    np.testing.assert_array_equal(high, given.astype(BFLOAT).astype(np.float32))
    finite = np.isfinite(given)
    assert (again[finite] == high[finite]).all()
    assert (np.abs(high[finite] + low[finite] - given[finite]) <= np.abs(given[finite]) * 2.0**-16).all()
    assert not again[~finite].any()
    assert not low[~finite].any()


def test_columns_in_parts_are_high_low_and_high() -> None:
    """Each a panel of pairs of whole units, one after another."""
    matrix = np.random.default_rng(0).standard_normal((21, 5)).astype(np.float32)
    matrix[3, 1] = np.inf
    high = matrix.astype(BFLOAT).astype(np.float32)
    finite = np.isfinite(matrix)
    low = np.where(finite, matrix - np.where(finite, high, 0), np.float32(0))
    parts = [pack_pairs(part, 4, 16) for part in (high, low, np.where(finite, high, 0))]
    np.testing.assert_array_equal(pack_parts(matrix, 4, 16), np.concatenate(parts, axis=1))
