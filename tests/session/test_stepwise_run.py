"""Runs of plans that are several programs: what is like an earlier feed is not checked again."""

import pickle

import numpy as np
import pytest
from support.custom_operators import mine_session
from support.native_runs import learned, only_native, run_in_python
from support.session_models import session as session_of

import sardonyx

LOOP = """graph(x: float[n, 3], most: float[]) -> (y: float[n, 3], s: float[t, n, 3], z: float[t, n]) {
    limit: int64[] = 20 go: bool[] = 1 axes: int64[1] = [2]
    y, s = Loop(limit, go, x) {body = graph b(i: int64[], c: bool[], a: float[n, 3]) -> (g: bool[], b: float[n, 3], b) {
        b = Add(a, a) r = ReduceMax(b) {keepdims = 0} g = Less(r, most) } }
    z = ReduceSum(s, axes) {keepdims = 0} }"""


def feed_of(most, rows=2):
    return {"x": np.ones((rows, 3), np.float32), "most": np.array(most, np.float32)}


@pytest.fixture
def session():
    return session_of(LOOP)


def same(left, right):
    for one, other in zip(left, right, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("names", [None, ["y", "s", "z"]])
def test_a_feed_like_an_earlier_one_is_not_checked_again(session, names):
    """Whatever length the loop gives its results, for all outputs or a list of them all."""
    learned(session, feed_of(3))
    expected = [run_in_python(session, names, feed_of(most)) for most in (3, 3, 100)]
    copied = pickle.loads(pickle.dumps(feed_of(3)))  # its types are other objects
    with only_native(session):
        same(session.run(names, copied), expected[0])
        for most, results in zip((3, 3, 100), expected, strict=True):
            same(session.run(names, feed_of(most)), results)


@pytest.mark.parametrize(
    ("names", "feed"),
    [
        (["z"], feed_of(3)),
        (["z", "y", "s"], feed_of(3)),
        (("y",), feed_of(3)),
        (None, feed_of(3, rows=5)),
        (None, {"x": [[1, 2, 3]], "most": 3}),
        (None, feed_of(3) | {"x": np.ones((2, 6), np.float32)[:, ::2]}),
    ],
)
def test_any_other_run_gives_what_python_gives(session, names, feed):
    """Other names, shapes, kinds of feeds and arrays that are not dense."""
    learned(session, feed_of(3))
    same(session.run(names, feed), run_in_python(session, names, feed))


@pytest.mark.parametrize(
    "feed",
    [
        {},
        {"x": np.ones((2, 3), np.float32)},
        feed_of(3) | {"q": np.zeros(1)},
        feed_of(3) | {"x": np.ones((2, 3))},
        feed_of(3) | {"x": np.ones((2, 4), np.float32)},
        feed_of(3) | {"x": np.ones((2, 3), ">f4").astype(">i4")},
        [1],
        None,
    ],
)
def test_a_feed_that_does_not_fit_is_refused_in_the_same_words(session, feed):
    """By the run in Python."""
    learned(session, feed_of(3))
    errors = []
    for run in (lambda: session.run(None, feed), lambda: run_in_python(session, None, feed)):
        with pytest.raises(sardonyx.InvalidArgument) as caught:
            run()
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


def test_results_are_the_callers_own(session):
    """Each run makes new arrays, which may be written to."""
    learned(session, feed_of(3))
    first = session.run(None, feed_of(3))
    for value in first:
        value.fill(7)
    same(session.run(None, feed_of(3)), run_in_python(session, None, feed_of(3)))


def test_dimensions_of_one_name_with_two_sizes_are_not_learned():
    """A build of the model without its symbols runs these."""
    session = session_of("""graph(x: float[n], k: float[n]) -> (u: float[m], c: float[p]) {
        u = Unique(x)
        c = Unique(k) }""")
    feed = {"x": np.ones(3, np.float32), "k": np.ones(4, np.float32)}
    for _ in range(4):
        u, c = session.run(None, feed)
        assert (u.shape, c.shape) == ((1,), (1,))


def test_a_failure_in_a_step_is_worded_as_in_python():
    """Though the feed is like an earlier one."""
    session = session_of("""graph(x: float[n], i: int64[k]) -> (u: float[m], g: float[k]) {
        u = Unique(x)
        g = Gather(u, i) }""")
    good, bad = ({"x": np.arange(3, dtype=np.float32), "i": np.array([number])} for number in (1, 9))
    learned(session, good)
    errors = []
    for run in (lambda: session.run(None, bad), lambda: run_in_python(session, None, bad)):
        with pytest.raises(sardonyx.InvalidArgument) as caught:
            run()
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


@pytest.mark.parametrize("failure", [ValueError("it is full"), MemoryError("it is full")])
def test_an_operator_with_state_sees_a_run_that_fails_once(failure):
    """The error has the words of a run in Python all the same."""
    seen = []

    @sardonyx.op("mine", "Counted", shape=lambda x: x)
    def counted(x):
        seen.append(x)
        if x[0] > 2:
            raise failure
        return x

    session = mine_session("(x: float[n]) -> (y: float[n]) {\na = mine.Counted(x)\ny = Exp(a)\n}", counted)
    good, bad = ({"x": np.full(3, number, np.float32)} for number in (1, 9))
    learned(session, good)
    errors = []
    for run in (lambda: session.run(None, bad), lambda: run_in_python(session, None, bad)):
        seen.clear()
        with pytest.raises(sardonyx.SardonyxError) as caught:
            run()
        errors.append((type(caught.value), str(caught.value)))
        assert len(seen) == 1
    assert errors[0] == errors[1]


def test_more_shapes_than_are_kept_all_run(session):
    """The first ones are forgotten."""
    for rows in (*range(1, 40), 1, 2):
        same(session.run(None, feed_of(3, rows)), run_in_python(session, None, feed_of(3, rows)))
