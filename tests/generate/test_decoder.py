"""Tests of decoders that are run token by token."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.decoders import POSITIONS, VOCABULARY, write_decoder

from sardonyx.errors import InvalidArgument
from sardonyx.generate.decoder import Decoder
from sardonyx.generate.loading import load
from sardonyx.generate.signature import find_signature
from sardonyx.session.inference_session import InferenceSession

PROMPTS = [[1, 2, 3], [5, 6, 7, 8, 9, 10], [11]]


@pytest.fixture(params=["growing", "shared"])
def decoder(tmp_path: Path, request: pytest.FixtureRequest) -> Decoder:
    """Return a decoder with each kind of cache."""
    return load(write_decoder(tmp_path / "model.onnx", request.param)).decoder


@pytest.fixture
def plain(tmp_path: Path) -> Decoder:
    """Return a decoder of the same weights that reads whole rows in every run."""
    return load(write_decoder(tmp_path / "plain.onnx", "none")).decoder


def test_logits_of_a_padded_batch_are_those_of_whole_rows(decoder: Decoder, plain: Decoder) -> None:
    """Prompts of three lengths, read at once."""
    assert np.allclose(decoder.start(PROMPTS)[1], plain.start(PROMPTS)[1], atol=1e-5)


def test_steps_give_the_logits_of_whole_rows(decoder: Decoder, plain: Decoder) -> None:
    """Over enough steps that buffers are made anew."""
    states = [decoder.start(PROMPTS)[0], plain.start(PROMPTS)[0]]
    for token in range(50):
        one, other = (
            model.step(state, [token, token + 1, token + 2]) for model, state in zip((decoder, plain), states, strict=True)
        )
        assert np.allclose(one, other, atol=1e-5)


def test_several_tokens_are_read_at_once(decoder: Decoder) -> None:
    """The logits after each of them are those of single steps."""
    one, other = decoder.start([[1, 2]])[0], decoder.start([[1, 2]])[0]
    together = decoder.extend(one, [[3, 4, 5]])[0]
    assert np.allclose(together, [decoder.step(other, [token])[0].copy() for token in (3, 4, 5)], atol=1e-5)


def test_an_empty_prompt_is_an_error(decoder: Decoder) -> None:
    """It says which row, and what a decoder needs."""
    with pytest.raises(InvalidArgument, match="row 1 is empty"):
        decoder.start([[1], []])


def test_a_token_outside_the_vocabulary_is_an_error(decoder: Decoder) -> None:
    """It names the token and the range."""
    with pytest.raises(InvalidArgument, match=f"token {VOCABULARY}, and the model a vocabulary of {VOCABULARY}"):
        decoder.start([[VOCABULARY]])


def test_a_prompt_beyond_the_models_range_is_an_error(tmp_path: Path) -> None:
    """It says how many tokens the model reads."""
    session = InferenceSession(write_decoder(tmp_path / "model.onnx"))
    decoder = Decoder(session, find_signature(session), longest=POSITIONS)
    with pytest.raises(InvalidArgument, match=f"reads {POSITIONS} at most"):
        decoder.start([[1] * (POSITIONS + 1)])


def test_logits_of_steps_lie_in_one_buffer(decoder: Decoder) -> None:
    """No step allocates them anew."""
    state, _ = decoder.start([[1]])
    assert np.shares_memory(decoder.step(state, [2]), decoder.step(state, [3]))
