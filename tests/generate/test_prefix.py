"""Tests of prompts that are read once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.decoders import write_decoder

from sardonyx.generate.loading import load
from sardonyx.generate.prefix import PromptCache


@pytest.mark.parametrize("kind", ["growing", "shared"])
def test_a_common_beginning_is_read_once(tmp_path: Path, kind: str) -> None:
    """The logits are those of a prompt that is read from its beginning."""
    decoder, cache = load(write_decoder(tmp_path / "model.onnx", kind)).decoder, PromptCache(1 << 20)
    cache.keep(decoder.start([[1, 2, 3, 4, 5]])[0])
    for prompt, known in (([1, 2, 3, 9, 9], 3), ([1, 2, 3, 4, 5], 4), ([1, 2, 3, 4, 5, 6, 7], 5), ([8], 0)):
        before = cache.reused_tokens
        _, logits = cache.start(decoder, prompt)
        assert np.allclose(logits, decoder.start([prompt])[1], atol=1e-5)
        assert cache.reused_tokens - before == known


def test_a_generator_reuses_prompts(tmp_path: Path) -> None:
    """A second prompt that begins as the first one did gets the tokens that it would get without."""
    path = write_decoder(tmp_path / "model.onnx")
    model, other = load(path, prompt_cache_bytes=1 << 20), load(path)
    prompts = [[1, 2, 3, 4], [1, 2, 3, 4, 7]]
    assert [model.generate(ids, max_new_tokens=9) for ids in prompts] == [other.generate(ids, max_new_tokens=9) for ids in prompts]
    assert model.prompt_cache is not None
    assert model.prompt_cache.reused_tokens == 4


def test_the_memory_is_bounded(tmp_path: Path) -> None:
    """What was not used for longest is freed first."""
    decoder = load(write_decoder(tmp_path / "model.onnx")).decoder
    states = [decoder.start([[token, 2, 3]])[0] for token in (1, 4, 5)]
    cache = PromptCache(2 * states[0].size_bytes)
    for state in states:
        cache.keep(state)
    assert cache.size_bytes == 2 * states[0].size_bytes
    cache.start(decoder, [1, 2, 3])
    assert cache.reused_tokens == 0


def test_what_a_longer_row_has_is_not_kept_twice(tmp_path: Path) -> None:
    """A state replaces those that it extends."""
    decoder, cache = load(write_decoder(tmp_path / "model.onnx")).decoder, PromptCache(1 << 20)
    longer = decoder.start([[1, 2, 3]])[0]
    for state in (decoder.start([[1, 2]])[0], longer, decoder.start([[1]])[0]):
        cache.keep(state)
    assert cache.size_bytes == longer.size_bytes
    cache.clear()
    assert cache.size_bytes == 0
