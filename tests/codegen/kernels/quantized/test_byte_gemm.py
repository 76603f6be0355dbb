"""Products of 8-bit integers: exact sums, zero points of both sides, and what the store computes of them."""

import itertools

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.dots import has_pairs
from sardonyx.codegen.emit.expr import argument
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, I8, I32, U8, Type
from sardonyx.codegen.kernels.byte_panels import bytes_tiling, group_unit, pack_bytes
from sardonyx.codegen.kernels.quantized.byte_gemm import (
    COLUMN,
    ROW,
    SCALAR,
    WHOLE,
    ByteGemmParams,
    ByteStore,
    Zero,
    write_byte_gemm,
)
from sardonyx.codegen.kernels.quantized.pairs import cut_lanes
from sardonyx.codegen.kernels.quantized.prepared_rows import PrepareParams, prepared_bytes, write_prepare_rows
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target, available_levels, emulated_target, host_target
from sardonyx.dtypes import Array

_KINDS = {U8: np.uint8, I8: np.int8}
_SUM = argument(0, I32)
_TILES = [
    emulated_target("amx", ["amx-tile", "amx-int8", "avx512vnni"]),
    *(host_target(level) for level in available_levels() if level == "amx"),
]
_EMULATED = [
    emulated_target("neon", ["dotprod"]),
    emulated_target("neon", ["i8mm"]),
    emulated_target("avx2", ["avxvnni"]),
    emulated_target("avx2", ["avx2"]),
    emulated_target("avx512", ["avx512bw"]),
    emulated_target("portable", ["none"]),
    *_TILES,
]


def _numbers(kind: Type, *shape: int) -> Array:
    """Numbers of the whole range, half of them the ends of it."""
    rng, (low, high) = np.random.default_rng(sum(shape)), (0, 255) if kind == U8 else (-128, 127)
    numbers = rng.integers(low, high + 1, shape)
    ends = rng.integers(0, 4, shape)
    return np.where(ends == 0, low, np.where(ends == 1, high, numbers)).astype(_KINDS[kind])


def _engine(target: Target, store: ByteStore) -> Engine:
    engine, module = Engine(target), Module(target)
    write_prepare_rows(module, "prepare", store.left)
    write_byte_gemm(module, "gemm", store)
    engine.add(module)
    return engine


def _product(engine: Engine, store: ByteStore, a: Array, b: Array, others: list[Array], threads: int = 1) -> Array:
    """C of a batch of one or more; what is behind it stays as it is."""
    (M, K), N, batch = a.shape[-2:], b.shape[-1], a.shape[0]
    width = bytes_tiling(engine.target).panel
    packed = np.stack([pack_bytes(matrix, width, group_unit(engine.target), cut=cut_lanes(engine.target)) for matrix in b])
    row_bytes, rows = K, a
    if store.is_prepared:
        row_bytes = prepared_bytes(engine.target, K)
        rows = np.full((batch * M, row_bytes), 7, np.uint8)
        call(engine, "prepare", [a, rows], PrepareParams(K, row_bytes).words(), 0, batch * M)
    dtype = {F32: np.float32, I32: np.int32}[store.expr.type]
    c = np.full(batch * M * N + 64, 7, dtype)
    params = ByteGemmParams.blocked(engine.target, M, N, K, row_bytes=row_bytes, stride_a=M * row_bytes, threads=threads)
    call(engine, "gemm", [rows, packed, c, *others], params.words(), 0, params.tasks(batch))
    assert (c[batch * M * N :] == 7).all()
    return c[: batch * M * N].reshape(batch, M, N)


def _in_place(target: Target, K: int) -> int:
    """The next longer rows that are read in place: whole groups, or tiles."""
    return -(-K // (4 * group_unit(target))) * 4 * group_unit(target)


def _wrapped(exact: Array) -> Array:
    return exact.astype(np.int32)


def _check_sums(target: Target, sizes: list[tuple[int, int, int]], left: Type, right: Type, ways: tuple[str, str]) -> None:
    zeros = [Zero(kind, way) if way else None for kind, way in zip((left, right), ways, strict=True)]
    store = ByteStore(left, right, True, zeros[0], zeros[1], _SUM, (), "")
    engine = _engine(target, store)
    for M, N, K in sizes:
        a, b = _numbers(left, 1, M, K), _numbers(right, 1, K, N)
        za = _numbers(left, {SCALAR: 1, ROW: M, "": 0}[ways[0]])
        zb = _numbers(right, {SCALAR: 1, COLUMN: N, "": 0}[ways[1]])
        wide_a = a[0].astype(np.int64) - (za[:, None] if za.size else 0)
        wide_b = b[0].astype(np.int64) - (zb if zb.size else 0)
        others = [zero for zero, way in zip((za, zb), ways, strict=True) if way]
        np.testing.assert_array_equal(_product(engine, store, a, b, others)[0], _wrapped(wide_a @ wide_b))


_SIZES = [(1, 1, 1), (1, 65, 4), (7, 64, 3), (13, 130, 33), (5, 31, 70), (2, 3, 0), (0, 5, 4), (3, 0, 4)]


@pytest.mark.parametrize("ways", list(itertools.product(("", SCALAR, ROW), ("", SCALAR, COLUMN))), ids="-".join)
@pytest.mark.parametrize(("left", "right"), list(itertools.product(_KINDS, repeat=2)), ids=lambda kind: kind.kind.value)
def test_sums_are_exact(target: Target, left: Type, right: Type, ways: tuple[str, str]) -> None:
    """All combinations of signs and zero points, sizes around the tiles, K of any length."""
    _check_sums(target, _SIZES, left, right, ways)


@pytest.mark.parametrize("emulated", _EMULATED, ids=lambda target: "_".join([target.isa, *target.emulated]))
def test_sums_are_exact_on_other_processors(emulated: Target) -> None:
    """With instructions that this machine lacks, emulated."""
    for left, right in itertools.product(_KINDS, repeat=2):
        _check_sums(emulated, [(7, 35, 9), (13, 16, 40)], left, right, (SCALAR, COLUMN))


@pytest.mark.parametrize("M", [1, 3, 4, 5, 6, 8, 12, 239, 240, 241])
def test_any_number_of_rows_is_multiplied_in_place(target: Target, M: int) -> None:
    """Around tiles and blocks of rows, and columns around a panel."""
    store = ByteStore(U8, I8, has_pairs(target), None, None, _SUM, (), "")
    engine, width, K = _engine(target, store), bytes_tiling(target).panel, _in_place(target, 8)
    for N in (width - 1, width, width + 1, 3 * width):
        a, b = _numbers(U8, 1, M, K), _numbers(I8, 1, K, N)
        np.testing.assert_array_equal(_product(engine, store, a, b, [])[0], a[0].astype(np.int64) @ b[0].astype(np.int64))


def test_signed_rows_are_multiplied_in_place(target: Target) -> None:
    """Their highest bits are turned as they are read, and the sums of the columns taken off."""
    store = ByteStore(I8, I8, has_pairs(target), None, None, _SUM, (), "")
    engine, K = _engine(target, store), _in_place(target, 12)
    for M in (9, 40):
        a, b = _numbers(I8, 1, M, K), _numbers(I8, 1, K, 70)
        np.testing.assert_array_equal(_product(engine, store, a, b, [])[0], a[0].astype(np.int64) @ b[0].astype(np.int64))


def test_long_sums_are_added_block_by_block(target: Target) -> None:
    """More groups than a block has, of -128 times 255, which wrap as int32 does."""
    store = ByteStore(U8, I8, has_pairs(target), None, None, _SUM, (), "")
    engine = _engine(target, store)
    for length in (4096, 4100, 9000, 70000):
        K = _in_place(target, length)
        a, b = np.full((1, 7, K), 255, np.uint8), np.full((1, K, 20), -128, np.int8)
        a[0, 3] = 1
        exact = a[0].astype(np.int64) @ b[0].astype(np.int64)
        np.testing.assert_array_equal(_product(engine, store, a, b, [])[0], _wrapped(exact))


@pytest.mark.parametrize("rows", [11, 37])
def test_what_is_stored_is_an_expression(target: Target, rows: int) -> None:
    """Operands by column, by row, by element and for all, also in a batch."""
    _check_expression(target, rows)


def _check_expression(target: Target, rows: int) -> None:
    f = argument(0, I32).to(F32) * (argument(1, F32) * argument(2, F32)) + argument(3, F32) - argument(4, F32)
    store = ByteStore(U8, I8, has_pairs(target), None, None, f, (F32,) * 4, SCALAR + COLUMN + ROW + WHOLE)
    rng, (batch, M, N, K) = np.random.default_rng(0), (3, rows, 70, _in_place(target, 8))
    scale, by_column, by_row, by_element = (
        rng.standard_normal(size).astype(np.float32) for size in (1, N, batch * M, batch * M * N)
    )
    a, b = _numbers(U8, batch, M, K), _numbers(I8, batch, K, N)
    result = _product(_engine(target, store), store, a, b, [scale, by_column, by_row, by_element])
    sums = (a.astype(np.int64) @ b.astype(np.int64)).astype(np.float32)
    exact = sums * (scale * by_column) + by_row.reshape(batch, M, 1) - by_element.reshape(batch, M, N)
    np.testing.assert_allclose(result, exact, rtol=1e-5, atol=1e-4)


def test_threads_share_the_work_without_other_bits(target: Target) -> None:
    """Rows and columns are cut into more tasks, of whole panels."""
    store = ByteStore(U8, I8, has_pairs(target), None, None, _SUM, (), "")
    engine, (M, N, K) = _engine(target, store), (50, 300, _in_place(target, 16))
    a, b = _numbers(U8, 1, M, K), _numbers(I8, 1, K, N)
    results = [_product(engine, store, a, b, [], threads) for threads in (1, 2, 7)]
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
    params = ByteGemmParams.blocked(target, M, N, K, row_bytes=K, threads=2)
    assert params.tasks() > 1
    assert params.block_n % bytes_tiling(target).panel == 0


def test_rows_are_not_read_in_place_where_pairs_are_multiplied() -> None:
    """Of 16 bits: a store that says so is an error of who wrote it."""
    store, module = ByteStore(U8, I8, False, None, None, _SUM, (), ""), Module(emulated_target("avx2", ["avx2"]))
    with pytest.raises(ValueError, match="gemm: A is read in place on avx2_emulated, which multiplies widened rows: prepare them"):
        write_byte_gemm(module, "gemm", store)


def test_rows_may_lie_anywhere(target: Target) -> None:
    """At an odd address too."""
    store = ByteStore(U8, I8, has_pairs(target), None, None, _SUM, (), "")
    K = _in_place(target, 8)
    a, b = _numbers(U8, 1, 7, K), _numbers(I8, 1, K, 20)
    raw = np.zeros(a.size + 1, np.uint8)
    odd = raw[1:].reshape(a.shape)
    odd[:] = a
    result = _product(_engine(target, store), store, odd, b, [])
    np.testing.assert_array_equal(result[0], a[0].astype(np.int64) @ b[0].astype(np.int64))


@pytest.mark.parametrize("tiles", _TILES, ids=lambda target: target.isa)
def test_tiles_cover_any_number_of_rows_and_columns(tiles: Target) -> None:
    """In place and of both signs, below the least height too; the last rows are stored once."""
    for left in _KINDS:
        store = ByteStore(left, I8, False, None, None, _SUM, (), "")
        engine = _engine(tiles, store)
        sizes = itertools.product(
            (15, 16, 17, 31, 32, 33, 48, 255, 257), ((1, 64), (17, 64), (33, 128), (49, 64), (64, 64), (130, 64))
        )
        for M, (N, K) in sizes:
            a, b = _numbers(left, 1, M, K), _numbers(I8, 1, K, N)
            exact = a[0].astype(np.int64) @ b[0].astype(np.int64)
            np.testing.assert_array_equal(_product(engine, store, a, b, [])[0], exact)


@pytest.mark.parametrize("tiles", _TILES, ids=lambda target: target.isa)
@pytest.mark.parametrize(("left", "right"), list(itertools.product(_KINDS, repeat=2)), ids=lambda kind: kind.kind.value)
def test_tiles_take_zero_points_and_rows_of_any_length(tiles: Target, left: Type, right: Type) -> None:
    """K around a tile's, one tile and two of rows, and long sums block by block."""
    sizes = [(16, 20, 1), (40, 35, 63), (33, 66, 65), (32, 16, 130), (18, 5, 0), (17, 18, 4200)]
    for ways in ((SCALAR, COLUMN), (ROW, SCALAR), ("", "")):
        _check_sums(tiles, sizes, left, right, ways)


@pytest.mark.parametrize("tiles", _TILES, ids=lambda target: target.isa)
def test_tiles_store_expressions(tiles: Target) -> None:
    """Of each matrix of a batch."""
    _check_expression(tiles, 37)


@pytest.mark.parametrize("tiles", _TILES, ids=lambda target: target.isa)
def test_tiles_wrap_and_are_shared_by_threads(tiles: Target) -> None:
    """Long sums of the ends of the ranges, cut into more tasks."""
    store = ByteStore(U8, I8, False, None, None, _SUM, (), "")
    engine, K = _engine(tiles, store), 9024
    a, b = np.full((1, 70, K), 255, np.uint8), np.full((1, K, 150), -128, np.int8)
    a[0, 33] = 1
    exact = _wrapped(a[0].astype(np.int64) @ b[0].astype(np.int64))
    for threads in (1, 7):
        np.testing.assert_array_equal(_product(engine, store, a, b, [], threads)[0], exact)
