"""Rows of numbers of few bits, gathered and dequantized."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I32, I64
from sardonyx.codegen.kernels.quantized.gather_blocks import GatherBlocksParams, write_gather_blocks
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """The kernels of all widths, with zero points and without."""
    module, engine = Module(target), Engine(target)
    for bits in (2, 4, 8):
        write_gather_blocks(module, f"gather_{bits}_zeros", bits, I64, has_zeros=True)
        write_gather_blocks(module, f"gather_{bits}", bits, I32, has_zeros=False)
    engine.add(module)
    return engine


def _packed(numbers: Array, bits: int) -> Array:
    each = 8 // bits
    padded = np.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, -numbers.shape[-1] % each)])
    fields = padded.reshape(*padded.shape[:-1], -1, each).astype(np.uint16) << (np.arange(each) * bits)
    return np.ascontiguousarray(fields.sum(-1).astype(np.uint8))


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("K", [16, 32, 36, 64, 100])
@pytest.mark.parametrize("block", [16, 32])
def test_rows_are_those_of_the_definition(engine: Engine, bits: int, K: int, block: int) -> None:
    """Shorter last blocks, entries of several rows, indices from the end and out of range; nothing is written behind."""
    generator, size, parts, blocks = np.random.default_rng(K), 5, 2, -(-K // block)
    numbers = generator.integers(0, 1 << bits, (size, parts, K)).astype(np.uint8)
    zeros = generator.integers(0, 1 << bits, (size, parts, blocks)).astype(np.uint8)
    scales = generator.uniform(0.1, 2, (size, parts, blocks)).astype(np.float32)
    indices = np.array([0, 4, -1, -5, 5, -6, 2, 1 << 30])
    inside = (indices >= -size) & (indices < size)
    for name, points, index in ((f"gather_{bits}_zeros", zeros, np.int64), (f"gather_{bits}", np.full_like(zeros, 3), np.int32)):
        wide = (numbers.astype(np.float32) - np.repeat(points, block, -1)[..., :K]) * np.repeat(scales, block, -1)[..., :K]
        y = np.full(len(indices) * parts * K + 16, 7, np.float32)
        params = GatherBlocksParams(size, parts, K, block, bits, 3)
        buffers = [_packed(numbers, bits), indices.astype(index), scales, y, _packed(zeros, bits)]
        call(engine, name, buffers, params.words(), 0, len(indices))
        expected = np.where(inside[:, np.newaxis, np.newaxis], wide[np.where(inside, indices, 0)], np.float32(0))
        np.testing.assert_array_equal(y[:-16], expected.reshape(-1))
        assert (y[-16:] == 7).all()
