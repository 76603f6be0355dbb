"""Activations in uint8."""

import numpy as np
import pytest
from support.evaluate import evaluate_model
from support.optimizing import apply_rule, declines, model_of

from sardonyx.dtypes import DataType
from sardonyx.optimize.rules.quantize.quantize_as_uint8 import QUANTIZE_AS_UINT8


def text(zero="z: int8[] = -7", integers="QuantizeLinear(x, s, z)", floats="DequantizeLinear(q, s, z)", more="", result="y"):
    return f"graph(x: float[n, 3]) -> ({result}) {{ s: float[] = 0.05 t: float[] = 0.1 {zero} q = {integers} y = {floats} {more} }}"


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"zero": "z: int8[] = 127"},
        {"zero": "z: int8[] = -128"},
        {"integers": "QuantizeLinear(x, s) {output_dtype = 3}", "zero": "z: int8[] = 0"},
        {
            "zero": "z: int8[1] = [5] r: float[1] = [0.05]",
            "integers": "QuantizeLinear(x, r, z)",
            "floats": "DequantizeLinear(q, r, z)",
        },
    ],
)
def test_fires_with_equal_numbers(given):
    """All zero points, missing ones, and numbers beyond the range that int8 holds."""
    model, fired = apply_rule(QUANTIZE_AS_UINT8, text(**given), rtol=0)
    feeds = {"x": np.linspace(-20, 20, 999, dtype=np.float32).reshape(333, 3)}
    assert fired == 1
    assert next(iter(model.graph)).output.dtype is DataType.UINT8
    np.testing.assert_array_equal(*(evaluate_model(each, feeds)[0] for each in (model_of(text(**given)), model)))


def test_several_readers():
    """Each gets its own pair, which merging makes one."""
    _, fired = apply_rule(QUANTIZE_AS_UINT8, text(more="w = DequantizeLinear(q, s, z)", result="y, w"), rtol=0)
    assert fired == 2


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"zero": "z: uint8[] = 7"}, "expected int8"),
        ({"floats": "DequantizeLinear(q, t, z)"}, "scales differ"),
        ({"result": "y, q"}, "other users"),
        ({"more": "w = Neg(q)", "result": "y, w"}, "other users"),
        (
            {
                "zero": "z: int8[3] = [1, 2, 3] r: float[3] = [0.1, 0.2, 0.3]",
                "integers": "QuantizeLinear(x, r, z)",
                "floats": "DequantizeLinear(q, r, z)",
            },
            "not single",
        ),
    ],
)
def test_declines(given, reason):
    """Other types, other scales, other users, scales by axis."""
    assert reason in declines(QUANTIZE_AS_UINT8, text(**given))
