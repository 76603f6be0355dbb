"""Random feeds that a model accepts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.models import model

from sardonyx.errors import InvalidArgument
from sardonyx.formats.onnx import save, to_bytes
from sardonyx.ir.text import parse_model
from sardonyx.session.draw.feeds import random_feeds
from sardonyx.session.inference_session import InferenceSession
from sardonyx.session.options import SessionOptions

EMBEDDED = (
    "graph(ids: int64[b, s], attention_mask: int64[b, s], scale: float[b, 1]) -> (y: float[b, s]) {\n"
    "t: float[3] = [1, 2, 3]\ne = Gather(t, ids)\nm = Cast(attention_mask) {to = 1}\nz = Mul(e, m)\ny = Mul(z, scale)\n}"
)


def test_a_model_runs_on_what_is_drawn_for_it() -> None:
    """Ids are rows of the table, a mask is 1, floats are normal."""
    parsed = model(EMBEDDED)
    feed = random_feeds(parsed, dims={"b": 50, "s": 7}, seed=3)
    assert feed["ids"].shape == (50, 7)
    assert sorted(set(feed["ids"].ravel().tolist())) == [0, 1, 2]
    assert feed["attention_mask"].min() == 1
    assert feed["scale"].min() < 0 < feed["scale"].max()
    assert InferenceSession(to_bytes(parsed)).run(None, feed)[0].shape == (50, 7)


def test_one_seed_gives_one_feed() -> None:
    """Another gives another."""
    first, same, other = (random_feeds(model(EMBEDDED), seed=seed)["scale"] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)


def test_ranges_hold_on_request() -> None:
    """For floats and integers, ends included."""
    feed = random_feeds(model(EMBEDDED), dims={"b": 200}, ranges={"scale": (3.0, 4.0), "ids": (1, 2)})
    assert (feed["scale"].min() >= 3, feed["scale"].max() <= 4) == (True, True)
    assert set(feed["ids"].ravel().tolist()) == {1, 2}


def test_what_is_given_fixes_the_dimensions_of_others() -> None:
    """The sizes of a fed array are those of its symbols."""
    feed = random_feeds(model(EMBEDDED), given={"ids": np.zeros((4, 9), np.int64)})
    assert feed["attention_mask"].shape == (4, 9)


@pytest.mark.parametrize("of", ["path", "bytes", "session of a path", "session of bytes"])
def test_a_session_or_what_it_is_made_of_will_do(of: str, tmp_path: Path) -> None:
    """A session's overrides of dimensions count."""
    save(model(EMBEDDED), tmp_path / "m.onnx")
    source = tmp_path / "m.onnx" if "path" in of else (tmp_path / "m.onnx").read_bytes()
    options = SessionOptions()
    options.add_free_dimension_override_by_name("s", 5)
    given = InferenceSession(source, options) if "session" in of else source
    assert random_feeds(given)["ids"].shape == (1, 5 if "session" in of else 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dims": {"batch": 2}}, "no symbolic dimension 'batch'; there are b, s"),
        ({"dims": {"ids:5": 2}}, "no symbolic dimension 'ids:5'; did you mean 'ids:"),
        ({"ranges": {"scal": (0, 1)}}, "no input 'scal'; did you mean 'scale'?"),
        ({"given": {"id": 1}}, "no input 'id'; did you mean 'ids'?"),
        ({"ranges": {"scale": (1, 0)}}, "the range of input 'scale' is empty: 1 is greater than 0"),
    ],
)
def test_names_that_the_model_lacks_are_errors(arguments: dict[str, dict[str, object]], message: str) -> None:
    """With the nearest that it has."""
    with pytest.raises(InvalidArgument, match=message.replace("?", r"\?")):
        random_feeds(model(EMBEDDED), **arguments)  # type: ignore[arg-type]  # some are wrong on purpose


def test_a_dimension_without_a_name_is_given_by_its_place() -> None:
    """INPUT:AXIS."""
    parsed = model("graph(x: float[?, 3]) -> (y: float[?, 3]) {\ny = Relu(x)\n}")
    assert random_feeds(parsed, dims={"x:0": 6})["x"].shape == (6, 3)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("uint8[2]", "uint8"),
        ("int8[2]", "int8"),
        ("bool[2]", "bool"),
        ("string[2]", "object"),
        ("float16[2]", "float16"),
        ("bfloat16[2]", "bfloat16"),
        ("complex64[2]", "complex64"),
        ("double[]", "float64"),
    ],
)
def test_every_element_type_is_drawn(kind: str, expected: str) -> None:
    """In the declared shape."""
    feed = random_feeds(model(f"graph(x: {kind}) -> (y: {kind}) {{\ny = Identity(x)\n}}"))
    assert feed["x"].dtype.name == expected
    assert feed["x"].shape == ((2,) if "2" in kind.split("[")[1] else ())


def test_maps_get_the_keys_of_their_vocabulary() -> None:
    """As DictVectorizer lists them."""
    text = (
        "ir_version 10\nopset 21\nopset ai.onnx.ml 4\ngraph main(x: map(string, float[])) -> (y: float[1, 2]) {\n"
        'y = ai.onnx.ml.DictVectorizer(x) {string_vocabulary = ["a", "b"]}\n}'
    )
    parsed = parse_model(text)
    feed = random_feeds(parsed)
    assert list(feed["x"]) == ["a", "b"]
    assert InferenceSession(to_bytes(parsed)).run(None, feed)[0].shape == (1, 2)


def test_what_takes_more_memory_than_the_limit_is_not_drawn() -> None:
    """Also where the number of elements is beyond what NumPy counts to."""
    session = InferenceSession(to_bytes(model("graph(x: float[n, 3]) -> (y: float[n, 3]) {\ny = Relu(x)\n}")))
    for size in (10**11, 10**19):
        with pytest.raises(
            InvalidArgument, match=f"input 'x' of shape .{size}, 3. takes {24 * size} bytes .* give smaller dimensions"
        ):
            random_feeds(session, dims={"n": size})
