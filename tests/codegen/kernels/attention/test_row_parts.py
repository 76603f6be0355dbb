"""Sizes of attention of few queries, and what it does with one piece of keys."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, I64
from sardonyx.codegen.kernels.attention.row_parts import (
    GREATEST,
    PIECE,
    SUM,
    RowAttentionParams,
    further_param,
    part_elements,
    write_scores,
    write_values,
)
from sardonyx.codegen.kernels.attention.scores import AttentionShape, Masking
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target


def _params(keys: int, D: int) -> RowAttentionParams:
    return RowAttentionParams(1, 1, 1, 1, keys, D, D, 0.5, (0, 0, D), (0, 0, D), (0, 0, D), (0, 0, D))


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """An engine with a kernel that attends to one piece of keys, and gives out a parameter behind those of all."""
    engine, module = Engine(target), Module(target)
    scores = write_scores(module, "scores", AttentionShape(Masking.NONE), F32)
    values = write_values(module, "values", 1, F32)
    with module.kernel("attend") as b:
        q, k, v, part, end = (b.buffer(place, I64 if place == 4 else F32) for place in range(5))
        room = b.stack(F32, PIECE, align=64)
        begin, stop = b.const(I64, 0), end.load()
        b.call_part(scores, q, k, q, room, part.at(further_param(b, 0)), begin, stop, begin, stop)
        b.call_part(values, v, room, part, begin, stop)
    engine.add(module)
    return engine


@pytest.mark.parametrize("keys", [1, 15, 16, 17, 130, PIECE])
@pytest.mark.parametrize("D", [1, 16, 40])
def test_a_piece_gives_sums_and_what_they_are_divided_by(engine: Engine, keys: int, D: int) -> None:
    """The greatest score, the sum of exponentials and that of values by them."""
    random = np.random.default_rng(keys + D)
    q, k, v = (random.standard_normal((rows, D)).astype(np.float32) for rows in (1, keys, keys))
    part = np.zeros(part_elements(D), np.float32)
    call(engine, "attend", [q, k, v, part, np.array([keys])], [*_params(keys, D).words(), D], 0, 1)
    scores = (0.5 * q.astype(np.float64) @ k.T)[0]
    weights = np.exp(scores - scores.max())
    np.testing.assert_allclose(part[D + GREATEST], scores.max(), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(part[D + SUM], weights.sum(), rtol=1e-5)
    np.testing.assert_allclose(part[:D], weights @ v, rtol=1e-4, atol=1e-5)


def test_a_piece_of_keys_is_a_task() -> None:
    """Pieces are joined where there are several."""
    one, three = _params(PIECE, 8), _params(2 * PIECE + 1, 8)
    assert (one.tasks(), one.joins()) == (1, 0)
    assert (three.tasks(), three.joins()) == (3, 1)
