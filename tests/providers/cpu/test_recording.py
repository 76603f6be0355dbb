"""Bindings that are computed from another one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.cpu_run import cpu_session
from support.native_runs import run_in_python

from sardonyx.dtypes import Array
from sardonyx.providers.cpu.placed import Planned
from sardonyx.providers.cpu.sizes import Sizes

CHAIN = """graph(x: float[b, n, 8], w: float[8, 8]) -> (y, z) {
    a = MatMul(x, w) c = Softmax(a) {axis = 1} d = Add(a, c) y = Concat(d, x, a) {axis = 1} z = ReduceSum(d) {keepdims = 0} }"""
PAST = """graph(x: float[b, s, 8], w: float[8, 8], pk: float[b, 2, p, 4], pv: float[b, 2, p, 4], mask: float[b, 1, s, t]) -> (y, k, v) {
    q = MatMul(x, w) r = Relu(q) u = Neg(q)
    z, k, v = Attention(q, r, u, mask, pk, pv) {q_num_heads = 2, kv_num_heads = 2}
    y = Softmax(z) }"""


def feeds_of(name: str, length: int) -> dict[str, Array]:
    """Return feeds of the model `name`, of which the length is what changes."""
    rng = np.random.default_rng(length)
    shapes: dict[str, tuple[int, ...]] = {"x": (2, length, 8), "w": (8, 8)}
    if name == "past":
        shapes = {"x": (1, 1, 8), "w": (8, 8), "mask": (1, 1, 1, length + 1)}
        shapes |= {"pk": (1, 2, length, 4), "pv": (1, 2, length, 4)}
    return {key: rng.standard_normal(shape).astype(np.float32) for key, shape in shapes.items()}


LENGTHS = {
    "by one": range(1, 60),
    "by many": range(1, 3000, 97),
    "down": range(600, 500, -3),
    "to and fro": [30, 31, 32, 500, 33, 7],
}


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("model", ["chain", "past"])
def test_lengths_that_change_give_what_a_new_session_gives(model: str, lengths: str) -> None:
    """To the bit, whether plans are asked, or what was recorded of them is replayed in Python or by machine code."""
    text, opset = (CHAIN, 18) if model == "chain" else (PAST, 23)
    session, fresh = cpu_session(text, opset=opset), cpu_session(text, opset=opset)
    for length in LENGTHS[lengths]:
        feed = feeds_of(model, length)
        found = session.run(None, feed)
        fresh._runner.built.executor.only.step.program.planner.rebinder._latest = None
        fresh._runner.built.executor.only.step.program.planner.rebinder._recordings = ()
        for one, other in zip(found, run_in_python(fresh, None, feed), strict=True):
            np.testing.assert_array_equal(one, other)


def program_of(session: Any) -> Any:
    return session._runner.built.executor.only.step.program


def test_places_in_the_arena_move_without_plans() -> None:
    """A temporary that outgrows its place gets another one, and the words that point to it follow."""
    session = cpu_session(CHAIN, opset=18)
    session.run(None, feeds_of("chain", 10))
    planner = program_of(session).planner
    bound = {
        n: planner.rebinder.bind(Sizes({"b": 2, "n": n}), planner.address, planner.table_of, planner.dims)
        for n in range(100, 2000, 20)
    }
    replayed = [n for n, placed in bound.items() if not isinstance(placed, Planned)]
    offsets = {tuple(bound[n].places.offsets) for n in replayed}
    assert len(replayed) > 50
    assert len(offsets) > 3
