"""Attention with former keys and values; that the numbers are the same the rules' tests show."""

import pytest
from support.optimizing import model_of, operators

from sardonyx.ops.views.attention import MicrosoftAttention
from sardonyx.optimize.helpers.attention_past import attend_with_past
from sardonyx.optimize.rule import Builder


@pytest.mark.parametrize("is_causal", [False, True])
def test_keys_and_values_are_split_and_joined(is_causal: bool) -> None:
    """The past is one tensor, and so is the present."""
    model = model_of("graph(x: float[2, 3, 24], p: float[2, 2, 2, 5, 4]) -> (y) { y = Neg(x) }")
    root = next(iter(model.graph))
    op = Builder(root, model.opset_imports, lambda name: name)
    projected, past = root.inputs[0], model.graph.inputs[1]
    y, present = attend_with_past(op, projected, 8, past, None, MicrosoftAttention(2, 2, None, is_causal, -1e4))
    assert operators(model).count("Attention") == 1
    assert (y.shape, present.shape) == ((2, 3, 8), (2, 2, 2, 8, 4))
