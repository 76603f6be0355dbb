"""Tests of encoders."""

from __future__ import annotations

import numpy as np
import pytest
from support.session_models import session

from sardonyx.errors import InvalidArgument
from sardonyx.generate.encoder import Encoder

TOKENS = "graph(input_ids: int64[b, s], attention_mask: int64[b, s]) -> (last_hidden_state: float[b, s, 1]) {\nm = Mul(input_ids, attention_mask)\nf = Cast(m) {to = 1}\naxis = Constant() {value_ints = [2]}\nlast_hidden_state = Unsqueeze(f, axis)\n}"
FEATURES = "graph(input_features: float[b, 2, t]) -> (last_hidden_state: float[b, t, 2]) {\nlast_hidden_state = Transpose(input_features) {perm = [0, 2, 1]}\n}"


def test_tokens_are_padded_behind() -> None:
    """With a mask that says so, for the decoder too."""
    found = Encoder(session(TOKENS)).encode_tokens([[1, 2], [3]])
    assert found["encoder_states"][:, :, 0].tolist() == [[1, 2], [3, 0]]
    assert found["encoder_mask"].tolist() == [[1, 1], [1, 0]]


def test_features_are_read() -> None:
    """In the type of the model."""
    encoder = Encoder(session(FEATURES))
    found = encoder.encode_features(np.ones((1, 2, 5)))
    assert (encoder.reads_tokens, encoder.feature_rank) == (False, 3)
    assert (found["encoder_states"].shape, found["encoder_mask"].shape) == ((1, 5, 2), (1, 5))


def test_an_empty_prompt_is_an_error() -> None:
    """An encoder needs a token."""
    with pytest.raises(InvalidArgument, match="a prompt is empty"):
        Encoder(session(TOKENS)).encode_tokens([[1], []])


def test_a_model_of_other_inputs_is_no_encoder() -> None:
    """It lists what there is."""
    with pytest.raises(InvalidArgument, match="the encoder takes"):
        Encoder(session("graph(strange: float[n]) -> (y: float[n]) {\ny = Relu(strange)\n}"))
