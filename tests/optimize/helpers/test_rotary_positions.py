"""Angles that are looked up by positions."""

import numpy as np
import pytest
from support.evaluate import evaluate_model
from support.optimizing import model_of

from sardonyx.errors import InvalidArgument
from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.rewrite import RuleSet, rewrite
from sardonyx.optimize.rules.attention.expand_rotary_embedding import EXPAND_ROTARY_POSITIONS

TEXT = """opset 23 graph(x: float[1, 1, 1, 4], p: int64[1, 1]) -> (y) {
    c: float[3, 2] = ... 1 n: float[3, 2] = ... 2 y = RotaryEmbedding(x, c, n, p) }"""


@pytest.mark.parametrize("position", [-(2**63), -1, 3, 2**63 - 1])
def test_positions_outside_the_table_are_errors(position):
    """At both ends, up to the ends of the type."""
    model = model_of(TEXT)
    INFER_SHAPES.run(model, Context())
    assert rewrite(model, RuleSet([EXPAND_ROTARY_POSITIONS]))["expand_rotary_positions"] == 1
    with pytest.raises(InvalidArgument):
        evaluate_model(model, {"x": np.ones((1, 1, 1, 4), np.float32), "p": np.array([[position]])})
