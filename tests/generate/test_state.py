"""Tests of what a decoder has read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.decoders import write_decoder

from sardonyx.errors import InvalidArgument
from sardonyx.generate.decoder import Decoder
from sardonyx.generate.loading import load


@pytest.fixture(params=["growing", "shared", "none"])
def decoder(tmp_path: Path, request: pytest.FixtureRequest) -> Decoder:
    """Return a decoder of each kind."""
    return load(write_decoder(tmp_path / "model.onnx", request.param)).decoder


def test_a_selected_row_goes_on_as_it_would_alone(decoder: Decoder) -> None:
    """Rows that leave take their padding with them."""
    state, _ = decoder.start([[1, 2, 3, 4, 5], [6, 7]])
    state.select([1])
    alone, _ = decoder.start([[6, 7]])
    assert np.allclose(decoder.step(state, [8]), decoder.step(alone, [8]), atol=1e-5)


def test_a_cut_state_goes_on_as_the_shorter_one(decoder: Decoder) -> None:
    """What was read after the cut is forgotten."""
    state, _ = decoder.start([[1, 2, 3, 4, 5]])
    state.cut(2)
    alone, _ = decoder.start([[1, 2]])
    assert np.allclose(decoder.step(state, [8]), decoder.step(alone, [8]), atol=1e-5)


def test_joined_states_go_on_as_each_would(decoder: Decoder) -> None:
    """Rows of different lengths, read apart, share a batch."""
    parts = [decoder.start([row])[0] for row in ([1, 2, 3, 4], [5], [6, 7])]
    joined = parts[0].joined(parts[1:])
    together = decoder.step(joined, [8, 9, 10]).copy()
    apart = np.concatenate([decoder.step(part, [token]).copy() for part, token in zip(parts, [8, 9, 10], strict=True)])
    assert np.allclose(together, apart, atol=1e-5)


def test_a_copy_is_not_changed_by_what_the_original_reads(decoder: Decoder) -> None:
    """It has memory of its own."""
    state, _ = decoder.start([[1, 2]])
    copy = state.copy()
    decoder.step(state, [3])
    decoder.step(state, [4])
    other, _ = decoder.start([[1, 2]])
    assert np.allclose(decoder.step(copy, [8]), decoder.step(other, [8]), atol=1e-5)


def test_only_one_row_can_be_cut(decoder: Decoder) -> None:
    """Rows of a batch share their columns."""
    state, _ = decoder.start([[1, 2], [3, 4]])
    with pytest.raises(InvalidArgument, match="has 2"):
        state.cut(1)
