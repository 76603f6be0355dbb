"""Tests that tokens are those of the package transformers, with equal random weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sardonyx.generate.loading import load

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore")  # of the peers

SETTINGS = [
    {},
    {"repetition_penalty": 1.3},
    {"no_repeat_ngram_size": 2},
    {"min_new_tokens": 10},
    {"num_beams": 4},
    {"num_beams": 3, "length_penalty": 2.0},
    {"num_beams": 3, "length_penalty": -1.0, "early_stopping": True},
    {"num_beams": 4, "early_stopping": "never", "num_return_sequences": 3},
    {"num_beams": 2, "repetition_penalty": 1.5, "length_penalty": 0.0},
]
PROMPTS = [[7, 70, 170, 250, 5], [3, 4, 5, 6, 7, 8, 9, 10, 11], [290, 33], list(range(100, 117))]


def _ended(rows: list[list[int]], end: int) -> list[list[int]]:
    """Cut rows behind the token that ends them."""
    return [row[: row.index(end) + 1] if end in row else row for row in rows]


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_decoders_make_the_same_tokens(tmp_path: Path, name: str) -> None:
    """64 greedy ones, and of beams, of a batch of prompts of different lengths; logits agree to 1e-4."""
    import torch
    from support.transformers_models import END, export, make

    peer = make(name)
    model = load(export(name, peer, tmp_path / name))
    longest = max(map(len, PROMPTS))
    ids = torch.tensor([[0] * (longest - len(row)) + row for row in PROMPTS])
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in PROMPTS])
    with torch.no_grad():
        logits = peer(torch.tensor(PROMPTS[:1])).logits[0, -1].numpy()
        assert np.allclose(model.decoder.start(PROMPTS[:1])[1][0], logits, atol=1e-4)
        for settings in SETTINGS:
            more: dict[str, Any] = {"max_new_tokens": 64, "do_sample": False, **settings}
            expected = peer.generate(ids, attention_mask=mask, **more)[:, longest:].tolist()
            found = [result.ids for result in model.generate(PROMPTS, **more)]
            assert found == _ended(expected, END), settings


def test_t5_makes_the_same_tokens(tmp_path: Path) -> None:
    """Prompts of different lengths, which the encoder pads."""
    import torch
    from support.transformers_models import END, export, make

    peer = make("t5")
    model = load(export("t5", peer, tmp_path / "t5"))
    longest = max(map(len, PROMPTS))
    ids = torch.tensor([row + [0] * (longest - len(row)) for row in PROMPTS])
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in PROMPTS])
    with torch.no_grad():
        for settings in SETTINGS:
            more: dict[str, Any] = {"max_new_tokens": 64, "do_sample": False, **settings}
            expected = peer.generate(input_ids=ids, attention_mask=mask, **more)[:, 1:].tolist()
            assert [result.ids for result in model.generate(PROMPTS, **more)] == _ended(expected, END), settings


def test_whisper_makes_the_same_tokens(tmp_path: Path) -> None:
    """Of random features, after a prompt of the decoder; some tokens are never first."""
    import torch
    from support.transformers_models import END, export, make
    from transformers.generation import GenerationMixin

    peer = make("whisper")
    model = load(export("whisper", peer, tmp_path / "whisper"))
    features, start = torch.randn(2, 16, 60, generator=torch.Generator().manual_seed(1)), [3, 10, 20]
    with torch.no_grad():
        for settings in SETTINGS:
            more: dict[str, Any] = {"max_new_tokens": 64, "do_sample": False, **settings}
            expected = GenerationMixin.generate(peer, input_features=features, decoder_input_ids=torch.tensor([start] * 2), **more)
            found = [result.ids for result in model.generate(features.numpy(), decoder_prompt=start, **more)]
            assert found == _ended(expected[:, 3:].tolist(), END), settings
