"""Loops whose scan outputs are as long as only the run shows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support.cpu_run import cpu_session, reference
from support.moving import filled, same

from sardonyx.config import Limits
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.cpu import loop_program

EXACT = """graph(x: float[N], n: int64[]) -> (y, s) { go: bool[] = 1
    y, s = Loop(n, go, x) {body = graph(i: int64[], c: bool[], a: float[N]) -> (c, b, b) { b = Add(a, a) } } }"""
UNTIL = """graph(x: float[N], n: int64[], most: float[]) -> (y, s, t) { go: bool[] = 1
    y, s = Loop(n, go, x) {body = graph(i: int64[], c: bool[], a: float[N]) -> (d, b, e) {
        b = Add(a, x) z: int64[] = 0 p = Gather(b, z) d = Less(p, most) e = Neg(b) } }
    t = Relu(s) }"""


def _feed(size: int, count: int, most: float = 0.0) -> dict[str, Array]:
    return {"x": np.ones(size, np.float32), "n": np.array(count), "most": np.array(most, np.float32)}


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for four slices of sixteen numbers."""
    monkeypatch.setattr(loop_program, "_CHUNK_BYTES", 256)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("size", [1, 16, 17, 1000])
def test_there_is_room_for_any_number_of_iterations(size: int) -> None:
    """Whether they fill it never, once, or often; in one session, with what reads the slices."""
    cases = [
        _feed(size, count, most) for count, most in ((9, 3.0), (4, 9.0), (5, 9.0), (1 << 50, 100.0), (1, 0.0), (8, 8.0), (3, 1.0))
    ]
    same(UNTIL, *cases)


def test_results_are_the_callers() -> None:
    """A later run does not change them."""
    session = cpu_session(UNTIL)
    first = session.run(None, _feed(3, 10, 5.0))
    kept = [array.copy() for array in first]
    session.run(None, {**_feed(3, 10, 5.0), "x": np.full(3, 2, np.float32)})
    for found, wanted in zip(first, kept, strict=True):
        np.testing.assert_array_equal(found, wanted)
        assert found.base is None or found.base.nbytes == found.nbytes


def test_many_threads_run_one_loop() -> None:
    """Each with a length and a number of iterations of its own."""
    session = cpu_session(EXACT)

    def work(number: int) -> bool:
        feed = {"x": filled((number % 3 + 1,)), "n": np.array(number % 7)}
        return all(np.array_equal(one, other) for one, other in zip(session.run(None, feed), reference(EXACT, feed), strict=True))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(40)))


@pytest.mark.parametrize("kind", [EXACT, UNTIL])
def test_without_an_iteration_sizes_that_are_not_numbers_are_0(kind: str) -> None:
    """As in the reference provider and in onnxruntime."""
    feed = {name: value for name, value in _feed(5, 0).items() if f"{name}:" in kind}
    assert [array.shape for array in cpu_session(kind.replace(", t)", ")").replace("t = Relu(s)", "")).run(None, feed)] == [
        (5,),
        (0, 0),
    ]


def test_what_reads_slices_of_no_iteration_sees_sizes_of_0() -> None:
    """In a part of its own, though other inputs of it have the name that such a size has in the body."""
    text = """graph(x: float[3, s], n: int64[]) -> (y, z, l) { go: bool[] = 1
        l, t = Loop(n, go, x) {body = graph(i: int64[], c: bool[], a: float[3, s]) -> (c, b, d) { b = Mul(a, x) d = Softmax(a) } }
        y = Transpose(t) z = Concat(t, t) {axis = 2} }"""
    made = cpu_session(text)
    feed = {"x": np.ones((3, 4), np.float32)}
    assert [result.shape for result in made.run(None, {**feed, "n": np.array(0)})] == [(0, 3, 0), (0, 3, 0), (3, 4)]
    assert [result.shape for result in made.run(None, {**feed, "n": np.array(2)})] == [(4, 3, 2), (2, 3, 8), (3, 4)]


def test_slices_of_no_iteration_do_not_broadcast() -> None:
    """A size of 0 is none that a sum with another input's can have; with iterations it is the same."""
    text = """graph(x: float[3, s], n: int64[], w: float[s]) -> (z) { go: bool[] = 1
        l, t = Loop(n, go, x) {body = graph(i: int64[], c: bool[], a: float[3, s]) -> (c, b, d) { b = Mul(a, x) d = Softmax(a) } }
        z = Add(t, w) }"""
    made = cpu_session(text)
    feed = {"x": np.ones((3, 4), np.float32), "w": np.ones(4, np.float32)}
    assert made.run(None, {**feed, "n": np.array(2)})[0].shape == (2, 3, 4)
    with pytest.raises(InvalidArgument, match="a dimension of 0 cannot be broadcast to one of 4"):
        made.run(None, {**feed, "n": np.array(0)})


@pytest.mark.usefixtures("small_chunks")
def test_slices_beyond_the_limit_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says how many iterations there were, and which node it is."""
    session = cpu_session(UNTIL)
    monkeypatch.setattr(loop_program, "LIMITS", Limits(tensor_bytes=4096))
    with pytest.raises(InvalidArgument, match=r"Loop.* iterations have made scan outputs of .*SARDONYX_MAX_TENSOR_BYTES"):
        session.run(None, _feed(16, 1 << 40, 1e6))


def test_a_number_of_iterations_beyond_memory_is_an_error() -> None:
    """Before anything is allocated."""
    with pytest.raises(InvalidArgument, match=r"Loop.*SARDONYX_MAX_TENSOR_BYTES"):
        cpu_session(EXACT).run(None, {"x": filled((4,)), "n": np.array(1 << 60)})
