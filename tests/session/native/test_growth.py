"""Runs by machine code whose shapes differ from run to run, as those of a decoder with a cache that grows."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest
from support.models import model
from support.native_runs import only_native, run_in_python
from support.session_models import session

import sardonyx as ort
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

CACHE = """graph(x: float[batch, 1, 8], past: float[batch, past, 8], mask: int64[batch, past])
        -> (y: float[batch, 1, 8], present: float[batch, total, 8], count: int64[batch, 1]) {
    present = Concat(past, x) {axis = 1}
    turned = Transpose(present) {perm = [0, 2, 1]}
    scores = MatMul(x, turned)
    weights = Softmax(scores) {axis = -1}
    y = MatMul(weights, present)
    axis: int64[1] = [1]
    count = ReduceSum(mask, axis)
}"""
UNREAD = """graph(x: float[n], unread: float[n, m]) -> (y: float[n]) {
    y = Exp(x)
}"""

PACKED = """graph(x: float[b, s, 16], w: float[16, 48], w2: float[16, 16], past: float[2, b, 4, p, 4]) -> (z: float[b, s, 16], present) {
    bias: float[48] = [BIAS]
    y, present = com.microsoft.Attention(x, w, bias, _, past) {num_heads = 4, unidirectional = 1}
    turned = MatMul(y, w2)
    longer = Concat(turned, x) {axis = 1}
    soft = Softmax(longer)
    z, rest = Split(soft) {axis = 1, num_outputs = 2}
}""".replace("BIAS", ", ".join(["0.5"] * 48))


def _feed(length: int, batch: int = 1) -> dict[str, Any]:
    random = np.random.default_rng(length)
    x, past = (random.standard_normal((batch, size, 8)).astype(np.float32) for size in (1, length))
    return {"x": x, "past": past, "mask": np.ones((batch, length), np.int64)}


def _same(left: list[Array], right: list[Array]) -> bool:
    return all(a.dtype == b.dtype and a.shape == b.shape and (a == b).all() for a, b in zip(left, right, strict=True))


def _growing(lengths: range = range(40, 50), batch: int = 1) -> ort.InferenceSession:
    """Return a session that has run with growing lengths."""
    made = session(CACHE)
    for length in lengths:
        made.run(None, _feed(length, batch))
    return made


def test_lengths_that_were_never_met_run_natively() -> None:
    """Once the session has seen some that grow; results are those of the run in Python."""
    growing = _growing()
    for length in (50, 51, 60, 55, 49, 50, 61):
        with only_native(growing):
            found = growing.run(None, _feed(length))
        assert _same(found, run_in_python(session(CACHE), None, _feed(length)))


def test_lengths_for_which_temporaries_are_too_small_are_learned_by_one_run() -> None:
    """In Python: the arena grows, and lengths behind it are native again."""
    growing = _growing()
    growing.run(None, _feed(9000))
    growing.run(None, _feed(9001))
    with only_native(growing):
        assert _same(growing.run(None, _feed(9002)), run_in_python(session(CACHE), None, _feed(9002)))


@pytest.mark.parametrize("length", [0, 1, 2, 17])
def test_lengths_to_which_no_decision_was_recorded_are_right(length: int) -> None:
    """Whoever computes them."""
    growing = _growing()
    for _ in range(3):
        assert _same(growing.run(None, _feed(length)), run_in_python(session(CACHE), None, _feed(length)))


def test_another_batch_is_run_by_its_own_binding() -> None:
    """Sizes that did not change while lengths were learned are conditions."""
    growing = _growing()
    for _ in range(2):
        assert _same(growing.run(None, _feed(50, batch=3)), run_in_python(session(CACHE), None, _feed(50, batch=3)))
    with only_native(growing):
        assert growing.run(None, _feed(52))[1].shape == (1, 53, 8)


def test_sizes_that_contradict_the_model_are_an_error() -> None:
    """As they are in Python, where the message is made; a symbol that has two sizes gets a build without it."""
    growing = _growing()
    (count,) = growing.run(["count"], _feed(50) | {"mask": np.ones((1, 49), np.int64)})
    assert count.tolist() == [[49]]
    with pytest.raises(InvalidArgument):
        growing.run(None, _feed(50) | {"past": np.ones((1, 50, 7), np.float32)})


def test_an_input_that_the_program_does_not_read_may_not_contradict_either() -> None:
    """Its sizes are as they were when lengths were learned, or Python looks at them."""
    unread = session(UNREAD)
    for n in range(3, 12):
        unread.run(None, {"x": np.zeros(n, np.float32), "unread": np.zeros((n, 2), np.float32)})
    for n, m in ((12, 2), (13, 5), (4, 2)):
        (y,) = unread.run(None, {"x": np.zeros(n, np.float32), "unread": np.zeros((n, m), np.float32)})
        assert y.tolist() == [1.0] * n


def test_outputs_are_chosen_by_name() -> None:
    """In any order."""
    growing = _growing()
    with only_native(growing):
        present, y = growing.run(["present", "y"], _feed(50))
    assert present.shape == (1, 51, 8)
    assert y.shape == (1, 1, 8)


def test_prompts_and_tokens_in_turn_give_what_python_gives() -> None:
    """Also where parts of temporaries move with the arena, and lengths decide where they begin."""
    packed, plain = (session(model(PACKED, opset=18)) for _ in range(2))
    weights = {
        name: np.random.default_rng(9).standard_normal((16, size)).astype(np.float32) for name, size in (("w", 48), ("w2", 16))
    }
    for prompt in (16, 5, 40, 16, 200):
        random = np.random.default_rng(prompt)
        past = np.zeros((2, 1, 4, 0, 4), np.float32)
        for size in (prompt, *[1] * 12):
            feed = weights | {"x": random.standard_normal((1, size, 16)).astype(np.float32), "past": past}
            found = packed.run(None, feed)
            assert _same(found, run_in_python(plain, None, feed))
            past = found[1]


def test_threads_with_lengths_of_their_own_get_their_own_results() -> None:
    """At the same time."""
    growing = _growing()
    expected = {length: run_in_python(session(CACHE), None, _feed(length)) for length in range(50, 58)}
    wrong: list[int] = []

    def work(length: int) -> None:
        wrong.extend(length for _ in range(50) if not _same(growing.run(None, _feed(length)), expected[length]))

    threads = [threading.Thread(target=work, args=(length,)) for length in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_large_results_lie_in_memory_of_results_that_are_gone() -> None:
    """A result that somebody holds keeps its memory."""
    growing = _growing(range(4000, 4012))
    with only_native(growing):
        held = growing.run(None, _feed(4020))[1]
        before = held.copy()
        places = {growing.run(None, _feed(4020 + step))[1].ctypes.data for step in range(20)}
    assert held.ctypes.data not in places
    assert len(places) < 4
    assert (held == before).all()


def test_a_result_outlives_its_session() -> None:
    """And a part of a result the result."""
    growing = _growing(range(4000, 4012))
    part = growing.run(["present"], _feed(4020))[0][0, 100:]
    expected = part.copy()
    del growing
    gc.collect()
    assert (part == expected).all()
    part.fill(3)
    assert (part == 3).all()


def test_trimming_frees_the_memory_that_no_result_lies_in() -> None:
    """What it was is part of what `trim` returns."""
    growing = _growing(range(4000, 4012))
    for length in range(4012, 4020):
        growing.run(None, _feed(length))
    assert growing.trim() >= 4000 * 8 * 4
    assert _same(growing.run(None, _feed(4020)), run_in_python(session(CACHE), None, _feed(4020)))
