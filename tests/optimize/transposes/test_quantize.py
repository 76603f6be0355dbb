"""Transposes through quantization."""

from __future__ import annotations

from support.models import graph
from support.transposing import operators, pushed

from sardonyx.optimize.transposes.push import push_transposes

SCALES = "s: float[] = 0.5\n z: int8[] = 1\n v: float[3] = [0.5, 1, 2]\n w: int8[3] = [0, 1, 2]"


def test_a_pair_passes_it_on() -> None:
    """QuantizeLinear and DequantizeLinear between two transposes stay one behind the other."""
    pair = "q = QuantizeLinear(t, s, z)\n d = DequantizeLinear(q, s, z)"
    held = pushed(f"{SCALES}\n {pair}\n y = Transpose(d) {{perm = [0, 3, 1, 2]}}")
    assert operators(held) == ["QuantizeLinear", "DequantizeLinear"]


def test_a_dynamic_quantization_passes_it_on() -> None:
    """The scale and the zero point are those of all elements, wherever they lie."""
    held = pushed("q, qs, qz = DynamicQuantizeLinear(t)\n d = DequantizeLinear(q, qs, qz)\n y = Transpose(d) {perm = [0, 3, 1, 2]}")
    assert operators(held) == ["DynamicQuantizeLinear", "DequantizeLinear"]


def test_the_axis_of_a_scale_is_renamed() -> None:
    """A scale for each channel: the channels were last and are second."""
    pair = "q = QuantizeLinear(t, v, w) {axis = 3}\n d = DequantizeLinear(q, v, w) {axis = -1}"
    held = pushed(f"{SCALES}\n {pair}\n y = Transpose(d) {{perm = [0, 3, 1, 2]}}")
    assert [node.get("axis") for node in held.graph] == [1, 1]


def test_a_transpose_behind_dequantization_goes_in_front() -> None:
    """What computes in integers finds DequantizeLinear just before it, and fewer bytes are moved."""
    held = pushed(f"{SCALES}\n q = QuantizeLinear(t, v, w) {{axis = 3}}\n y = DequantizeLinear(q, v, w) {{axis = 3}}")
    assert operators(held) == ["QuantizeLinear", "Transpose", "DequantizeLinear"]


def test_a_dequantized_constant_is_transposed_as_integers() -> None:
    """The constant stays in int8, and its DequantizeLinear stays behind it."""
    weights = "q: int8[4, 6, 3] = ... 1\n d = DequantizeLinear(q, v, w) {axis = 2}"
    held = pushed(f"{SCALES}\n {weights}\n a = Add(t, d)\n y = Transpose(a) {{perm = [0, 3, 1, 2]}}")
    assert operators(held) == ["DequantizeLinear", "Add"]
    assert next(iter(held.graph)).get("axis") == 1


def test_quantized_operators_of_microsoft() -> None:
    """A sum, a concatenation and a pool in integers: the pool is told the layout."""
    held = graph("""graph(x: uint8[2, 4, 6, 3]) -> (y: uint8[2, 1, 1, 6]) {
        s: float[] = 0.5
        z: uint8[] = 1
        t: uint8[2, 3, 4, 6] = Transpose(x) {perm = [0, 3, 1, 2]}
        a: uint8[2, 3, 4, 6] = com.microsoft.QLinearAdd(t, s, z, t, s, z, s, z)
        l: uint8[2, 3, 4, 6] = com.microsoft.QLinearLeakyRelu(a, s, z, s, z)
        c: uint8[2, 6, 4, 6] = com.microsoft.QLinearConcat(s, z, l, s, z, t, s, z) {axis = 1}
        p: uint8[2, 6, 1, 1] = com.microsoft.QLinearGlobalAveragePool(c, s, z, s, z)
        y: uint8[2, 1, 1, 6] = Transpose(p) {perm = [0, 2, 3, 1]}
    }""")
    push_transposes(held, set(held))
    assert "Transpose" not in [node.op_type for node in held]
    assert [node.get("channels_last") for node in held if node.op_type == "QLinearGlobalAveragePool"] == [1]
    assert [node.get("axis") for node in held if node.op_type == "QLinearConcat"] == [3]
