"""Tests of which models share past and present."""

from __future__ import annotations

from pathlib import Path

from support.decoders import write_decoder

from sardonyx.generate.sharing import can_share
from sardonyx.generate.signature import find_signature
from sardonyx.session.inference_session import InferenceSession


def _shares(path: Path) -> bool:
    return can_share(path, find_signature(InferenceSession(path)))


def test_caches_of_group_query_attention_are_shared(tmp_path: Path) -> None:
    """It is given how many tokens of each row there are."""
    assert _shares(write_decoder(tmp_path / "model.onnx", "shared"))


def test_concatenated_caches_are_not(tmp_path: Path) -> None:
    """Their length says how many tokens there are."""
    assert not _shares(write_decoder(tmp_path / "model.onnx", "growing"))


def test_a_model_without_caches_shares_none(tmp_path: Path) -> None:
    """There is nothing to share."""
    assert not _shares(write_decoder(tmp_path / "model.onnx", "none"))
