"""Sums in matrix tiles; the products that store them are tested beside their kernels, on emulated tiles."""

from __future__ import annotations

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.matrix_tiles import TILE, configured_tiles, tile_dot
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I8, I32, U8
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.kernels.byte_panels import bytes_tiling
from sardonyx.codegen.kernels.tile_products import TILE_ROWS, TileOperands, sums_elements, tile_words, write_tile_sums
from sardonyx.codegen.llvm import binding, make_machine
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target, available_levels, emulated_target, host_target, machine_target
from sardonyx.dtypes import Array

TARGETS = [
    emulated_target("amx", ["amx-tile", "amx-int8"]),
    *(host_target(level) for level in available_levels() if level == "amx"),
]
AMX = ["avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "amx-tile", "amx-int8", "amx-bf16"]


def _module(target: Target) -> Module:
    """A kernel that stores sums of rows [params 3, 4) of A, params being M, N and words; what is stored is counted in a buffer."""
    module, shape = Module(target), bytes_tiling(target)
    sums = write_tile_sums(module, "sums", shape, tile_dot(U8, I8))
    with module.kernel("product") as b, configured_tiles(module, b):
        M, N, words, top, bottom = (b.param(place) for place in range(5))
        panels, result, stored = b.buffer(1, I32), b.buffer(2, I32), b.buffer(3, I32)

        def finish(found: Pointer, m: Register, n: Register, count: Register, vectors: int) -> None:
            with b.loop(0, count) as i, b.loop(0, b.min(N - n, vectors * shape.lanes)) as j:
                place = (m + i) * N + n + j
                result.store(found.load(i * shape.panel + j), place)
                stored.store(stored.load(place) + 1, place)

        def panel(n: Register) -> Pointer:
            return panels.at(n // shape.panel * (words * shape.panel) + n % shape.panel)

        room = b.stack(I32, sums_elements(shape.panel), align=64)
        given = TileOperands(b.buffer(0, U8), words * 4, M, panel, words, room, finish)
        sums.write_block(b, given, (top, bottom), (b.const(N.type, 0), N))
    return module


def _panels(b: Array, width: int) -> Array:
    K, N = b.shape
    padded = np.zeros((K, -(-N // width) * width), np.int8)
    padded[:, :N] = b
    return np.ascontiguousarray(padded.reshape(K // 4, 4, -(-N // width), width).transpose(2, 0, 3, 1)).view(np.int32)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.isa)
def test_each_sum_of_a_block_is_stored_once(target: Target) -> None:
    """Around the heights and widths of tiles, in blocks that begin and end anywhere, and where K has several blocks."""
    engine, rng = Engine(target), np.random.default_rng(0)
    engine.add(_module(target))
    for M, N, K, top, bottom in (
        (16, 1, 64, 0, 16),
        (17, 16, 64, 0, 17),
        (50, 33, 128, 32, 50),
        (50, 130, 64, 3, 41),
        (20, 63, 4160, 0, 20),
        (TILE_ROWS + 9, 17, 64, 9, TILE_ROWS + 9),
        (16, 20, 0, 0, 16),
        (16, 0, 64, 0, 16),
    ):
        a, b = rng.integers(0, 256, (M, K)).astype(np.uint8), rng.integers(-128, 128, (K, N)).astype(np.int8)
        found, stored = np.full((M, N), 7, np.int32), np.zeros((M, N), np.int32)
        call(engine, "product", [a, _panels(b, bytes_tiling(target).panel), found, stored], [M, N, K // 4, top, bottom])
        inside = np.zeros((M, N), bool)
        inside[top:bottom] = True
        np.testing.assert_array_equal(stored, inside)
        np.testing.assert_array_equal(found, np.where(inside, a.astype(np.int64) @ b.astype(np.int64), 7))


def test_words_are_filled_up_to_whole_tiles() -> None:
    """None stay none."""
    assert [tile_words(words) for words in (0, 1, TILE, TILE + 1)] == [0, TILE, TILE, 2 * TILE]


def test_llvm_multiplies_four_tiles_for_four_that_it_reads() -> None:
    """Parts of four, two, two and one; tiles are configured once for all of them, and released."""
    target = machine_target("x86_64", AMX)
    llvm = binding()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = make_machine(target.triple, target.features)
    module = llvm.parse_assembly(f'target datalayout = "{machine.target_data}"\n{_module(target)}', llvm.create_context())
    words = [line.split()[0] for line in machine.emit_assembly(module).splitlines() if line.startswith("\t")]
    counts = {word: words.count(word) for word in ("ldtilecfg", "tilerelease", "tdpbusd", "tilestored", "tilezero")}
    assert counts == {"ldtilecfg": 1, "tilerelease": 1, "tdpbusd": 9, "tilestored": 9, "tilezero": 9}
    assert words.count("tileloadd") == 9 + 4 + 3 + 3 + 2
