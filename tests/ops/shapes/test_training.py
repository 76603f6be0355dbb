"""Facts about optimizers."""

from __future__ import annotations

import pytest
from support.infer_op import A, B, floats, infer_op, scalar

TRAINING = "ai.onnx.preview.training"


@pytest.mark.parametrize(("op_type", "states"), [("Adagrad", 1), ("Momentum", 1), ("Adam", 2)])
def test_outputs_are_as_the_parameters(op_type: str, states: int) -> None:
    """Parameters come first, then each kind of state."""
    tensors = [floats(A, 3), floats(B)] * (2 + states)
    facts = infer_op(op_type, floats(), scalar(1), *tensors, domain=TRAINING, outputs=2 * (1 + states))
    assert [fact.shape for fact in facts] == [(A, 3), (B,)] * (1 + states)


def test_gradients_are_as_what_they_derive_by() -> None:
    """A gradient for each of xs."""
    facts = infer_op("Gradient", floats(A), floats(B), floats(3), domain=TRAINING, outputs=2, xs=("x", "y"), zs=("z",), y="loss")
    assert [fact.shape for fact in facts] == [(A,), (B,)]
