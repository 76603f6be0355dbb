"""Panels of bytes, and products with them."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.dots import native_left
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I8, I32, U8, U32, Type
from sardonyx.codegen.kernels.byte_panels import (
    HALF_RANGE,
    bytes_tiling,
    group_unit,
    left_shift,
    multiply_bytes,
    pack_bytes,
    panel_words,
    write_pack_bytes,
)
from sardonyx.codegen.kernels.pack import PackParams
from sardonyx.codegen.kernels.quantized.pairs import cut_lanes
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target, emulated_target, machine_target
from sardonyx.dtypes import Array

_KINDS = {U8: np.uint8, I8: np.int8}
_EMULATED = [
    emulated_target("neon", ["dotprod"]),
    emulated_target("neon", ["i8mm"]),
    emulated_target("avx2", ["avxvnni"]),
    emulated_target("avx2", ["avx2"]),
    emulated_target("avx512", ["avx512bw"]),
    emulated_target("portable", ["none"]),
]
_TILES = emulated_target("amx", ["amx-tile", "amx-int8", "avx512vnni"])


def _matrix(kind: Type, *shape: int) -> Array:
    low = 0 if kind == U8 else -128
    numbers = np.random.default_rng(sum(shape)).integers(low, low + 256, shape).astype(_KINDS[kind])
    numbers.reshape(-1)[: numbers.size // 3] = low
    return numbers


@pytest.mark.parametrize("kind", _KINDS, ids=lambda kind: kind.kind.value)
@pytest.mark.parametrize(("K", "N"), [(1, 1), (4, 16), (5, 17), (7, 64), (8, 65), (131, 130), (0, 3), (3, 0)])
def test_four_rows_lie_in_a_lane(kind: Type, K: int, N: int) -> None:
    """Numbers are signed, zeros behind the last row and column, sums of the columns before them."""
    b, width = _matrix(kind, K, N), 16
    packed = pack_bytes(b, width)
    assert packed.shape == (-(-N // width), panel_words(K, width))
    signed = b.astype(np.int64) - (HALF_RANGE if kind == U8 else 0)
    padded = np.zeros((-(-K // 4) * 4, -(-N // width) * width), np.int64)
    padded[:K, :N] = signed
    panels = packed.reshape(-1, 1 + len(padded) // 4, width)
    np.testing.assert_array_equal(panels[:, 0].reshape(-1), padded.sum(axis=0))
    words = np.ascontiguousarray(panels[:, 1:]).view(np.int8).reshape(len(panels), len(padded) // 4, width, 4)
    np.testing.assert_array_equal(words.transpose(1, 3, 0, 2).reshape(padded.shape), padded)
    np.testing.assert_array_equal(pack_bytes(np.ascontiguousarray(b.T), width, is_transposed=True), packed)


@pytest.mark.parametrize("kind", _KINDS, ids=lambda kind: kind.kind.value)
@pytest.mark.parametrize("is_transposed", [False, True])
def test_the_kernel_packs_as_numpy_does(target: Target, kind: Type, is_transposed: bool) -> None:
    """Matrices of a batch, rows or columns in order, whatever is behind them in memory."""
    _check_packing(target, kind, is_transposed)


@pytest.mark.parametrize("kind", _KINDS, ids=lambda kind: kind.kind.value)
@pytest.mark.parametrize("is_transposed", [False, True])
def test_the_kernel_fills_whole_tiles_with_zeros(kind: Type, is_transposed: bool) -> None:
    """For processors that multiply them; NumPy does so too."""
    _check_packing(_TILES, kind, is_transposed)


def test_panels_for_tiles_have_whole_tiles_of_groups() -> None:
    """64 rows each; what is behind the last row is zero."""
    assert (group_unit(_TILES), group_unit(_EMULATED[0])) == (16, 1)
    plain, tiles = (pack_bytes(_matrix(U8, 70, 5), 16, unit).reshape(-1, 16) for unit in (1, 16))
    assert (len(plain), len(tiles)) == (1 + 18, 1 + 32)
    np.testing.assert_array_equal(tiles[: len(plain)], plain)
    assert not tiles[len(plain) :].any()


def _check_packing(target: Target, kind: Type, is_transposed: bool) -> None:
    engine, module, width = Engine(target), Module(target), bytes_tiling(target).panel
    write_pack_bytes(module, "pack", width, kind)
    engine.add(module)
    for K, N in ((1, 1), (4, width), (7, width + 3), (33, 2 * width - 1), (0, 5), (6, 0)):
        batch = _matrix(kind, 2, N, K) if is_transposed else _matrix(kind, 2, K, N)
        expected = np.stack(
            [pack_bytes(b, width, group_unit(target), cut=cut_lanes(target), is_transposed=is_transposed) for b in batch]
        )
        packed = np.full((expected.size + width,), 7, np.int32)
        params = PackParams(K, N, *((1, K) if is_transposed else (N, 1)), K * N)
        call(engine, "pack", [batch, packed], params.words(), 0, params.tasks(width, 2))
        np.testing.assert_array_equal(packed[: expected.size], expected.reshape(-1))
        assert (packed[expected.size :] == 7).all()


def _check_product(target: Target, flips: bool) -> None:
    shape, native = bytes_tiling(target), native_left(target)
    other = I8 if native == U8 else U8
    for K in (4, 12, 260):
        a, b = _matrix(other if flips else native, shape.tiles[0][1][0], K), _matrix(I8, K, shape.panel)
        a[0], b[:, 0] = np.iinfo(a.dtype).max, -128
        rows_of = a.astype(np.int16) if cut_lanes(target) else a
        module = Module(target)
        with module.kernel("tile") as f:
            rows = [f.buffer(0, U8).at(i * (K * rows_of.itemsize)).of(U32) for i in range(len(a))]
            zero = f.const(I32.vector(shape.lanes), 0)
            sums = [f.variable(zero) for _ in range(len(a) * shape.tiles[0][0])]
            multiply_bytes(f, rows, f.buffer(1, I32).at(shape.panel), shape.panel, f.param(0), sums, flips=flips)
            for place, total in enumerate(sums):
                f.buffer(2, I32).store(total.value, place * shape.lanes, shape.lanes)
        engine, c = Engine(target), np.zeros((len(a), shape.panel), np.int32)
        engine.add(module)
        call(engine, "tile", [rows_of, pack_bytes(b, shape.panel, cut=cut_lanes(target)), c], [K // 4])
        shift = left_shift(target, other) if flips else 0
        np.testing.assert_array_equal(c, (a.astype(np.int64) + shift) @ b.astype(np.int64))


@pytest.mark.parametrize("flips", [False, True])
def test_a_tile_is_exact(target: Target, flips: bool) -> None:
    """Bytes of either sign on the left, extreme numbers among them."""
    _check_product(target, flips)


@pytest.mark.parametrize("flips", [False, True])
@pytest.mark.parametrize("emulated", _EMULATED, ids=lambda target: "_".join([target.isa, *target.emulated]))
def test_a_tile_is_exact_on_other_processors(emulated: Target, flips: bool) -> None:
    """With instructions that are emulated."""
    _check_product(emulated, flips)


def test_the_left_side_is_moved_to_what_the_instruction_takes() -> None:
    """By half the range, up or down; pairs of 16 bits take any sign."""
    vnni = machine_target("x86_64", ["avx2", "fma", "f16c", "avxvnni"])
    portable, arm = machine_target("x86_64", []), machine_target("aarch64", ["dotprod"])
    assert [left_shift(vnni, kind) for kind in (U8, I8)] == [0, 128]
    assert [left_shift(portable, kind) for kind in (U8, I8)] == [0, 0]
    assert [left_shift(arm, kind) for kind in (U8, I8)] == [-128, 0]
