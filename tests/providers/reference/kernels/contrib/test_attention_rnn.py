"""AttnLSTM."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.peer import run_peer
from support.run_op import run_op

from sardonyx.errors import InvalidArgument

T, N, FEATURES, H, S, M, A = 5, 3, 4, 6, 7, 5, 4


def _inputs(directions: int, layer: bool, lengths: bool) -> list[Any]:
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> Any:
        return (rng.standard_normal(shape) * 0.5).astype(np.float32)

    D, state = directions, 3 if layer else M
    return [
        draw(T, N, FEATURES),
        draw(D, 4 * H, FEATURES + state),
        draw(D, 4 * H, H),
        draw(D, 8 * H),
        np.array([5, 2, 3], np.int32) if lengths else None,
        draw(D, N, H),
        draw(D, N, H),
        draw(D, 3 * H),
        draw(D, H, A),
        draw(D, M, A),
        draw(D, A),
        draw(N, S, M),
        np.array([7, 1, 4], np.int32) if lengths else None,
        draw(D, H + M, state) if layer else None,
    ]


@pytest.mark.parametrize(("direction", "directions"), [("forward", 1), ("reverse", 1), ("bidirectional", 2)])
@pytest.mark.parametrize("layer", [True, False])
@pytest.mark.parametrize("lengths", [True, False])
def test_it_computes_what_the_peer_does(direction: str, directions: int, layer: bool, lengths: bool) -> None:
    """Every state, the last ones, and sequences that end early."""
    inputs = _inputs(directions, layer, lengths)
    expected = run_peer("AttnLSTM", *inputs, outputs=3, direction=direction, hidden_size=H)
    found = run_op("AttnLSTM", *inputs, domain="com.microsoft", outputs=3, direction=direction, hidden_size=H)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("place", "message"),
    [(1, "W has shape"), (8, "MW has shape|QW has shape"), (13, "AW has shape|W has shape"), (12, "memory_seq_lens")],
)
def test_shapes_must_fit(place: int, message: str) -> None:
    """The message names the input."""
    inputs = _inputs(1, True, True)
    inputs[place] = inputs[place][..., :-1]
    with pytest.raises(InvalidArgument, match=message):
        run_op("AttnLSTM", *inputs, domain="com.microsoft", outputs=3)


def test_lengths_lie_within_the_steps() -> None:
    """Others are refused."""
    inputs = _inputs(1, True, True)
    inputs[4] = np.array([6, 1, 1], np.int32)
    with pytest.raises(InvalidArgument, match="between 0 and 5"):
        run_op("AttnLSTM", *inputs, domain="com.microsoft", outputs=3)
