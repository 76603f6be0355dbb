"""Tables that are looked up one after the other."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.elementwise.fuse_label_encoders import FUSE_LABEL_ENCODERS

OPSET = "21, ai.onnx.ml 4"
FIRST = 'keys_int64s = [1, 2, 3], values_strings = ["a", "b", "c"], default_string = "z"'
SECOND = 'keys_strings = ["a", "c", "z"], values_floats = [1.5, 2.5, 9.5], default_float = -3.0'


def text(first=FIRST, second=SECOND, version="", outputs="y", more=""):
    return f"""graph(x: int64[4,9]) -> ({outputs}) {{ a = ai.onnx.ml.LabelEncoder{version}(x) {{{first}}}
        y = ai.onnx.ml.LabelEncoder(a) {{{second}}} {more} }}"""


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (FIRST, SECOND),
        (FIRST, 'keys_strings = ["q"], values_int64s = [7]'),
        ("keys_int64s = [1, -2], values_int64s = [5, 6]", "keys_int64s = [6, -1], values_floats = [0.5, 0.25]"),
    ],
)
def test_fires_with_the_same_results(first, second):
    """What the first lacks is looked up in the second by the first's default."""
    model, fired = apply_rule(FUSE_LABEL_ENCODERS, text(first, second), opset=OPSET)
    assert fired == 1
    assert operators(model) == ["LabelEncoder"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"first": "keys_int64s = [1], values_floats = [0.0]", "second": "keys_floats = [0.0], values_int64s = [7]"}, "floats in"),
        ({"second": 'keys_tensor: string[1] = ["a"], values_tensor: int64[1] = [3]'}, "given as a tensor"),
        ({"outputs": "y, v", "more": "v = Identity(a)"}, "no match"),
    ],
)
def test_declines(given, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(FUSE_LABEL_ENCODERS, text(**given), opset=OPSET, infer=False)
