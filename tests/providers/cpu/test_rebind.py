"""Binding again, from the binding before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.cpu_run import cpu_session

from sardonyx.dtypes import Array
from sardonyx.ir.shape import symbol
from sardonyx.providers.cpu.placed import Placed, Planned
from sardonyx.providers.cpu.rebind import TracedSizes
from sardonyx.providers.cpu.sizes import Sizes

CACHED = """graph(x: float[b, s, 8], w: float[8, 8], pk: float[b, 2, p, 4], pv: float[b, 2, p, 4]) -> (y, keys, values) {
    q = MatMul(x, w) k = Relu(q) v = Neg(q)
    z, keys, values = Attention(q, k, v, _, pk, pv) {q_num_heads = 2, kv_num_heads = 2}
    y = Softmax(z) }"""


def bind(session: Any, **symbols: int) -> Placed:
    """Bind the program which the session runs, inside of what callers see."""
    planner = session._runner.built.executor.only.step.program.planner
    placed: Placed = planner.rebinder.bind(Sizes(symbols), planner.address, planner.table_of, planner.dims)
    return placed


def planned(session: Any, **symbols: int) -> Planned:
    """Bind it, where plans have to be asked."""
    placed = bind(session, **symbols)
    assert isinstance(placed, Planned)
    return placed


def feeds(B: int, S: int, P: int) -> dict[str, Array]:
    rng = np.random.default_rng(P)
    shapes = {"x": (B, S, 8), "w": (8, 8), "pk": (B, 2, P, 4), "pv": (B, 2, P, 4)}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def test_sizes_note_what_they_are_asked_for() -> None:
    """Expressions, once each, until they are taken; numbers need none."""
    n, m = symbol("n"), symbol("m")
    sizes = TracedSizes({"n": 3, "m": 4})
    assert (sizes(n), sizes(7), sizes.shape((n, 2)), sizes.product((n, m))) == (3, 7, (3, 2), 12)
    assert sizes.take_asked() == {n, m}
    assert sizes.take_asked() == set()


SEQUENCES = {
    "grows": [(1, 1, P) for P in range(250, 265)],
    "jumps": [(1, 1, 0), (1, 1, 600), (1, 1, 3), (1, 1, 601)],
    "prompts": [(1, 40, 0), (1, 1, 40), (1, 1, 41), (2, 9, 5), (2, 8, 5), (2, 30, 300), (1, 1, 42)],
    "nothing": [(1, 1, 5), (0, 1, 5), (1, 0, 5), (1, 1, 6)],
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_session_that_has_seen_other_sizes_computes_the_same(name: str) -> None:
    """To the bit what a new session does."""
    session = cpu_session(CACHED, opset=23)
    for sizes in SEQUENCES[name]:
        feed = feeds(*sizes)
        for found, wanted in zip(session.run(None, feed), cpu_session(CACHED, opset=23).run(None, feed), strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_steps_that_no_changed_size_decides_stay() -> None:
    """And the table is that of the binding before, but for the others."""
    session = cpu_session(CACHED, opset=23)
    session.run(None, feeds(1, 1, 300))
    before, after, again = (planned(session, b=1, s=1, p=P) for P in (300, 301, 301))
    same = [one is other for one, other in zip(before.steps, after.steps, strict=True)]
    assert any(same)
    assert not all(same)
    assert after.table.size_bytes == before.table.size_bytes
    assert all(one is other for one, other in zip(after.steps, again.steps, strict=True))


def test_sizes_that_change_again_and_again_are_computed_without_plans() -> None:
    """From the third on, and until one of them decides otherwise: behind 256 keys there is another piece."""
    session = cpu_session(CACHED, opset=23)
    found = {P: bind(session, b=1, s=1, p=P) for P in range(100, 270)}
    asked = [P for P, placed in found.items() if isinstance(placed, Planned)]
    assert asked[:4] != [100, 101, 102, 103]
    assert 256 in asked
    assert len(asked) < 20
    for P in (150, 255, 256, 257, 269):
        fresh = bind(cpu_session(CACHED, opset=23), b=1, s=1, p=P)
        assert found[P].table.size_bytes == fresh.table.size_bytes


def test_other_sizes_than_those_recorded_are_planned() -> None:
    """A recording holds for the symbols that changed; with another batch plans are asked."""
    session = cpu_session(CACHED, opset=23)
    for P in range(10, 16):
        bind(session, b=1, s=1, p=P)
    assert not isinstance(bind(session, b=1, s=1, p=16), Planned)
    assert isinstance(bind(session, b=2, s=1, p=17), Planned)
    assert not isinstance(bind(session, b=1, s=1, p=18), Planned)


def test_recordings_that_serve_few_bindings_are_made_less_and_less_often() -> None:
    """Lengths of all kinds in turn, each of which decides otherwise, are planned as without recordings."""
    session = cpu_session(CACHED, opset=23)
    rebinder = session._runner.built.executor.only.step.program.planner.rebinder
    made: list[object] = []
    for P in [P for start in range(0, 100, 2) for P in (start, 3000 + 300 * start)]:
        bind(session, b=1, s=1, p=P)
        made += [recording for recording in rebinder._recordings[:1] if recording not in made[-1:]]
    assert len(made) < 25


def test_prompts_and_tokens_in_turn_are_planned_once() -> None:
    """A second text of the same prompt length needs none for its tokens, though all sizes have changed in between."""
    session = cpu_session(CACHED, opset=23)
    asked = []
    for _ in range(4):
        placed = [bind(session, b=1, s=S, p=P) for S, P in [(16, 0), *((1, P) for P in range(16, 40))]]
        asked.append(sum(isinstance(item, Planned) for item in placed))
    assert asked[0] > asked[1]
    assert asked[3] <= 1
