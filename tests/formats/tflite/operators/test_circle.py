"""What Circle adds to TensorFlow Lite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from formats.tflite.running import run
from support.flat_models import Sketch

import sardonyx
from sardonyx import errors
from sardonyx.dtypes import Array
from sardonyx.formats.flat.schema_circle import CIRCLE

RNG = np.random.default_rng(0)


def _drawn(*shape: int) -> Array:
    return RNG.normal(size=shape).astype(np.float32)


def _run(code: str, feed: Array, constants: Sequence[Array], shape: Sequence[int], options: tuple[str, Mapping[str, Any]]) -> Array:
    sketch = Sketch(CIRCLE)
    x = sketch.input(feed.shape, {"float32": "FLOAT32", "int32": "INT32"}[feed.dtype.name])
    made = sketch.tensor(shape)
    inputs = [x, *(sketch.constant(array) for array in constants)]
    sketch.operator(code, inputs[1:3] + inputs[:1] + inputs[3:] if code == "BCQ_GATHER" else inputs, [made], options)
    return run(sketch.model([made]), feed)[0]


def test_each_channel_of_an_image_is_normalized() -> None:
    """By its own mean and variance; one factor may serve all."""
    x, factor, shift = _drawn(2, 4, 5, 3), np.float32([2]), _drawn(3)
    found = _run("INSTANCE_NORM", x, [factor, shift], x.shape, ("InstanceNormOptions", {"epsilon": 1e-3}))
    mean, variance = x.mean((1, 2), keepdims=True), x.var((1, 2), keepdims=True)
    np.testing.assert_allclose(found, (x - mean) / np.sqrt(variance + 1e-3) * 2 + shift, atol=1e-5)


def test_rows_are_divided_by_their_root_mean_square() -> None:
    """And scaled."""
    x, factor = _drawn(2, 6), _drawn(6)
    found = _run("RMS_NORM", x, [factor], x.shape, ("RmsNormOptions", {"epsilon": 1e-5}))
    np.testing.assert_allclose(found, x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * factor, atol=1e-5)


@pytest.mark.parametrize("mode", ["GPT_NEOX", "GPT_J"])
def test_pairs_of_features_are_rotated(mode: str) -> None:
    """Halves of the features, or neighbours."""
    x, sines, cosines = _drawn(1, 2, 3, 4), _drawn(1, 1, 3, 4), _drawn(1, 1, 3, 4)
    found = _run("ROPE", x, [sines, cosines], x.shape, ("RoPEOptions", {"mode": mode}))
    order = [2, 3, 0, 1] if mode == "GPT_NEOX" else [1, 0, 3, 2]
    signs = np.array([-1, -1, 1, 1] if mode == "GPT_NEOX" else [-1, 1, -1, 1], np.float32)
    np.testing.assert_allclose(found, x * cosines + x[..., order] * signs * sines, atol=1e-5)


def test_binary_coded_weights_are_sums_of_scaled_signs() -> None:
    """Two rows of two signs each, of 3 elements."""
    scales, words = np.array([1, 2, 0.5, 0.25], np.float32), np.array([0b101, 0b010, 0b111, 0b000], np.int32)
    clusters = np.array([[2, 2]], np.int32)
    weights = np.array([[1.5, -0.5, 1.5], [-2.25, 1.75, -2.25]], np.float32)
    x = _drawn(3, 2)
    found = _run(
        "BCQ_FULLY_CONNECTED",
        x,
        [scales, words, np.zeros(2, np.float32), clusters],
        (2, 2),
        ("BCQFullyConnectedOptions", {"weights_hidden_size": 3}),
    )
    np.testing.assert_allclose(found, weights @ x, atol=1e-5)
    rows = _run(
        "BCQ_GATHER", np.array([1, 0], np.int32), [scales, words, clusters], (2, 3), ("BCQGatherOptions", {"input_hidden_size": 3})
    )
    np.testing.assert_allclose(rows, weights[::-1], atol=1e-6)


def test_clusters_that_do_not_fit_are_refused() -> None:
    """With what they need."""
    parts = [np.ones(3, np.float32), np.ones(4, np.int32), np.zeros(2, np.float32), np.array([[2, 2]], np.int32)]
    with pytest.raises(errors.InvalidFlatBuffer, match="need 4 scales and 4 words; there are 3 and 4"):
        _run("BCQ_FULLY_CONNECTED", _drawn(3, 2), parts, (2, 2), ("BCQFullyConnectedOptions", {"weights_hidden_size": 3}))


def test_a_gru_runs_over_time() -> None:
    """From the state that is given."""
    x, w, u, state = _drawn(4, 1, 3), _drawn(6, 2), _drawn(6, 3), _drawn(1, 2)
    inner, outer = _drawn(6), _drawn(6)
    found = _run("GRU", x, [w, inner, u, outer, state], (1, 2), ("GRUOptions", {"time_major": True}))
    for row in x:
        from_input, from_state = row @ u.T + outer, state @ w.T + inner
        z, r = (1 / (1 + np.exp(-(from_input + from_state)[:, part])) for part in (slice(0, 2), slice(2, 4)))
        state = z * state + (1 - z) * np.tanh(from_input[:, 4:] + r * from_state[:, 4:])
    np.testing.assert_allclose(found, state, atol=1e-5)


def _attention(heads: int, size: int, *, is_variable: bool, token: tuple[int, ...] = ()) -> bytes:
    """A model of one attention: inputs are the token, cosines, sines, mask, position, and caches unless these are variables."""
    sketch, width = Sketch(CIRCLE), heads * size
    x = sketch.input(token or (1, 1, width), name="x")
    weights = [sketch.constant(_WEIGHTS[:width, :width] + number) for number in range(4)]
    turns = [sketch.input((1, 1, size), name=name) for name in ("cos", "sin")]
    mask = sketch.input((1, 1, 1, 32), name="mask")
    add = sketch.tensor if is_variable else sketch.input
    fields = {"is_variable": True} if is_variable else {}
    caches = [add((1, 40, heads, size), name=name, **fields) for name in ("keys", "values")]
    position = sketch.input((1,), "INT64", name="position")
    y = sketch.tensor((1, 1, width), name="y")
    sketch.operator("ATTENTION", [x, *weights, *turns, mask, *caches, position], [y], ("AttentionOptions", {}))
    return sketch.model([y])


_WEIGHTS = _drawn(8, 8)


def _attended(tokens: Array, turns: Array, heads: int, size: int) -> Array:
    """What the last token gets, in float64."""
    queries, keys, values = (tokens @ (_WEIGHTS + number).T for number in range(3))
    queries, keys, values = (part.reshape(len(tokens), heads, size) for part in (queries, keys, values))

    def turned(rows: Array) -> Array:
        half = size // 2
        other = np.concatenate([-rows[..., half:], rows[..., :half]], -1)
        return rows * np.cos(turns)[:, None] + other * np.sin(turns)[:, None]

    scores = np.einsum("hd,thd->ht", turned(queries)[-1], turned(keys)) / np.sqrt(size)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    made = np.einsum("ht,thd->hd", weights / weights.sum(-1, keepdims=True), values)
    return made.reshape(-1) @ (_WEIGHTS + 3).T


@pytest.mark.parametrize("is_variable", [False, True])
def test_a_token_attends_to_those_before_it(is_variable: bool) -> None:
    """Caches are handed on by the caller, or kept as variables are."""
    session = sardonyx.InferenceSession(_attention(2, 4, is_variable=is_variable))
    tokens, turns = _drawn(5, 8), _drawn(5, 4)
    caches = {} if is_variable else {name: np.zeros((1, 40, 2, 4), np.float32) for name in ("keys", "values")}
    assert [item.name for item in session.get_outputs()] == ["y", *(f"{name}:next" for name in caches)]
    for position in range(5):
        mask = np.where(np.arange(32) <= position, 0, -np.inf).astype(np.float32).reshape(1, 1, 1, 32)
        turn = turns[position].reshape(1, 1, 4)
        feed = {"x": tokens[position].reshape(1, 1, 8), "cos": np.cos(turn), "sin": np.sin(turn), "mask": mask}
        found, *following = session.run(None, {**feed, **caches, "position": np.int64([position])})
        caches = dict(zip(caches, following, strict=True))
        seen = tokens[: position + 1].astype(np.float64), turns[: position + 1].astype(np.float64)
        np.testing.assert_allclose(found[0, 0], _attended(*seen, 2, 4), rtol=1e-4, atol=1e-4)


def test_attention_of_several_tokens_is_not_implemented() -> None:
    """As onert does not compute it either."""
    with pytest.raises(errors.NotImplemented, match="one token"):
        sardonyx.InferenceSession(_attention(2, 4, is_variable=False, token=(1, 2, 8)))


@pytest.mark.parametrize(("heads", "size"), [(8, 1), (1, 3)])
def test_heads_of_an_odd_size_are_refused(heads: int, size: int) -> None:
    """They have no halves."""
    with pytest.raises(errors.InvalidFlatBuffer, match="an even size"):
        sardonyx.InferenceSession(_attention(heads, size, is_variable=False))
