"""Operators of com.microsoft on tokens and characters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.cancelling import checks_of
from support.peer import run_peer
from support.run_op import run_op
from support.session_models import session

from sardonyx.errors import InvalidArgument

RNG = np.random.default_rng(0)


def run(op_type: str, *inputs: Any, **attributes: Any) -> Any:
    """Run an operator of com.microsoft."""
    return run_op(op_type, *inputs, domain="com.microsoft", **attributes)


def test_an_echo_returns_its_input() -> None:
    """SampleOp."""
    assert run("SampleOp", np.array([1.5], np.float32)).tolist() == [1.5]


@pytest.mark.parametrize(
    ("text", "seed", "expected"),
    [("", 0, 0), ("", 1, 0x514E28B7), ("test", 0, 0xBA6BD213), ("Hello, world!", 0, 0xC0363E43), ("aaa", 0x9747B28C, 0x283E0130)],
)
def test_hashes_of_text_are_the_published_ones(text: str, seed: int, expected: int) -> None:
    """Source: test vectors of MurmurHash3_x86_32."""
    assert run("MurmurHash3", np.array([text], dtype=object), seed=seed).tolist() == [expected]


def test_text_is_hashed_in_a_model() -> None:
    """Though no type is written down for the input."""
    model = "graph(x: string[n]) -> (y: uint32[n]) { y = com.microsoft.MurmurHash3(x) }"
    assert session(model).run(None, {"x": np.array(["test"], object)})[0].tolist() == [0xBA6BD213]


@pytest.mark.parametrize("dtype", [np.int32, np.uint64, np.float32, np.float64])
def test_numbers_are_hashed_by_their_bytes(dtype: type) -> None:
    """Signed where they need not be positive."""
    x = RNG.integers(0, 100, (2, 3)).astype(dtype)
    expected = run("MurmurHash3", np.array([item.tobytes().decode("latin-1") for item in x.ravel()], dtype=object))
    found = run("MurmurHash3", x)
    if all(byte < 128 for byte in x.tobytes()):
        np.testing.assert_array_equal(found.ravel(), expected)
    np.testing.assert_array_equal(run("MurmurHash3", x, positive=0), found.view(np.int32))
    np.testing.assert_array_equal(run_peer("MurmurHash3", x)[0], found)


@pytest.mark.parametrize(
    ("source", "current", "start", "predicted", "tokens", "place"),
    [
        ([1, 5, 3, 4, 2], [1, 3], 2, [3, 4, 9, 7], [1, 3, 3, 4, 9], -1),
        ([1, 5, 3, 4, 2], [1, 3], 2, [3, 4, 2, 5], [1, 3, 3, 4, 2, 5], 2),
        ([1, 5, 3, 4, 2], [1, 3], 5, [4], [1, 3, 4], 4),
        ([1, 5, 1, 4, 2], [5, 1], 0, None, [5, 1], 3),
        ([1, 5, 1, 4, 2], [7], 0, None, [7], -1),
    ],
)
def test_predicted_tokens_are_taken_up_to_the_bifurcation(
    source: list[int], current: list[int], start: int, predicted: list[int] | None, tokens: list[int], place: int
) -> None:
    """And the end of the result is looked up in the source."""
    inputs = [np.array(source), np.array(current), np.array([start]), None if predicted is None else np.array(predicted)]
    found, match = run("BifurcationDetector", *inputs, outputs=2)
    assert (found.tolist(), int(match)) == (tokens, place)


@pytest.mark.parametrize(("start", "predicted"), [(-1, [1, 2]), (2, [1, 2]), (0, [1])])
def test_predictions_fit_the_rest_of_the_source(start: int, predicted: list[int]) -> None:
    """One more than is left of it."""
    with pytest.raises(InvalidArgument):
        run("BifurcationDetector", np.array([1, 2]), np.array([1]), np.array(start), np.array(predicted), outputs=2)


@pytest.mark.parametrize("window", [1, 3, 5])
def test_words_are_embedded_as_by_the_peer(window: int) -> None:
    """Words shorter than the window too."""
    sequence = RNG.integers(1, 9, (4, 8)).astype(np.int32)
    for row, length in enumerate((8, 3, 1, 5)):
        sequence[row, length:] = 0
    w, c = RNG.standard_normal((4, 1, window, 2)).astype(np.float32), RNG.standard_normal((9, 2)).astype(np.float32)
    b = RNG.standard_normal(4).astype(np.float32)
    (expected,) = run_peer("WordConvEmbedding", sequence, w, b, c)
    np.testing.assert_allclose(run("WordConvEmbedding", sequence, w, b, c), expected, rtol=1e-4, atol=1e-6)


def test_characters_are_rows_of_the_table() -> None:
    """Others are refused; so are attributes that say otherwise than W."""
    w, b, c = np.zeros((4, 1, 2, 2), np.float32), np.zeros(4, np.float32), np.zeros((3, 2), np.float32)
    with pytest.raises(InvalidArgument, match="C has 3 rows"):
        run("WordConvEmbedding", np.array([[1, 3]], np.int32), w, b, c)
    with pytest.raises(InvalidArgument, match="W makes them"):
        run("WordConvEmbedding", np.array([[1, 2]], np.int32), w, b, c, conv_window_size=3)


def test_many_strings_are_left_when_the_run_is_to_end() -> None:
    """It is asked for between some of them."""
    texts = np.array(["ab"] * 1000, object)
    assert checks_of(lambda: run_op("MurmurHash3", texts, domain="com.microsoft")) >= 10
