"""The attention core against the formula in float64, on shapes that take one block and many."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.scaled_dot_product import (
    ScoreOutput,
    Scoring,
    attend,
    block_outside_window,
    check_heads,
    softmax_in_place,
)


def draw(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def by_hand(q: Array, k: Array, v: Array, scoring: Scoring) -> tuple[Array, Array]:
    group = q.shape[1] // k.shape[1]
    k, v = (np.repeat(x.astype(np.float64), group, axis=1) for x in (k, v))
    scores = q.astype(np.float64) @ k.swapaxes(2, 3) * scoring.scale
    if scoring.softcap:
        scores = scoring.softcap * np.tanh(scores / scoring.softcap)
    scores = scores + (0 if scoring.bias is None else scoring.bias)
    scores = scores if scoring.blocked is None else np.where(scoring.blocked, -np.inf, scores)
    sink = np.full(q.shape[1], -np.inf) if scoring.sink is None else scoring.sink
    top = np.maximum(scores.max(-1, keepdims=True), sink[:, None, None])
    top[np.isneginf(top)] = 0
    weights = np.exp(scores - top)
    total = weights.sum(-1, keepdims=True) + np.exp(sink[:, None, None] - top)
    probabilities = weights / np.where(total == 0, 1, total)
    return (probabilities @ v).swapaxes(1, 2), probabilities


CASES = {
    "plain": Scoring(0.5),
    "softcap": Scoring(0.5, softcap=2.0),
    "bias per head": Scoring(0.5, bias=draw(4, 1, 1, seed=5)),
    "causal": Scoring(0.5, blocked=block_outside_window(3, 5, 7, -1, 0)),
    "sink": Scoring(0.5, sink=draw(4, seed=6)),
    "a row that sees nothing": Scoring(0.5, blocked=np.arange(5)[:, None] == 2),
}


@pytest.mark.parametrize("scoring", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("key_heads", [1, 2, 4])
def test_attend_follows_the_formula(scoring: Scoring, key_heads: int) -> None:
    """Query heads share key heads in contiguous groups."""
    q, k, v = draw(2, 4, 5, 6, seed=1), draw(2, key_heads, 7, 6, seed=2), draw(2, key_heads, 7, 3, seed=3)
    expected, _ = by_hand(q, k, v, scoring)
    result = attend(q, k, v, scoring)
    assert result.values.flags.c_contiguous
    np.testing.assert_allclose(result.values, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(2, 4, 300, 300), (1, 2, 2, 200_000), (3, 4, 1, 100_000)])
def test_blocks_make_the_same_values(shape: tuple[int, int, int, int]) -> None:
    """Scores that exceed one block are made over heads, or over queries, with the masks cut alike."""
    B, N, S, T = shape
    q, k, v = draw(B, N, S, 4, seed=1), draw(B, 2, T, 4, seed=2), draw(B, 2, T, 4, seed=3)
    scoring = Scoring(0.5, bias=draw(N, S, 1), blocked=block_outside_window(T - S, S, T, -1, 0))
    expected, _ = by_hand(q, k, v, scoring)
    np.testing.assert_allclose(attend(q, k, v, scoring).values, expected, rtol=1e-4, atol=1e-5)


def test_scores_are_handed_out_at_each_stage() -> None:
    """Raw, softcapped, biased and as probabilities."""
    q, k, v = draw(1, 2, 3, 4, seed=1), draw(1, 2, 5, 4, seed=2), draw(1, 2, 5, 4, seed=3)
    bias = draw(3, 5, seed=4)
    raw = q @ k.swapaxes(2, 3) * 0.5
    capped = 2 * np.tanh(raw / 2)
    _, probabilities = by_hand(q, k, v, Scoring(0.5, softcap=2, bias=bias))
    stages = {ScoreOutput.RAW: raw, ScoreOutput.SOFTCAPPED: capped, ScoreOutput.BIASED: capped + bias}
    for stage, expected in (stages | {ScoreOutput.PROBABILITIES: probabilities}).items():
        result = attend(q, k, v, Scoring(0.5, softcap=2, bias=bias, output=stage))
        assert result.scores is not None
        np.testing.assert_allclose(result.scores, expected, rtol=1e-5, atol=1e-6)


def test_views_serve_as_they_are() -> None:
    """Heads unpacked by a transpose give what their copies give."""
    packed = draw(2, 5, 4, 6)
    view = packed.swapaxes(1, 2)
    np.testing.assert_array_equal(
        attend(view, view, view, Scoring(1.0)).values, attend(*(view.copy() for _ in range(3)), Scoring(1.0)).values
    )


@pytest.mark.parametrize(("S", "T"), [(0, 3), (3, 0), (0, 0)])
def test_empty_sequences(S: int, T: int) -> None:
    """No query gives nothing; no key gives zeros."""
    values = attend(draw(1, 2, S, 4), draw(1, 2, T, 4), draw(1, 2, T, 4), Scoring(1.0)).values
    assert values.shape == (1, S, 2, 4)
    assert not values.any()


def test_a_mask_that_does_not_broadcast_is_an_error() -> None:
    """The message holds both shapes."""
    with pytest.raises(InvalidArgument, match=r"the mask has shape \(3, 4\); expected one that broadcasts to \(1, 2, 3, 5\)"):
        attend(draw(1, 2, 3, 4), draw(1, 2, 5, 4), draw(1, 2, 5, 4), Scoring(1.0, blocked=np.zeros((3, 4), bool)))


def test_block_outside_window_per_batch_element() -> None:
    """Each offset shifts the window of its own batch element."""
    seen = ~block_outside_window(np.array([0, 2]), 2, 4, 1, 0)
    np.testing.assert_array_equal(seen[0, 0], [[1, 0, 0, 0], [1, 1, 0, 0]])
    np.testing.assert_array_equal(seen[1, 0], [[0, 1, 1, 0], [0, 0, 1, 1]])


def test_softmax_in_place_leaves_no_nan_for_a_row_of_minus_infinity() -> None:
    """Such a row becomes zeros; others sum to 1."""
    scores = np.array([[-np.inf, -np.inf], [0, 0]], np.float32)
    softmax_in_place(scores)
    np.testing.assert_array_equal(scores, [[0, 0], [0.5, 0.5]])


@pytest.mark.parametrize(("query", "key"), [(3, 2), (0, 1), (2, 4)])
def test_check_heads(query: int, key: int) -> None:
    """Query heads must be a positive multiple of key heads."""
    with pytest.raises(InvalidArgument, match=f"{query} query heads and {key} key"):
        check_heads(query, key)


@pytest.mark.parametrize(
    ("shapes", "sink", "message"),
    [
        (((1, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4)), None, "do not fit"),
        (((1, 2, 3, 4), (1, 2, 5, 6), (1, 2, 5, 4)), None, "do not fit"),
        (((1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 6, 4)), None, "do not fit"),
        (((2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4)), None, "do not fit"),
        (((1, 3, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4)), None, "3 query heads"),
        (((1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4)), np.zeros(3), r"the sink has shape \(3,\)"),
    ],
)
def test_operands_must_fit(shapes: tuple[tuple[int, ...], ...], sink: Array | None, message: str) -> None:
    """The message holds all three shapes."""
    q, k, v = (draw(*shape) for shape in shapes)
    with pytest.raises(InvalidArgument, match=message):
        attend(q, k, v, Scoring(1.0, sink=sink))
