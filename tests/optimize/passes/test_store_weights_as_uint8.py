"""Weights in uint8."""

import pytest
from support.optimizing import apply_pass

from sardonyx.dtypes import DataType
from sardonyx.optimize.passes.store_weights_as_uint8 import STORE_WEIGHTS_AS_UINT8

OPSET = "21, com.microsoft 1"
CONSTANTS = """w: int8[3, 4] = [[-128, 127, 0, 1], [5, -7, 9, 100], [-1, -2, -3, 64]] z: int8[] = 3 zs: int8[4] = [-128, 127, 0, 5]
    f: int8[2, 3, 2, 2] = ... 7 fz: int8[2] = [1, -1] fs: float[2] = [0.1, 0.2] s: float[] = 0.05 a: uint8[] = 9 b: float[4] = ... 2
    ys: float[] = 0.3 yz: uint8[] = 100 l: int8[1, 3, 8] = ... 3 r: int8[1, 2, 8] = ... 4 lz: int8[1] = [2] ls: float[1] = [0.02]"""


def text(node, outputs="y"):
    return f"""graph(x: uint8[2, 3], g: float[2, 3], p: uint8[1, 3, 5, 5], v: float[4, 1, 3]) -> ({outputs})
        {{ {CONSTANTS} {outputs} = {node} }}"""


@pytest.mark.parametrize(
    "node",
    [
        "MatMulInteger(x, w, a, zs)",
        "MatMulInteger(x, w)",
        "ConvInteger(p, f, a, z)",
        "ConvInteger(p, f)",
        "QLinearConv(p, s, a, f, fs, fz, ys, yz)",
        "QLinearMatMul(x, s, a, w, s, z, ys, yz)",
        "com.microsoft.MatMulIntegerToFloat(x, w, s, s)",
        "com.microsoft.MatMulIntegerToFloat(x, w, s, s, a, zs, b)",
        "com.microsoft.DynamicQuantizeMatMul(g, w, s)",
        "com.microsoft.DynamicQuantizeMatMul(g, w, s, z, b)",
        "com.microsoft.QGemm(x, s, a, w, s, z, _, ys, yz)",
    ],
)
def test_fires_with_equal_numbers(node):
    """Each operator, with zero points and without, by tensor and by column."""
    model, changed = apply_pass(STORE_WEIGHTS_AS_UINT8, text(node), opset=OPSET)
    assert changed
    (made,) = model.graph
    assert DataType.INT8 not in {value.dtype for value in made.inputs if value is not None}


def test_recurrent_weights():
    """Both weights of an LSTM, whatever outputs are used."""
    node = "com.microsoft.DynamicQuantizeLSTM(v, l, r, _, _, _, _, _, ls, lz, ls, lz) {hidden_size = 2}"
    model, changed = apply_pass(STORE_WEIGHTS_AS_UINT8, text(node, "y, h"), opset=OPSET)
    assert changed
    (made,) = model.graph
    assert [made.inputs[index].dtype for index in (1, 2, 9, 11)] == [DataType.UINT8] * 4


@pytest.mark.parametrize(
    "body",
    [
        "w: uint8[3, 4] = ... 1 y = MatMulInteger(x, w)",
        "y = MatMulInteger(x, u)",
        "w: int8[3, 4] = ... 1 y = MatMulInteger(x, w, _, o)",
        "w: int8[4, 2] = ... 1 y = MatMulInteger(u, w)",
        "w: int8[3, 4] = ... 1 d = MatMulInteger(x, w) m = Abs(w) y = Identity(d)",
    ],
)
def test_declines(body):
    """Weights that are uint8, computed, read by others or multiplied by int8; zero points that are computed."""
    given = f"graph(x: uint8[2, 3], u: int8[3, 4], o: int8[]) -> (y) {{ {body} }}"
    assert not apply_pass(STORE_WEIGHTS_AS_UINT8, given)[1]
