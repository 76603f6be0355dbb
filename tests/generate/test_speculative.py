"""Tests of speculative decoding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.decoders import write_decoder

from sardonyx.errors import InvalidArgument
from sardonyx.generate.loading import load


@pytest.mark.parametrize("kind", ["growing", "shared"])
@pytest.mark.parametrize("seed", [0, 1])
def test_greedy_tokens_are_those_of_the_model_alone(tmp_path: Path, kind: str, seed: int) -> None:
    """With a draft that always agrees, and with one that never does."""
    model, draft = load(write_decoder(tmp_path / "model.onnx", kind)), load(write_decoder(tmp_path / "draft.onnx", kind, seed))
    for settings in ({"max_new_tokens": 20}, {"max_new_tokens": 1}, {"max_new_tokens": 12, "repetition_penalty": 1.3}):
        expected = model.generate([[1, 2, 3], [4]], **settings)
        assert model.generate([[1, 2, 3], [4]], draft=draft, draft_tokens=3, **settings) == expected


def test_drawn_tokens_have_the_distribution_of_the_model(tmp_path: Path) -> None:
    """The second tokens of 1,500 rows are as frequent as without a draft, within five standard deviations."""
    model, draft = load(write_decoder(tmp_path / "model.onnx")), load(write_decoder(tmp_path / "draft.onnx", seed=1))
    settings = {"max_new_tokens": 2, "do_sample": True, "top_k": 2}
    count = 1500
    found = [model.generate([7], draft=draft, seed=seed, **settings)[0].ids for seed in range(count)]
    expected = [result.ids for result in model.generate([[7]] * 4 * count, seed=5, **settings)]
    for pair in {tuple(ids) for ids in expected}:
        one, other = found.count(list(pair)) / count, expected.count(list(pair)) / (4 * count)
        assert abs(one - other) < 5 * np.sqrt(other * (1 - other) * 1.25 / count) + 1e-9


def test_a_draft_that_cannot_propose_is_an_error(tmp_path: Path) -> None:
    """Without caches, without tokens, and with beams."""
    model = load(write_decoder(tmp_path / "model.onnx"))
    plain = load(write_decoder(tmp_path / "plain.onnx", "none"))
    with pytest.raises(InvalidArgument, match="needs caches in both"):
        model.generate([1], draft=plain)
    with pytest.raises(InvalidArgument, match="draft_tokens"):
        model.generate([1], draft=model, draft_tokens=0)
    with pytest.raises(InvalidArgument, match="num_beams=1"):
        model.generate([1], draft=model, num_beams=2)


@pytest.mark.parametrize("prompt", [[1, 2], list(range(12)), list(range(13))])
def test_a_draft_of_a_shorter_range_ends_nothing(tmp_path: Path, prompt: list[int]) -> None:
    """Behind its range, be that before the prompt's end, the model makes its tokens alone."""
    model, draft = load(write_decoder(tmp_path / "model.onnx")), load(write_decoder(tmp_path / "draft.onnx"))
    draft.decoder.longest = 12
    expected = model.generate(prompt, max_new_tokens=20)
    assert model.generate(prompt, draft=draft, draft_tokens=3, max_new_tokens=20) == expected
