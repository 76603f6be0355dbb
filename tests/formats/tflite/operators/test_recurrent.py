"""Recurrent cells of TensorFlow Lite."""

from __future__ import annotations

import numpy as np
import pytest
from support.flat_models import Sketch

import sardonyx
from sardonyx import errors

RNG = np.random.default_rng(0)


def test_an_rnn_keeps_its_state() -> None:
    """The second run goes on where the first ended."""
    w, r, b = (RNG.normal(size=shape).astype(np.float32) for shape in ((3, 2), (3, 3), (3,)))
    sketch = Sketch()
    parts = [sketch.constant(part) for part in (w, r, b)]
    made = sketch.tensor((1, 3))
    sketch.operator(
        "RNN",
        [sketch.input((1, 2)), *parts, sketch.tensor((1, 3), is_variable=True)],
        [made],
        ("RNNOptions", {"fused_activation_function": "TANH"}),
    )
    session = sardonyx.InferenceSession(sketch.model([made]))
    state = np.zeros((1, 3))
    for _ in range(3):
        x = RNG.normal(size=(1, 2)).astype(np.float32)
        state = np.tanh(x @ w.T + state @ r.T + b)
        np.testing.assert_allclose(session.run(None, {session.get_inputs()[0].name: x})[0], state, atol=1e-5)


def test_svdf_forgets_after_its_memory() -> None:
    """A unit of one filter, whose time weights are all 1, sums the last two features."""
    sketch = Sketch()
    parts = [sketch.constant(np.ones(shape, np.float32)) for shape in ((1, 1), (1, 2))]
    made = sketch.tensor((1, 1))
    sketch.operator(
        "SVDF", [sketch.input((1, 1)), *parts, -1, sketch.tensor((1, 2), is_variable=True)], [made], ("SVDFOptions", {"rank": 1})
    )
    session = sardonyx.InferenceSession(sketch.model([made]))
    name = session.get_inputs()[0].name
    assert [session.run(None, {name: np.array([[x]], np.float32)})[0].item() for x in (1, 2, 4, 8)] == [1, 3, 6, 12]


def test_a_gate_without_weights_is_refused() -> None:
    """But that of the input, which may share those of the forget gate."""
    sketch = Sketch()
    weights = [sketch.constant(np.ones((2, 2), np.float32)) for _ in range(8)]
    weights[2] = -1
    state = [sketch.tensor((1, 2), is_variable=True) for _ in range(2)]
    made = sketch.tensor((1, 2))
    biases = [sketch.constant(np.zeros(2, np.float32)) for _ in range(4)]
    inputs = [sketch.input((1, 2)), *weights, -1, -1, -1, *biases, -1, -1, *state]
    sketch.operator("LSTM", inputs, [made], ("LSTMOptions", {"fused_activation_function": "TANH"}))
    with pytest.raises(errors.InvalidFlatBuffer, match="a gate has no weights"):
        sardonyx.InferenceSession(sketch.model([made]))


def test_weights_without_their_auxiliary_input_are_refused() -> None:
    """They would multiply nothing."""
    sketch = Sketch()
    cell = [sketch.constant(np.ones(shape, np.float32)) for shape in ((3, 2), (3, 3), (3,))]
    states = [sketch.tensor((1, 3), is_variable=True) for _ in range(2)]
    more = [sketch.constant(np.ones((3, 4), np.float32)) for _ in range(2)]
    made = [sketch.tensor((1, 5, 3)) for _ in range(2)]
    inputs = [sketch.input((1, 5, 2)), *cell, states[0], *cell, states[1], -1, *more]
    options = ("BidirectionalSequenceRNNOptions", {"fused_activation_function": "TANH"})
    sketch.operator("BIDIRECTIONAL_SEQUENCE_RNN", inputs, made, options)
    with pytest.raises(errors.InvalidFlatBuffer, match="weights of an auxiliary input, and that is left out"):
        sardonyx.InferenceSession(sketch.model(made))
