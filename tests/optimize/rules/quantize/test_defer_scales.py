"""Products of integers as floats."""

import numpy as np
import pytest
from support.evaluate import evaluate_model
from support.optimizing import apply_rule, declines, model_of, operators

from sardonyx.optimize.rules.quantize.defer_scales import DEFER_SCALES

SHAPES = {"MatMul": ("4,600", "600,3"), "Gemm": ("4,6", "6,3"), "Conv": ("1,3,5,5", "3,3,3,3")}


def text(call="MatMul", bias=False, kind="uint8", c_scale="0.0021", scale="0.07", attributes="", shape="", axis=0, ends=("", "y")):
    a, b = SHAPES[call]
    scales = "[0.03, 0.02, 0.01]" if shape else "0.03"
    return f"""graph(a: uint8[{a}], b: int8[{b}]) -> ({ends[1]}) {{ s: float[] = {scale} z: uint8[] = 3 r: float[{shape}] = {scales}
        c: int32[3] = [1000, -2000, 30] t: float[] = {c_scale} ys: float[] = 0.9 yz: {kind}[] = 128
        x = DequantizeLinear(a, s, z) w = DequantizeLinear(b, r) {{axis = {axis}}} {"d = DequantizeLinear(c, t)" if bias else ""}
        p = {call}(x, w{", d" if bias else ""}) {attributes} y = QuantizeLinear(p, ys, yz) {ends[0]} }}"""


@pytest.mark.parametrize(("call", "bias"), [("MatMul", False), ("Gemm", False), ("Gemm", True), ("Conv", False), ("Conv", True)])
def test_fires_with_integers_in_the_product(call, bias):
    """The operands have scale 1; the result is the same here."""
    model, fired = apply_rule(DEFER_SCALES, text(call, bias))
    assert fired == 1
    assert operators(model)[-3:] == [call, "Mul", "QuantizeLinear"]
    product = next(node for node in model.graph if node.op_type == call)
    assert [float(value.producer.inputs[1].constant.numpy()) for value in product.inputs] == [1.0] * len(product.inputs)


@pytest.mark.parametrize(("call", "shape"), [("MatMul", "3"), ("Gemm", "3"), ("Conv", "3")])
def test_scales_by_output_channel(call, shape):
    """One for each; the result is the same here."""
    model, fired = apply_rule(DEFER_SCALES, text(call, shape=shape, axis=0 if call == "Conv" else 1))
    assert fired == 1
    assert operators(model)[-3:] == [call, "Mul", "QuantizeLinear"]


def test_results_are_those_of_integers():
    """All of them, where floats that are scaled first are a step beside some."""
    model, _ = apply_rule(DEFER_SCALES, text(), compare=False)
    generator = np.random.default_rng(7)
    a, b = generator.integers(0, 256, (4, 600)), generator.integers(-128, 128, (600, 3))
    feeds = {"a": a.astype(np.uint8), "b": b.astype(np.int8)}
    integers = model_of("""graph(a: uint8[4,600], b: int8[600,3]) -> (y) { s: float[] = 0.07 z: uint8[] = 3 r: float[] = 0.03
        v: int8[] = 0 ys: float[] = 0.9 yz: uint8[] = 128 y = QLinearMatMul(a, s, z, b, r, v, ys, yz) }""")
    np.testing.assert_array_equal(evaluate_model(model, feeds)[0], evaluate_model(integers, feeds)[0])


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"kind": "int16"}, "y is int16"),
        ({"call": "Conv", "shape": "3", "axis": 1}, "go by output channel"),
        ({"call": "Gemm", "bias": True, "c_scale": "0.5"}, "not int32 in steps"),
        ({"call": "Gemm", "attributes": "{alpha = 2.0}"}, "alpha or beta"),
        ({"call": "Gemm", "bias": True, "attributes": "{beta = 2.0}"}, "alpha or beta"),
        ({"scale": "1e-44"}, "the factor would be"),
        ({"ends": ("v = Neg(p)", "y, v")}, "no match"),
    ],
)
def test_declines(given, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(DEFER_SCALES, text(**given))


def test_scales_of_1_stay():
    """So the rule comes to an end."""
    assert "1 already" in declines(DEFER_SCALES, text(scale="1.0").replace("= 0.03", "= 1.0"))
