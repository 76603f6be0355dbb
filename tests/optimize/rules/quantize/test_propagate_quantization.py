"""Quantization on both sides of operators that move elements."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.quantize.propagate_quantization import PROPAGATE_DEQUANTIZATION, PROPAGATE_QUANTIZATION


def after(move, shape="2,3", kind="int8", end="y = Neg(b)", outputs="y"):
    return f"""graph(x: {kind}[{shape}]) -> ({outputs}) {{ s: float[] = 0.1 z: {kind}[] = 3 k: int64[2] = [3, 2]
        a = DequantizeLinear(x, s, z) b = {move} {end} }}"""


@pytest.mark.parametrize(
    ("move", "shape"),
    [
        ("Reshape(a, k)", "2,3"),
        ("Transpose(a)", "2,3"),
        ("MaxPool(a) {kernel_shape = [2, 2]}", "1,2,4,4"),
    ],
)
def test_dequantization_goes_on_behind_a_move(move, shape):
    """With the same numbers."""
    model, fired = apply_rule(PROPAGATE_DEQUANTIZATION, after(move, shape))
    assert fired == 1
    assert operators(model) == ["DequantizeLinear", move.split("(")[0], "QuantizeLinear", "DequantizeLinear", "Neg"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"move": "Transpose(a)", "end": "y = QuantizeLinear(b, s, z)"}, "the result is quantized"),
        ({"move": "Transpose(a)", "end": "", "outputs": "b"}, "no node reads the result"),
        ({"move": "ReduceMax:11(a) {axes = [1]}"}, "does not move integers"),
        ({"move": "Transpose(a)", "kind": "int16"}, "expected int8 or uint8"),
        ({"move": "Neg(a)"}, "no match"),
    ],
)
def test_dequantization_stays(given, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(PROPAGATE_DEQUANTIZATION, after(**given))


def before(move, shape="2,3", kind="int8", dtype="float", outputs="y", more=""):
    return f"""graph(x: {dtype}[{shape}]) -> ({outputs}) {{ s: {dtype}[] = 0.1 z: {kind}[] = 3 k: int64[2] = [3, 2]
        b = {move} y = QuantizeLinear(b, s, z) {more} }}"""


@pytest.mark.parametrize(
    ("move", "shape"),
    [
        ("Reshape(x, k)", "2,3"),
        ("Transpose(x)", "2,3"),
        ("MaxPool(x) {kernel_shape = [2, 2]}", "1,2,4,4"),
    ],
)
def test_quantization_comes_before_a_move(move, shape):
    """With the same integers."""
    model, fired = apply_rule(PROPAGATE_QUANTIZATION, before(move, shape))
    assert fired == 1
    assert operators(model) == ["QuantizeLinear", "DequantizeLinear", move.split("(")[0], "QuantizeLinear"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"move": "Transpose(x)", "outputs": "y, w", "more": "w = Neg(b)"}, "no match"),
        ({"move": "Transpose(x)", "kind": "int16"}, "expected int8 or uint8"),
        ({"move": "Transpose(x)", "dtype": "float16"}, "the input is float16"),
        ({"move": "ReduceMax:11(x) {axes = [1]}"}, "does not move integers"),
    ],
)
def test_quantization_stays(given, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(PROPAGATE_QUANTIZATION, before(**given))
