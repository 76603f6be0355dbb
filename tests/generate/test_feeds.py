"""Tests of what runs are fed."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.generate.feeds import additive_mask, make_feeds, padded
from sardonyx.generate.signature import Signature
from sardonyx.generate.state import State
from sardonyx.session.values import NodeArg


def _signature(**roles: NodeArg) -> Signature:
    return Signature({"ids": NodeArg("ids", "tensor(int32)", ["b", "s"]), **roles}, ())


def _feed(value: NodeArg, role: str) -> np.ndarray:
    state = State([[], []], None)
    state.padding = np.array([0, 1])
    return make_feeds(_signature(**{role: value}), state, np.array([[1, 2], [0, 3]]), uses_cache=True)[value.name]


def test_tokens_have_the_type_of_the_input() -> None:
    """Models take int32 as well as int64."""
    assert _feed(NodeArg("m", "tensor(int64)", ["b", "t"]), "mask").tolist() == [[1, 1], [0, 1]]
    assert make_feeds(_signature(), State([[]], None), np.array([[1]]), uses_cache=False)["ids"].dtype == np.int32


def test_positions_begin_behind_the_padding() -> None:
    """A row that is padded on the left counts from its own first token."""
    assert _feed(NodeArg("p", "tensor(int64)", ["b", "s"]), "positions").tolist() == [[0, 1], [0, 0]]


def test_a_mask_of_four_dimensions_is_causal() -> None:
    """Booleans allow a key; every query sees at least itself, so that padding makes no NaN."""
    found = _feed(NodeArg("m", "tensor(bool)", ["b", 1, "s", "t"]), "mask")
    assert found[:, 0].astype(int).tolist() == [[[1, 0], [1, 1]], [[1, 0], [0, 1]]]


def test_a_mask_of_floats_is_added() -> None:
    """0 is seen, a large negative number is not."""
    assert additive_mask(np.array([True, False])).tolist() == [0, np.float32(-1e9)]


def test_a_mask_of_another_rank_is_an_error() -> None:
    """It names the input."""
    with pytest.raises(InvalidArgument, match="the mask 'm'"):
        _feed(NodeArg("m", "tensor(float)", ["b", "s", "t"]), "mask")


def test_rows_are_padded_on_either_side() -> None:
    """Shorter ones get the token that fills."""
    assert padded([[1], [2, 3]], 9, left=True).tolist() == [[9, 1], [2, 3]]
    assert padded([[1], [2, 3]], 9, left=False).tolist() == [[1, 9], [2, 3]]
