"""Epilogues that end in a rounding to 8 bits."""

from collections.abc import Callable

import numpy as np
import pytest

from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.saturate import round_clipped
from sardonyx.codegen.emit.types import F32, I32, I64, U8
from sardonyx.codegen.emit.values import Register, Span
from sardonyx.codegen.kernels.narrowing import Narrowing, narrow_together
from sardonyx.codegen.target import Target


def _half(b: Kernel, sums: Register, place: Register, column: Register, span: Span) -> Register:
    return sums.to(F32) * 0.5


def _rounded(b: Kernel, sums: Register, place: Register, column: Register, span: Span) -> Register:
    limits = (sums.like(limit).to(F32) for limit in (-3, 252))
    return round_clipped(b, _half(b, sums, place, column, span), sums.like(3), *limits).to(U8)


_NARROWING = Narrowing(_rounded, _half, lambda b: b.const(I32, 3), U8)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_vectors_together_give_what_each_gives_alone(target: Target, run: Callable[..., None], count: int) -> None:
    """In the order of the vectors."""
    lanes = target.lanes(32)
    sums = np.arange(count * lanes, dtype=np.int32) * 9 - 40
    alone, together = np.zeros(4 * lanes, np.uint8), np.zeros(4 * lanes, np.uint8)
    module = Module(target)
    with module.kernel("narrow") as b:
        zero, span = b.const(I64, 0), Span(lanes)
        parts = [b.buffer(0, I32).load(i * lanes, lanes) for i in range(count)]
        for i, part in enumerate(parts):
            b.buffer(1, U8).store(_NARROWING(b, part, zero, zero, span), i * lanes, lanes)
        packed = narrow_together(b, _NARROWING, parts, [(zero, zero, span)] * count)
        assert packed is not None
        b.buffer(2, U8).store(packed, 0, packed.type.lanes)
    run(module, "narrow", [sums, alone, together], [])
    assert together[: len(sums)].tolist() == alone[: len(sums)].tolist()
    assert alone[: len(sums)].tolist() == np.clip(np.rint(sums * 0.5) + 3, 0, 255).astype(int).tolist()


def test_other_epilogues_are_not_narrowed(target: Target) -> None:
    """Nor is one vector."""
    b = Kernel(target, "nowhere")
    sums, place = b.const(I32.vector(target.lanes(32)), 0), b.const(I64, 0)
    assert narrow_together(b, _half, [sums] * 4, [(place, place, Span(1))] * 4) is None
    assert narrow_together(b, _NARROWING, [sums], [(place, place, Span(1))]) is None
