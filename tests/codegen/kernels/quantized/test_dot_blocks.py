"""Products of rows rounded to 8 bits with weights of few bits."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, U8
from sardonyx.codegen.kernels.gemm import tiling
from sardonyx.codegen.kernels.panels import BlockLayout
from sardonyx.codegen.kernels.quantized.dot_blocks import (
    DotParams,
    QuantizeParams,
    q_bytes,
    write_dot_blocks,
    write_quantize_blocks,
)
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

_PANELS = [BlockLayout(bits, size, zero) for bits in (2, 4, 8) for size, zero in ((16, None), (32, U8), (128, F32), (256, U8))]


def _rounded(engine: Engine, a: Array, block_size: int) -> tuple[Array, Array, Array]:
    """Q in one piece, its numbers (M, blocks, block size) and its scales (M, blocks)."""
    M, K = a.shape
    blocks = -(-K // block_size)
    q = np.full((M, blocks, q_bytes(block_size)), 7, np.uint8)
    call(engine, "quantize", [a, q], QuantizeParams(K, blocks).words(), 0, M)
    heads = np.ascontiguousarray(q[:, :, :8]).view(np.float32)
    numbers = np.ascontiguousarray(q[:, :, 8:]).view(np.int8)
    np.testing.assert_array_equal(heads[:, :, 1].view(np.int32), numbers.sum(axis=2, dtype=np.int64))
    return q, numbers, heads[:, :, 0]


def _engine(target: Target, panels: BlockLayout) -> Engine:
    engine, module = Engine(target), Module(target)
    write_quantize_blocks(module, "quantize", panels.block_size)
    write_dot_blocks(module, "product", panels)
    engine.add(module)
    return engine


def _a(M: int, K: int) -> Array:
    return np.random.default_rng(M + K).standard_normal((M, K)).astype(np.float32)


@pytest.mark.parametrize("panels", _PANELS, ids=lambda panels: panels.name)
def test_products_are_those_of_the_rounded_rows(target: Target, panels: BlockLayout) -> None:
    """Around tiles, tasks and blocks: dot products of integers are exact, and scaled in float32."""
    engine, generator, width = _engine(target, panels), np.random.default_rng(0), tiling(target).panel
    for M, N, K in ((1, 3, 1), (7, 65, 129), (50, 64, 300), (5, 33, 1000), (0, 5, 40)):
        blocks = -(-K // panels.block_size)
        numbers = generator.integers(0, 1 << panels.bits, (N, blocks, panels.block_size), dtype=np.uint8)
        scales = generator.standard_normal((N, blocks)).astype(np.float32)
        zeros = None if panels.zero is None else generator.integers(0, 1 << panels.bits, (N, blocks)).astype(_ZEROS[panels.zero])
        points = 1 << (panels.bits - 1) if zeros is None else zeros[:, :, None].astype(np.float64)
        weights = (numbers.astype(np.float64) - points) * scales[:, :, None].astype(np.float64)
        q, rounded, factors = _rounded(engine, _a(M, K), panels.block_size)
        rows = rounded * factors[:, :, None].astype(np.float64)
        exact, magnitude = (np.einsum("mbk,nbk->mn", kind(rows), kind(weights)) for kind in (np.asarray, np.abs))
        c, params = np.full((M + 1, N), 7, np.float32), DotParams(M, N, blocks)
        call(
            engine,
            "product",
            [q, panels.pack(numbers.__getitem__, scales, zeros, width), c],
            params.words(),
            0,
            params.tasks(width),
        )
        assert (c[M] == 7).all()
        assert (np.abs(c[:M] - exact) <= 2e-6 * magnitude).all()


_ZEROS = {U8: np.uint8, F32: np.float32}


def test_rows_are_rounded_to_127_steps_of_their_largest_magnitude(target: Target) -> None:
    """To nearest, ties to even; zeros stand behind the last column."""
    engine = _engine(target, _PANELS[0])
    a = np.zeros((1, 20), np.float32)
    a[0, :5], a[0, 16] = (-127, 2.5, 3.5, 0.4, 60), 0.5
    _, numbers, scales = _rounded(engine, a, 16)
    assert numbers[0, 0, :5].tolist() == [-127, 2, 4, 0, 60]
    assert numbers[0, 1].tolist() == [127] + [0] * 15
    assert scales[0].tolist() == [1.0, np.float32(0.5) / np.float32(127)]


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_a_block_that_is_not_finite_makes_its_row_nan(target: Target, odd: float) -> None:
    """Other rows stay what they are."""
    engine, panels, width = _engine(target, _PANELS[0]), _PANELS[0], tiling(target).panel
    a = _a(2, 16)
    a[0, 3] = odd
    q, _, _ = _rounded(engine, a, 16)
    c, params = np.zeros((2, 1), np.float32), DotParams(2, 1, 1)
    packed = panels.pack(np.ones((1, 1, 16), np.uint8).__getitem__, np.ones((1, 1), np.float32), None, width)
    call(engine, "product", [q, packed, c], params.words(), 0, params.tasks(width))
    assert np.isnan(c[0, 0])
    assert np.isfinite(c[1, 0])


@pytest.mark.parametrize("value", [0.0, 1e-45, -1e-40])
def test_blocks_of_zeros_and_denormal_numbers_are_zeros(target: Target, value: float) -> None:
    """Their scale has no reciprocal."""
    _, numbers, scales = _rounded(_engine(target, _PANELS[0]), np.full((1, 16), value, np.float32), 16)
    assert not numbers.any() or np.abs(numbers * scales[0, 0] - value).max() < 1e-40
    assert np.isfinite(scales).all()
