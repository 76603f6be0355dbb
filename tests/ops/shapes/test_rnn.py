"""Facts about recurrent networks."""

from __future__ import annotations

import pytest
from support.infer_op import A, B, error_of, floats, infer_op


@pytest.mark.parametrize(("op_type", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_states_have_directions(op_type: str, gates: int) -> None:
    """Every state (T, directions, N, H), the last without T; LSTM has a cell state too."""
    weights = floats(2, gates * 16, 8), floats(2, gates * 16, 16)
    facts = infer_op(
        op_type, floats(A, B, 8), *weights, outputs=3 if op_type == "LSTM" else 2, direction="bidirectional", hidden_size=16
    )
    assert [fact.shape for fact in facts[:2]] == [(A, 2, B, 16), (2, B, 16)]
    if op_type == "LSTM":
        assert facts[2].shape == (2, B, 16)


def test_layout_1_puts_the_batch_first() -> None:
    """The second layout is batch-wise everywhere."""
    facts = infer_op("GRU", floats(B, A, 8), floats(1, 48, 8), floats(1, 48, 16), outputs=2, layout=1)
    assert [fact.shape for fact in facts] == [(B, A, 1, 16), (B, 1, 16)]


def test_input_has_rank_3() -> None:
    """Another rank is refused."""
    assert "X has shape [5, 8]" in error_of("LSTM", floats(5, 8), floats(1, 64, 8), floats(1, 64, 16))


@pytest.mark.parametrize("op_type", ["RNN", "GRU", "LSTM"])
def test_a_hidden_size_that_is_not_that_of_R_is_refused(op_type: str) -> None:
    """The message holds both."""
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op_type]
    message = error_of(op_type, floats(A, B, 8), floats(1, gates * 16, 8), floats(1, gates * 16, 16), hidden_size=15)
    assert "hidden_size is 15, but R has shape" in message


def test_weights_that_do_not_fit_are_refused() -> None:
    """Rows of W and R by gates and direction, columns of W by X."""
    good = floats(A, B, 8), floats(1, 64, 8), floats(1, 64, 16)
    assert "W has shape [1, 48, 8]" in error_of("LSTM", good[0], floats(1, 48, 8), good[2])
    assert "R has shape [1, 48, 16]" in error_of("LSTM", good[0], good[1], floats(1, 48, 16))
    assert "W has shape [1, 64, 9]" in error_of("LSTM", good[0], floats(1, 64, 9), good[2])
    assert "make it [2, 64, 8]" in error_of("LSTM", *good, direction="bidirectional")


def test_attributes_that_are_none_are_refused() -> None:
    """When the model is read, not when it runs."""
    assert "direction is 'sideways'" in error_of("GRU", floats(A, B, 8), floats(1, 48, 8), floats(1, 48, 16), direction="sideways")
