"""Operators that are taken apart, in half types."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.elementwise.widen_half_types import WIDEN_HALF_TYPES


def text(call, kind="float16"):
    return f"""opset 21, com.microsoft 1
        graph(x: {kind}[n, 3, 5], z: {kind}[n, 3, 5], g: {kind}[n, 3, 1], b: {kind}[5]) -> (y) {{ y = {call} }}"""


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    "call",
    [
        "com.microsoft.GatedAdd(x, z, g)",
        "com.microsoft.ScaledSiLU(x) {alpha = 0.5}",
        "com.microsoft.BiasAdd(x, b, z)",
        "MeanVarianceNormalization(x) {axes = [1]}",
    ],
)
def test_inputs_and_results_are_cast(call, kind):
    """The operator is computed in float32; float16 gives the same numbers but for its rounding."""
    compare = kind == "float16"
    model, fired = apply_rule(WIDEN_HALF_TYPES, text(call, kind), symbols={"n": 4}, rtol=2**-9, compare=compare)
    assert fired == 1
    made = operators(model)
    assert made[0] == made[-1] == "Cast"
    assert made.count("Cast") == len(made) - 1


@pytest.mark.parametrize("kind", ["float", "double"])
def test_other_types_are_left_alone(kind):
    """They are taken apart as they are."""
    assert "no half type" in declines(WIDEN_HALF_TYPES, text("MeanVarianceNormalization(x) {axes = [1]}", kind))
