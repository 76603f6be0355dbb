"""Products of tiles, as AMX has them: emulated everywhere, and as LLVM writes them for processors that have them."""

from __future__ import annotations

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.matrix_tiles import (
    TILE,
    TILE_DOTS,
    TileDot,
    Tiles,
    configured_tiles,
    has_byte_tiles,
    has_pair_tiles,
    tile_dot,
)
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import BF16, I8, I32, I64, U8, Type
from sardonyx.codegen.llvm import binding, make_machine
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target, available_levels, emulated_target, host_target, machine_target
from sardonyx.dtypes import Array, DataType

BFLOAT = DataType.BFLOAT16.numpy
FEATURES = ["amx-tile", "amx-int8", "amx-bf16"]
AMX = ["avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", *FEATURES]
TARGETS = [emulated_target("amx", FEATURES), *(host_target(level) for level in available_levels() if level == "amx")]
BYTES = [dot for dot in TILE_DOTS if dot.feature == "amx-int8"]
FLOATS = tile_dot(BF16, BF16)
NUMPY = {U8: np.uint8, I8: np.int8}


def _module(target: Target, dot: TileDot) -> Module:
    """A kernel that adds left x right to a total, each with 16 words more between rows than a tile has."""
    module = Module(target)
    with module.kernel("product") as b, configured_tiles(module, b):
        tiles, stride = Tiles(b), b.const(I64, 2 * 4 * TILE)
        for tile, buffer in ((0, 0), (4, 1), (6, 2)):
            tiles.load(tile, b.buffer(buffer, I32), stride)
        tiles.multiply(dot, 0, 4, 6)
        tiles.store(0, b.buffer(3, I32), stride)
    return module


def _product(target: Target, dot: TileDot, total: Array, left: Array, right: Array) -> Array:
    engine, result = Engine(target), np.full((TILE, 2 * TILE), 7, np.int32)
    engine.add(_module(target, dot))
    wide = [np.concatenate([part.view(np.int32), part.view(np.int32)], axis=1) for part in (total, left, right)]
    call(engine, "product", [*wide, result])
    assert (result[:, TILE:] == 7).all()
    return result[:, :TILE].copy().view(total.dtype)


def _columns(right: Array, fields: int) -> Array:
    """B (K, N) of a tile's rows, each of which has `fields` rows of B side by side."""
    return right.reshape(TILE, TILE, fields).transpose(0, 2, 1).reshape(TILE * fields, TILE)


def _bytes(kind: Type, seed: int) -> Array:
    rng, limits = np.random.default_rng(seed), np.iinfo(NUMPY[kind])
    numbers = rng.integers(limits.min, limits.max + 1, (TILE, 4 * TILE))
    numbers[:4], numbers[4:6] = limits.max, limits.min
    return numbers.astype(NUMPY[kind])


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.isa)
@pytest.mark.parametrize("dot", BYTES, ids=lambda dot: dot.name)
def test_products_of_bytes_are_exact_and_wrap(target: Target, dot: TileDot) -> None:
    """Of any sign on either side, with the ends of the ranges."""
    left, right = _bytes(dot.left, 0), _bytes(dot.right, 1)
    total = np.random.default_rng(2).integers(-(1 << 31), 1 << 31, (TILE, TILE)).astype(np.int32)
    total[:3] = (1 << 31) - 1
    exact = total.astype(np.int64) + left.astype(np.int64) @ _columns(right, 4).astype(np.int64)
    np.testing.assert_array_equal(_product(target, dot, total, left, right), exact.astype(np.int32))


def _flushed(x: Array) -> Array:
    return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), x), x)


def _by_the_manual(total: Array, left: Array, right: Array) -> Array:
    """TDPBF16PS step by step; products of bfloat16 are exact in float64, and so are their sums with float32 before rounding."""
    columns, sums = _columns(right, 2), [np.zeros((TILE, TILE), np.float32) for _ in range(2)]
    with np.errstate(all="ignore"):
        for k in range(2 * TILE):
            x, y = (_flushed(part.astype(np.float32)).astype(np.float64) for part in (left[:, k], columns[k]))
            sums[k % 2] = _flushed((sums[k % 2] + x[:, None] * y).astype(np.float32))
        return _flushed(_flushed(total) + _flushed(sums[0] + sums[1]))


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.isa)
def test_products_of_bfloat16_round_as_the_manual_says(target: Target) -> None:
    """Even and odd k apart, then both, then the total: each to nearest."""
    draw = np.random.default_rng(0)
    total = draw.standard_normal((TILE, TILE)).astype(np.float32)
    left, right = (draw.standard_normal((TILE, 2 * TILE)).astype(BFLOAT) for _ in range(2))
    found, expected = _product(target, FLOATS, total, left, right), _by_the_manual(total, left, right)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.isa)
def test_denormal_numbers_are_zeros_and_special_ones_are_kept(target: Target) -> None:
    """In operands, in sums and in the total; 0 x infinity is NaN."""
    total = np.zeros((TILE, TILE), np.float32)
    total[0], total[1] = 1e-40, -1e-40
    left, right = np.zeros((TILE, 2 * TILE), BFLOAT), np.ones((TILE, 2 * TILE), BFLOAT)
    left[2, 0], left[3, 0], left[4, 0], left[5, :2] = 1e-39, np.inf, np.nan, (np.inf, -np.inf)
    left[6, 0], right[0, :2] = 1e-30, 1e-10
    found, expected = _product(target, FLOATS, total, left, right), _by_the_manual(total, left, right)
    np.testing.assert_array_equal(found, expected)
    assert not found[[0, 1, 2]].any()
    assert not found[6, 0]
    assert np.isinf(found[3]).all()
    assert np.isnan(found[4:6]).all()


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.isa)
def test_a_tile_of_zeros_is_written(target: Target) -> None:
    """Whatever it held before."""
    module, result = Module(target), np.full((TILE, TILE), 7, np.int32)
    with module.kernel("zero") as b, configured_tiles(module, b):
        tiles, stride = Tiles(b), b.const(I64, 4 * TILE)
        tiles.load(3, b.buffer(0, I32), stride)
        tiles.zero(3)
        tiles.store(3, b.buffer(0, I32), stride)
    engine = Engine(target)
    engine.add(module)
    call(engine, "zero", [result])
    assert not result.any()


@pytest.mark.parametrize("dot", TILE_DOTS, ids=lambda dot: dot.name)
def test_llvm_writes_the_instructions(dot: TileDot) -> None:
    """Tiles are configured, loaded, multiplied and stored, and released last."""
    target = machine_target("x86_64", AMX)
    llvm = binding()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = make_machine(target.triple, target.features)
    module = llvm.parse_assembly(str(_module(target, dot)), llvm.create_context())
    words = [line.split()[0] for line in machine.emit_assembly(module).splitlines() if line.startswith("\t")]
    written = [word for word in words if word.startswith(("tile", "ldtile", "tdp"))]
    assert written == ["ldtilecfg", *["tileloadd"] * 3, dot.name.lower(), "tilestored", "tilerelease"]


def test_tiles_depend_on_features() -> None:
    """Of bytes and of bfloat16 each for itself; a level below AMX has none."""
    whole = machine_target("x86_64", AMX)
    assert has_byte_tiles(whole)
    assert has_pair_tiles(whole)
    below = machine_target("x86_64", AMX, "avx512")
    assert not has_byte_tiles(below)
    assert not has_pair_tiles(below)
    assert not has_pair_tiles(emulated_target("amx", ["amx-tile", "amx-int8"]))
