"""Integers that are dequantized and quantized again."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.quantize.skip_requantization import MOVES, SKIP_REQUANTIZATION, SKIP_REQUANTIZATION_OF_MOVES

SCALES = "s: float[] = 0.1 z: int8[] = 3 t: float[] = 0.2 k: int64[2] = [3, 2] i: int64[] = 1 one: int64[1] = [1]"
SIZES = "three: int64[1] = [3] f: float[4] = [1.0, 1.0, 2.0, 2.0] g: int64[2,3] = [[0,1,1],[1,0,0]]"


def text(move, shape="2,3", scale="s", outputs="y", more=""):
    return f"""graph(x: int8[{shape}]) -> ({outputs}) {{ {SCALES} {SIZES}
        a = DequantizeLinear(x, s, z) {move} y = QuantizeLinear(b, {scale}, z) {more} }}"""


def test_pair_goes():
    """The integers are given back."""
    model, fired = apply_rule(
        SKIP_REQUANTIZATION,
        "graph(x: int8[9]) -> (y) { s: float[] = 0.3 z: int8[] = -5 a = DequantizeLinear(x, s, z) y = QuantizeLinear(a, s, z) }",
    )
    assert fired == 1
    assert operators(model) == ["Identity"]


@pytest.mark.parametrize("second", ["t, z", "s, w", "s"])
def test_declines_other_scales(second):
    """Another scale, zero point or type."""
    text = f"""graph(x: int8[9]) -> (y) {{ s: float[] = 0.3 z: int8[] = -5 t: float[] = 0.2 w: int8[] = 5
        a = DequantizeLinear(x, s, z) y = QuantizeLinear(a, {second}) }}"""
    assert declines(SKIP_REQUANTIZATION, text) == "the scales differ"


@pytest.mark.parametrize(
    ("move", "shape"),
    [
        ("b = Reshape(a, k)", "2,3"),
        ("b = Transpose(a)", "2,3"),
        ("b = Gather(a, i) {axis = 1}", "2,3"),
        ("b = Flatten(a)", "2,3,2"),
        ("b = GatherElements(a, g)", "2,3"),
        ("b = Slice(a, one, three, one)", "2,3"),
        ("b = Unsqueeze(a, one)", "2,3"),
        ("b = Squeeze(a, one)", "2,1,3"),
        ("b = Expand(a, k)", "1,2"),
        ("b = Tile(a, k)", "2,3"),
        ("b = Identity(a)", "2,3"),
        ("b = MaxPool(a) {kernel_shape = [2, 2], pads = [1, 1, 0, 0]}", "1,2,4,4"),
        ("b = ReduceMax(a, one)", "2,3"),
        ("b = ReduceMin(a, one)", "2,3"),
        ("b = DepthToSpace(a) {blocksize = 2}", "1,4,2,2"),
        ("b = SpaceToDepth(a) {blocksize = 2}", "1,1,2,2"),
        ('b = Resize(a, _, f) {mode = "nearest"}', "1,1,3,3"),
    ],
)
def test_moves_move_integers(move, shape):
    """Each operator of the list, with the same integers as result."""
    model, fired = apply_rule(SKIP_REQUANTIZATION_OF_MOVES, text(move, shape))
    assert fired == 1
    assert len(operators(model)) == 1
    assert operators(model)[0] in MOVES


def test_split_moves_integers():
    """All parts are quantized alike; equal splits are merged by another pass."""
    split = "b, d = Split(a) {num_outputs = 2, axis = 0} v = QuantizeLinear(d, s, z)"
    model, fired = apply_rule(SKIP_REQUANTIZATION_OF_MOVES, text(split, "4,3", outputs="y, v"))
    assert fired == 2
    assert set(operators(model)) == {"Split"}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"move": "b = Transpose(a)", "scale": "t"}, "the scales differ"),
        ({"move": 'b = Resize(a, _, f) {mode = "linear"}', "shape": "1,1,3,3"}, "Resize of opset 21 does not move integers"),
        ({"move": "b = ReduceMax:11(a) {axes = [1]}"}, "ReduceMax of opset 11 does not move integers"),
        ({"move": "b = Transpose(a)", "outputs": "y, w", "more": "w = Neg(b)"}, "no match"),
        ({"move": "b, c = Split(a) {num_outputs = 2, axis = 0}", "outputs": "y, c"}, "results that are not quantized"),
        ({"move": "b = Neg(a)"}, "no match"),
    ],
)
def test_declines(given, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(SKIP_REQUANTIZATION_OF_MOVES, text(**given))
