"""Rows with the sums of their numbers; products of them are in test_byte_gemm.py."""

from __future__ import annotations

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.dots import has_pairs
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I8, U8, Type
from sardonyx.codegen.kernels.byte_panels import left_shift
from sardonyx.codegen.kernels.quantized.prepared_rows import (
    HEAD_BYTES,
    PrepareParams,
    group_bytes,
    prepared_bytes,
    write_prepare_rows,
)
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target, emulated_target

_KINDS = {U8: np.uint8, I8: np.int8}


def test_numbers_take_two_bytes_where_pairs_are_multiplied() -> None:
    """Whole groups of four, behind the head."""
    assert [prepared_bytes(emulated_target("avx2", [name]), 5) - HEAD_BYTES for name in ("avxvnni", "avx2")] == [8, 16]


@pytest.mark.parametrize("kind", _KINDS, ids=lambda kind: kind.kind.value)
@pytest.mark.parametrize("K", [0, 1, 4, 15, 16, 17, 33, 70])
def test_rows_have_their_sum_and_zeros_behind(target: Target, kind: Type, K: int) -> None:
    """Numbers in the sign that is multiplied, of the ends of the range too."""
    engine, module, row_bytes = Engine(target), Module(target), prepared_bytes(target, K)
    write_prepare_rows(module, "prepare", kind)
    engine.add(module)
    a = np.random.default_rng(K).integers(0, 256, (3, K)).astype(np.uint8).view(_KINDS[kind])
    a[1] = np.iinfo(a.dtype).min
    made = np.full((4, row_bytes), 7, np.uint8)
    call(engine, "prepare", [a, made], PrepareParams(K, row_bytes).words(), 0, 3)
    wanted = a.astype(np.int64) + left_shift(target, kind)
    assert made[:3, :4].copy().view(np.int32)[:, 0].tolist() == wanted.sum(axis=1).tolist()
    size = np.int16 if has_pairs(target) else np.uint8 if wanted.min(initial=0) >= 0 else np.int8
    numbers = made[:3, HEAD_BYTES:].copy().view(size)
    np.testing.assert_array_equal(numbers[:, :K], wanted)
    assert not numbers[:, K:].any()
    assert numbers.shape[1] * numbers.itemsize % group_bytes(target) == 0
    assert (made[3] == 7).all()
