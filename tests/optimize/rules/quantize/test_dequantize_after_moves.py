"""Integers that are moved, padded and put together, and quantized by another scale."""

import numpy as np
import pytest
from support.cpu_run import assert_same_bits
from support.models import model
from support.optimizing import apply_rule, declines, operators

from sardonyx import InferenceSession
from sardonyx.dtypes import Array
from sardonyx.formats.onnx import to_bytes
from sardonyx.optimize.rules.quantize.dequantize_after_moves import (
    DEQUANTIZE_AFTER_CONCAT,
    DEQUANTIZE_AFTER_MOVE,
    DEQUANTIZE_AFTER_PAD,
    QUANTIZE_BEFORE_CONCAT,
)


def moved(move="Transpose(a)", shape="2,3", kind="uint8", end="y = QuantizeLinear(b, t, o)", outputs="y"):
    return f"""graph(x: {kind}[{shape}]) -> ({outputs}) {{ s: float[] = 0.1 z: {kind}[] = 3 t: float[] = 0.07 o: {kind}[] = 12
        k: int64[2] = [3, 2] r: float[4] = [1, 1, 2, 2] a = DequantizeLinear(x, s, z) b = {move} {end} }}"""


@pytest.mark.parametrize(
    ("move", "shape"),
    [
        ("Reshape(a, k)", "2,3"),
        ("Transpose(a)", "2,3"),
        ("MaxPool(a) {kernel_shape = [2, 2]}", "1,2,4,4"),
        ("ReduceMin:13(a) {axes = [1]}", "2,3"),
        ('Resize(a, _, r) {mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"}', "1,2,4,4"),
    ],
)
def test_a_move_comes_before_another_scale(move, shape):
    """With the same integers."""
    text = moved(move, shape)
    fixed, fired = apply_rule(DEQUANTIZE_AFTER_MOVE, text)
    assert fired == 1
    assert operators(fixed) == [move.split("(")[0].split(":")[0], "DequantizeLinear", "QuantizeLinear"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"end": "y = QuantizeLinear(b, s, z)"}, "by another scale"),
        ({"end": "y = Neg(b)"}, "by another scale"),
        ({"move": "ReduceMax:11(a) {axes = [1]}"}, "does not move integers"),
        ({"kind": "int16"}, "expected int8 or uint8"),
        ({"move": "Neg(a)"}, "no match"),
    ],
)
def test_a_move_stays(given, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(DEQUANTIZE_AFTER_MOVE, moved(**given))


def padded(value="0.0", opset="", fed="", kind="int8", given=", v"):
    constant = f"v: float[] = {value}" if not fed else ""
    return f"""graph(x: {kind}[2,3]{fed}) -> (y) {{ s: float[] = 0.5 z: {kind}[] = -5 p: int64[4] = [1, 0, 2, 3] {constant}
        a = DequantizeLinear(x, s, z) y = Pad{opset}(a, p{given}) }}"""


@pytest.mark.parametrize(("value", "given"), [("0.0", ", v"), ("0.0", ""), ("-2.5", ", v")])
def test_integers_are_padded(value, given):
    """By the integer that stands for the value, 0 where it is left out."""
    fixed, fired = apply_rule(DEQUANTIZE_AFTER_PAD, padded(value, given=given))
    assert fired == 1
    assert operators(fixed) == ["Pad", "DequantizeLinear"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"value": "0.3"}, "no integer stands for 0.3"),
        ({"value": "1e9"}, "no integer stands for"),
        ({"value": "-0.0"}, "no integer stands for"),
        ({"fed": ", v: float[]"}, "the value is computed"),
        ({"opset": ":11"}, "takes no integers"),
        ({"kind": "int16"}, "expected int8 or uint8"),
    ],
)
def test_numbers_are_padded(given, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(DEQUANTIZE_AFTER_PAD, padded(**given))


def joined(other="s, z", parts="c, d", kind="int8", end="y = Neg(e)"):
    return f"""graph(a: {kind}[2,3], b: {kind}[2,4], f: float[2,3]) -> (y) {{ s: float[] = 0.1 z: {kind}[] = 3 t: float[] = 0.2
        c = DequantizeLinear(a, s, z) d = DequantizeLinear(b, {other}) e = Concat({parts}) {{axis = 1}} {end} }}"""


def test_integers_of_one_scale_are_put_together():
    """With the same numbers."""
    fixed, fired = apply_rule(DEQUANTIZE_AFTER_CONCAT, joined())
    assert fired == 1
    assert operators(fixed) == ["Concat", "DequantizeLinear", "Neg"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"other": "t, z"}, "the scales differ"),
        ({"parts": "c, f"}, "a part is no dequantized integer"),
        ({"kind": "int16"}, "a part is no dequantized integer"),
    ],
)
def test_numbers_are_put_together(given, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(DEQUANTIZE_AFTER_CONCAT, joined(**given))


def test_parts_are_quantized():
    """Each by the scale of the whole, floats too, with the same integers."""
    fixed, fired = apply_rule(QUANTIZE_BEFORE_CONCAT, joined("t, z", "c, d, f", end="y = QuantizeLinear(e, t, z)"))
    assert fired == 1
    assert operators(fixed) == ["DequantizeLinear", "DequantizeLinear", *["QuantizeLinear"] * 3, "Concat"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"kind": "int16", "end": "y = QuantizeLinear(e, t, z)"}, "expected int8 or uint8"),
        ({"end": "n = Neg(e) q = QuantizeLinear(e, t, z) w = DequantizeLinear(q, t, z) y = Add(n, w)"}, "no match"),
    ],
)
def test_wholes_are_quantized(given, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(QUANTIZE_BEFORE_CONCAT, joined(**given))


def _integers(*shape: int) -> Array:
    return np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)


@pytest.mark.parametrize(
    "graph",
    [
        "a = DequantizeLinear(x, s, z) b = DequantizeLinear(w, t, o) c = Concat(a, b) {axis = 1} y = QuantizeLinear(c, r, n)",
        "a = DequantizeLinear(x, s, z) c = MaxPool(a) {kernel_shape = [2, 2], pads = [1, 1, 0, 0]} y = QuantizeLinear(c, t, o)",
        "a = DequantizeLinear(x, s, z) c = Pad(a, p) d = Transpose(c) {perm = [0, 2, 3, 1]} y = QuantizeLinear(d, t, o)",
        "y = com.microsoft.QLinearConcat(r, n, x, s, z, w, t, o, x, r, n) {axis = 1}",
    ],
)
def test_whole_sessions_give_the_integers_of_the_definition(graph):
    """With no float between two integers that are moved."""
    body = f"""graph(x: uint8[2,3,5,4], w: uint8[2,2,5,4]) -> (y: uint8[?,?,?,?]) {{ s: float[] = 0.1 z: uint8[] = 100 t: float[] = 0.07
        o: uint8[] = 12 r: float[] = 0.11 n: uint8[] = 90 p: int64[8] = [0, 0, 1, 1, 0, 0, 2, 0] {graph} }}"""
    feeds = {"x": _integers(2, 3, 5, 4), "w": _integers(2, 2, 5, 4)}
    data = to_bytes(model(body))
    session = InferenceSession(data)
    assert_same_bits(
        session.run(None, feeds)[0], InferenceSession(data, providers=["ReferenceExecutionProvider"]).run(None, feeds)[0]
    )
    assert {placement.provider for placement in session.explain()} == {"CPUExecutionProvider"}
