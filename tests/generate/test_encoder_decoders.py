"""Tests of encoders with decoders."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.encoder_decoders import START, expected_tokens, write_encoder_decoder

from sardonyx.errors import InvalidArgument
from sardonyx.generate.generator import Generator
from sardonyx.generate.loading import load

PROMPTS = [[5, 6, 7], [8, 9, 10]]


@pytest.fixture(params=[False, True], ids=["two files", "merged"])
def model(tmp_path: Path, request: pytest.FixtureRequest) -> Generator:
    """Return a model with each kind of decoder."""
    return load(write_encoder_decoder(tmp_path / "model", merged=request.param))


def test_tokens_are_those_of_the_whole_computation(model: Generator) -> None:
    """The encoder's keys are computed once, by the first run."""
    assert [result.ids for result in model.generate(PROMPTS, max_new_tokens=9)] == [expected_tokens(ids, 9) for ids in PROMPTS]


def test_rows_that_end_take_the_encoders_states_with_them(model: Generator) -> None:
    """The other row goes on with its own."""
    first = expected_tokens(PROMPTS[0], 9)
    ends = next(token for token in first if token not in expected_tokens(PROMPTS[1], 9))
    found = model.generate(PROMPTS, max_new_tokens=9, eos_token_id=ends)
    assert (found[0].ids[-1], found[1].ids) == (ends, expected_tokens(PROMPTS[1], 9))


def test_beams_share_the_encoders_states(model: Generator) -> None:
    """Those of a batch are those of each prompt alone."""
    alone = [model.generate(ids, num_beams=3, max_new_tokens=5)[0] for ids in PROMPTS]
    assert model.generate(PROMPTS, num_beams=3, max_new_tokens=5) == alone


def test_the_decoder_begins_with_its_prompt(model: Generator) -> None:
    """Instead of with the token of the configuration."""
    found = model.generate(PROMPTS[0], decoder_prompt=[START], max_new_tokens=3)[0].ids
    assert found == expected_tokens(PROMPTS[0], 3)
    assert model.generate(PROMPTS[0], decoder_prompt=[START, found[0]], max_new_tokens=2)[0].ids == found[1:]


def test_a_decoder_without_its_first_run_is_an_error(tmp_path: Path) -> None:
    """It names the inputs that nothing computes."""
    folder = write_encoder_decoder(tmp_path / "model", merged=False)
    with pytest.raises(InvalidArgument, match=r"takes \['past_key_values_0_encoder_key'\]"):
        load(folder / "decoder_with_past_model.onnx")


def test_a_decoder_without_its_encoder_is_an_error(tmp_path: Path) -> None:
    """It says what is missing."""
    folder = write_encoder_decoder(tmp_path / "model", merged=True)
    with pytest.raises(InvalidArgument, match="there is no encoder"):
        load(folder / "decoder_model_merged.onnx").generate([1])
