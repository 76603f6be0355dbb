"""Tests of beam search."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from support.decoders import write_decoder, write_tokenizer

from sardonyx.errors import InvalidArgument, RuntimeException
from sardonyx.generate.generator import Generator
from sardonyx.generate.loading import load
from sardonyx.generate.text import Tokenizer


@pytest.fixture(params=["growing", "shared", "none"])
def model(tmp_path: Path, request: pytest.FixtureRequest) -> Generator:
    """Return a generator of each kind of decoder."""
    return load(write_decoder(tmp_path / "model.onnx", request.param))


def _log_probability(model: Generator, prompt: list[int], ids: tuple[int, ...]) -> float:
    total = 0.0
    for place, token in enumerate(ids):
        _, logits = model.decoder.start([[*prompt, *ids[:place]]])
        shifted = logits[0].astype(np.float64) - logits[0].max()
        total += shifted[token] - np.log(np.exp(shifted).sum())
    return total


def test_enough_beams_find_the_best_of_all_sequences(model: Generator) -> None:
    """Of 4 tokens, three steps with 16 beams leave nothing out."""
    kept, prompt = (10, 20, 30, 40), [1, 2]
    others = tuple(token for token in range(260) if token not in kept)
    found = model.generate(prompt, num_beams=16, max_new_tokens=3, suppress_tokens=others, num_return_sequences=3)
    best = sorted(product(kept, repeat=3), key=lambda ids: -_log_probability(model, prompt, ids))[:3]
    assert [tuple(result.ids) for result in found] == best
    assert found[0].score == pytest.approx(_log_probability(model, prompt, best[0]) / 3, abs=1e-4)


def test_a_length_penalty_prefers_longer_or_shorter_results(model: Generator) -> None:
    """With ends that are about as likely as other tokens."""
    settings = {"num_beams": 4, "max_new_tokens": 12, "eos_token_id": list(range(0, 260, 2))}
    lengths = [len(model.generate([1, 2], length_penalty=penalty, **settings)[0].ids) for penalty in (-3.0, 9.0)]
    assert lengths[0] < lengths[1]


def test_results_of_a_batch_are_those_of_each_prompt(model: Generator) -> None:
    """In the order of the prompts, as many as are asked for."""
    settings = {"num_beams": 3, "num_return_sequences": 2, "max_new_tokens": 6}
    alone = [result for prompt in ([1, 2], [3]) for result in model.generate(prompt, **settings)]
    assert model.generate([[1, 2], [3]], **settings) == alone


def test_beams_are_drawn_by_a_seed(model: Generator) -> None:
    """Equal seeds give equal beams."""
    settings = {"num_beams": 3, "temperature": 4.0, "max_new_tokens": 8}
    assert model.generate([1], seed=1, **settings) == model.generate([1], seed=1, **settings)
    assert model.generate([1], seed=1, **settings) != model.generate([1], seed=2, **settings)


def test_beams_cannot_be_streamed(model: Generator) -> None:
    """They are known at their end."""
    with pytest.raises(InvalidArgument, match="num_beams=1"):
        model.stream([1], num_beams=2)


def test_settings_that_leave_no_token_are_an_error(model: Generator) -> None:
    """As without beams."""
    with pytest.raises(RuntimeException, match="every token is excluded"):
        model.generate([1], num_beams=2, suppress_tokens=list(range(260)))


def test_the_text_of_a_beam_ends_before_the_token_that_ends_it(tmp_path: Path) -> None:
    """As that of a row without beams, be the token a special one or not."""
    pytest.importorskip("tokenizers")
    write_tokenizer(tmp_path / "tokenizer.json")
    model = load(write_decoder(tmp_path / "model.onnx"))
    model.tokenizer = Tokenizer(tmp_path / "tokenizer.json")
    ends = list(range(256))
    (found,) = model.generate([1], num_beams=2, eos_token_id=ends, max_new_tokens=4)
    assert (found.reason, found.text) == ("stop", model.tokenizer.decode(found.ids[:-1]))
