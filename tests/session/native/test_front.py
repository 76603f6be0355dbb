"""Native runs of sessions whose first nodes need Python: columns of text that are encoded."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from support.ml_models import ml_session
from support.native_runs import learned, only_native, run_in_python

import sardonyx
from sardonyx.session.native.front import FrontedRuns

COLUMNS = """graph(a: float[n,1], s: string[n,1], t: string[n,1]) -> (l: string[n], p: float[n,2]) {
    u = ai.onnx.ml.OneHotEncoder(s) {cats_strings = ["x", "y"], zeros = 1}
    v = ai.onnx.ml.LabelEncoder(t) {keys_strings = ["one", "two"], values_floats = [1.0, 2.0], default_float = -1.0}
    f: int64[2] = [-1, 2]
    w = Reshape(u, f)
    j = Concat(a, w, v) {axis = 1}
    l, p = ai.onnx.ml.LinearClassifier(j) {coefficients = [0.5, -0.25, 1.0, 0.25, -0.5, 0.25, -1.0, -0.25],
        intercepts = [0.1, -0.1], classlabels_strings = ["no", "yes"], post_transform = "SOFTMAX"}
}"""


def _feed(n: int, **other: Any) -> dict[str, Any]:
    draw = np.random.default_rng(n)
    texts = {"s": ["x", "y", "z"], "t": ["one", "two", "three"]}
    columns = {name: np.array([[words[place]] for place in draw.integers(0, 3, n)], object) for name, words in texts.items()}
    return {
        "a": draw.standard_normal((n, 1)).astype(np.float32),
        **{name: column.reshape(n, 1) for name, column in columns.items()},
        **other,
    }


@pytest.fixture
def session() -> sardonyx.InferenceSession:
    """A session that knows one row and five."""
    return learned(ml_session(COLUMNS), _feed(1), _feed(5))


def _same(left: list[Any], right: list[Any]) -> None:
    for one, other in zip(left, right, strict=True):
        assert (type(one), one.dtype) == (type(other), other.dtype)
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("n", [1, 5, 0, 7])
@pytest.mark.parametrize("names", [None, ["l"], ["p"], ["p", "l"], ("l",), []])
def test_results_are_those_of_python(session: sardonyx.InferenceSession, names: Any, n: int) -> None:
    """For any names and any number of rows, known or not."""
    _same(session.run(names, _feed(n)), run_in_python(session, names, _feed(n)))


@pytest.mark.parametrize("names", [None, ["p"], ["p", "l"]])
def test_known_shapes_run_without_the_path_in_python(session: sardonyx.InferenceSession, names: Any) -> None:
    """With texts that no category has, and with those of NumPy."""
    with only_native(session):
        session.run(names, _feed(1, s=np.array([["none"]], object)))
        session.run(names, _feed(5, t=np.array([[np.str_("two")]] * 5, object)))


@pytest.mark.parametrize(
    "column",
    [
        np.array([["x"]] * 5),
        [["x"]] * 5,
        np.array([["x"]] * 10, object)[::2],
        np.array([[np.nan]] * 5, object),
        np.array([[3]] * 5, object),
        np.array([["x"], [b"y"], [None], [1.5], ["y"]], object),
    ],
    ids=["str_", "list", "strided", "nan", "integers", "mixed"],
)
def test_what_is_no_dense_array_of_texts_runs_in_python(session: sardonyx.InferenceSession, column: Any) -> None:
    """Which makes texts of it, or refuses it, as it does in the first run."""
    found: list[Any] = []
    for run in (lambda: session.run(None, _feed(5, s=column)), lambda: run_in_python(session, None, _feed(5, s=column))):
        try:
            found.append([result.tolist() for result in run()])
        except sardonyx.SardonyxError as error:
            found.append(str(error))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "feed",
    [
        {},
        {"a": np.zeros((1, 1), np.float32)},
        _feed(1, b=1),
        _feed(1, a=np.zeros((1, 1))),
        _feed(1, s=np.array(["x"], object)),
        None,
    ],
    ids=["empty", "some", "more", "type", "rank", "none"],
)
def test_a_feed_that_does_not_fit_is_refused_in_python(session: sardonyx.InferenceSession, feed: Any) -> None:
    """With the error of the first run."""
    with pytest.raises(sardonyx.InvalidArgument) as native:
        session.run(None, feed)
    with pytest.raises(sardonyx.InvalidArgument) as python:
        run_in_python(session, None, feed)
    assert str(native.value) == str(python.value)


def test_an_unknown_text_is_an_error_where_the_model_says_so() -> None:
    """Worded by the run in Python."""
    strict = ml_session(COLUMNS.replace("zeros = 1", "zeros = 0"))
    good, bad = (_feed(1, s=np.array([[text]], object)) for text in ("x", "q"))
    learned(strict, good)
    with pytest.raises(sardonyx.InvalidArgument, match="'q' is in no category"):
        strict.run(None, bad)
    with only_native(strict):
        strict.run(None, good)


def test_many_categories_are_encoded_too() -> None:
    """More than have a row each."""
    words = ", ".join(f'"w{number}"' for number in range(300))
    text = f"""graph(s: string[n]) -> (y: float[n,300]) {{
        u = ai.onnx.ml.OneHotEncoder(s) {{cats_strings = [{words}], zeros = 1}} \n y = Exp(u) }}"""
    session = ml_session(text)
    feed = {"s": np.array(["w299", "w0", "none"], object)}
    learned(session, feed)
    with only_native(session):
        (y,) = session.run(None, feed)
    expected = np.ones((3, 300), np.float32)
    expected[0, 299] = expected[1, 0] = np.exp(np.float32(1))
    np.testing.assert_allclose(y, expected, rtol=1e-6)


def test_shapes_are_forgotten_and_learned_again(session: sardonyx.InferenceSession) -> None:
    """Another rank begins anew too."""
    session.trim()
    learned(session, _feed(5))
    with only_native(session):
        session.run(None, _feed(5))
    assert isinstance(session._native_runs, FrontedRuns)
    assert session._native_runs.scratch_bytes >= 0


def test_other_providers_run_by_what_they_know(session: sardonyx.InferenceSession) -> None:
    """What was known of the former ones is not used."""
    expected = session.run(None, _feed(5))
    session.set_providers(["ReferenceExecutionProvider"])
    np.testing.assert_allclose(session.run(["p"], _feed(5))[0], expected[1], rtol=1e-5)


def test_results_are_the_callers_own() -> None:
    """An encoded column that is an output may be written to."""
    session = ml_session("""graph(s: string[n]) -> (u: float[n,2]) {
        u = ai.onnx.ml.OneHotEncoder(s) {cats_strings = ["x", "y"], zeros = 1} }""")
    feed = {"s": np.array(["x"], object)}
    for _ in range(4):
        (u,) = session.run(None, feed)
        assert u.tolist() == [[1, 0]]
        u[:] = 7


COUNTED = """graph(a: float[n,1], s: string[n,1]) -> (l: string[n], p: float[n,2]) {
    e: int64[1] = [-1]
    flat = Reshape(s, e)
    low = StringNormalizer(flat) {case_change_action = "LOWER"}
    words = com.microsoft.Tokenizer(low) {mark = 0, mincharnum = 2, pad_value = "#", tokenexp = "[a-z0-9]+"}
    t = TfIdfVectorizer(words) {mode = "TFIDF", min_gram_length = 1, max_gram_length = 2, max_skip_count = 0, ngram_counts = [0, 2],
        ngram_indexes = [0, 1, 2], pool_strings = ["red", "blue", "red", "blue"], weights = [1.5, 0.5, 2.0]}
    j = Concat(a, t) {axis = 1}
    l, p = ai.onnx.ml.LinearClassifier(j) {coefficients = [0.5, -0.25, 1.0, 0.25, -0.5, 0.25, -1.0, -0.25],
        intercepts = [0.1, -0.1], classlabels_strings = ["no", "yes"], post_transform = "SOFTMAX"}
}"""


def _texts(*texts: Any) -> dict[str, Any]:
    return {"a": np.ones((len(texts), 1), np.float32), "s": np.array([[text] for text in texts], object)}


def _counting() -> sardonyx.InferenceSession:
    return ml_session(COUNTED, opset="17, ai.onnx.ml 3, com.microsoft 1")


def test_texts_of_any_length_are_counted_without_the_path_in_python() -> None:
    """What lies between the nodes that read text has no shape that would have to be known."""
    session = learned(_counting(), _texts("Red, blue!"))
    feeds = [_texts(text) for text in ("a", "", "blue RED blue red blue", "Red blue, red.")]
    expected = [run_in_python(session, None, feed) for feed in feeds]
    with only_native(session):
        for feed, results in zip(feeds, expected, strict=True):
            _same(session.run(None, feed), results)


@pytest.mark.parametrize("text", [b"red blue", 7, None, ["red"], np.nan])
def test_what_is_no_text_is_made_text_in_python(text: Any) -> None:
    """Or refused there, in its words."""
    session, feed = learned(_counting(), _texts("red")), _texts("red")
    feed["s"][0, 0] = text
    _same(session.run(None, feed), run_in_python(session, None, feed))


def test_texts_are_not_prepared_twice_for_shapes_that_never_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does a run that is to be learned from prepare them where its shapes are new."""
    session = learned(_counting(), _texts("red"))
    runs = session._native_runs
    assert isinstance(runs, FrontedRuns)

    def refuse(*_arguments: object) -> None:
        raise AssertionError("prepared for nothing")

    monkeypatch.setattr("sardonyx.session.native.front._check_texts", refuse)
    for count in range(2, 90):
        assert len(session.run(None, _texts(*["red"] * count))[0]) == count


def test_shapes_that_no_native_run_takes_are_not_prepared_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as those with more scratch memory than a native run may have."""
    prepared = 0

    def count(array: Any) -> None:
        nonlocal prepared
        prepared += array.shape == (2, 1)

    session = learned(_counting(), _texts("red"))
    monkeypatch.setattr("sardonyx.session.native.front._check_texts", count)
    monkeypatch.setattr("sardonyx.session.native.run.MOST_SCRATCH_BYTES", -1)
    for _ in range(30):
        session.run(None, _texts("red", "blue"))
    assert 0 < prepared <= 6
    with only_native(session):
        session.run(None, _texts("blue"))


def test_a_session_with_a_front_is_freed_with_its_last_reference() -> None:
    """What it knows refers to nothing that refers to it."""
    session = learned(_counting(), _texts("red"), _texts("red", "blue"))
    gc.collect()
    runs = weakref.ref(session._native_runs)
    gc.disable()
    try:
        del session
        assert runs() is None
    finally:
        gc.enable()
