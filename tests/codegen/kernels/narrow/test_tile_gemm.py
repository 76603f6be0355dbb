"""Products of bfloat16 in matrix tiles, emulated where there are none."""

from __future__ import annotations

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.matrix_tiles import TILE
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.emit.values import Register, Span
from sardonyx.codegen.kernels.gemm import tiling
from sardonyx.codegen.kernels.narrow.pairs import pack_pairs, write_pair_rows
from sardonyx.codegen.kernels.narrow.tile_gemm import tile_gemm_params, write_tile_gemm
from sardonyx.codegen.kernels.tile_products import TILE_ROWS, tile_words
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target, available_levels, emulated_target, host_target
from sardonyx.dtypes import Array, DataType

BFLOAT = DataType.BFLOAT16.numpy
TARGETS = [
    emulated_target("amx", ["amx-tile", "amx-bf16"]),
    *(host_target(level) for level in available_levels() if level == "amx"),
]


def _plus_bias(b: Kernel, total: Register, row: Register, column: Register, span: Span) -> Register:
    return total + b.buffer(3, F32).load(column, span) + row.to(F32).splat(span.lanes)


def _engine(target: Target) -> Engine:
    engine, module = Engine(target), Module(target)
    write_pair_rows(module, "rows")
    write_tile_gemm(module, "product")
    write_tile_gemm(module, "biased", _plus_bias)
    engine.add(module)
    return engine


def _product(engine: Engine, a: Array, b: Array, *others: Array, threads: int = 1) -> Array:
    """C, with a row of sevens behind it that stays."""
    (M, K), N = a.shape, b.shape[1]
    words = tile_words(-(-K // 2))
    rows = np.full((M + TILE - 1, 2 * words), np.nan, BFLOAT)
    call(engine, "rows", [a, rows], [K, 2 * words], 0, M)
    c, packed = np.full((M + 1, N), 7, np.float32), pack_pairs(b, tiling(engine.target).panel, TILE)
    params = tile_gemm_params(engine.target, M, N, words, threads=threads)
    call(engine, "biased" if others else "product", [rows, packed, c, *others], params.words(), 0, params.tasks())
    assert (c[M] == 7).all()
    return c[:M]


def _operands(M: int, N: int, K: int) -> tuple[Array, Array]:
    draw = np.random.default_rng(M + N + K)
    return draw.standard_normal((M, K)).astype(np.float32), draw.standard_normal((K, N)).astype(np.float32)


def _rounded(array: Array) -> Array:
    return array.astype(BFLOAT).astype(np.float64)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.isa)
def test_products_are_those_of_the_rounded_operands(target: Target) -> None:
    """Of any number of rows, columns and elements of a sum; what lies behind the last row is not read into any."""
    engine = _engine(target)
    for M, N, K in (
        (1, 1, 1),
        (1, 130, 64),
        (15, 65, 31),
        (16, 16, 32),
        (17, 33, 33),
        (50, 64, 70),
        (3, 20, 0),
        (0, 5, 8),
        (2, 0, 4),
    ):
        a, b = _operands(M, N, K)
        exact, bound = _rounded(a) @ _rounded(b), 1e-6 * (np.abs(_rounded(a)) @ np.abs(_rounded(b)))
        assert (np.abs(_product(engine, a, b) - exact) <= bound).all()


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.isa)
def test_long_sums_have_small_errors(target: Target) -> None:
    """Several blocks of K, of numbers of one sign: each tile's products are added up before the sum takes them."""
    a, b = (np.abs(part) for part in _operands(3, 5, 70001))
    exact = _rounded(a) @ _rounded(b)
    assert np.max(np.abs(_product(_engine(target), a, b) / exact - 1)) < 1e-5


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.isa)
def test_rows_have_the_same_bits_in_a_batch_as_alone(target: Target) -> None:
    """With any number of threads too, which cut rows and columns otherwise."""
    engine, (a, b) = _engine(target), _operands(TILE_ROWS + 20, 150, 90)
    whole = _product(engine, a, b)
    np.testing.assert_array_equal(_product(engine, a, b, threads=5), whole)
    for row in (0, 17, TILE_ROWS, TILE_ROWS + 19):
        np.testing.assert_array_equal(_product(engine, a[row : row + 1], b)[0], whole[row])


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.isa)
def test_an_epilogue_knows_its_row_and_columns(target: Target) -> None:
    """In each tile, and in those that end within a vector."""
    engine, (a, b) = _engine(target), _operands(35, 90, 64)
    bias = np.arange(90, dtype=np.float32)
    expected = (_product(engine, a, b) + bias) + np.arange(35, dtype=np.float32)[:, None]
    np.testing.assert_array_equal(_product(engine, a, b, bias), expected)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.isa)
def test_a_row_with_an_infinity_or_nan_leaves_the_others_alone(target: Target) -> None:
    """Also those that share its tile."""
    a, b = _operands(20, 20, 40)
    clean = _product(_engine(target), a, b)
    a[3, 5], a[18, 0] = np.inf, np.nan
    found = _product(_engine(target), a, b)
    assert np.isinf(found[3]).all()
    assert np.isnan(found[18]).all()
    others = [row for row in range(20) if row not in (3, 18)]
    np.testing.assert_array_equal(found[others], clean[others])


def test_threads_share_panels() -> None:
    """As many as the threads want, of some milliseconds at most."""
    target = TARGETS[0]
    params = tile_gemm_params(target, 1000, 4096, 512, threads=4)
    assert params.tasks() >= 16
    assert tile_gemm_params(target, 256, 1 << 16, 1 << 10).tasks() == 8
    assert tile_gemm_params(target, 0, 0, 0).tasks() == 0
