"""Layer normalizations that are written as batch normalizations."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.normalize.fuse_layer_norm_statistics import FUSE_LAYER_NORM_STATISTICS


def text(target="[1, 6, 5, 1]", axes="[0, 2, 3]", size="5.0", scale="o: float[6] = [1, 1, 1, 1, 1, 1]", variance="Div(v, size)"):
    return f"""graph(x: float[2, 3, 5], h: float[6]) -> (y) {{
        t: int64[4] = {target} back: int64[3] = [2, 3, 5] {scale} z: float[6] = [0, 0, 0, 0, 0, 0] size: float[] = {size}
        axes: int64[3] = [0, 2, 3] g = Reshape(x, t) m = ReduceMean:13(g) {{axes = {axes}, keepdims = 1}} d = Sub(g, m)
        v = ReduceSumSquare:13(d) {{axes = {axes}, keepdims = 0}} s = {variance} c = Squeeze(m, axes)
        n = BatchNormalization(g, o, z, c, s) {{epsilon = 0.01}} y = Reshape(n, back) }}"""


@pytest.mark.parametrize("scale", ["o: float[6] = [1, 1, 1, 1, 1, 1]", "one: float[] = 1.0 sh: int64[1] = [6] o = Expand(one, sh)"])
def test_fires_with_the_same_numbers(scale):
    """The scale of ones may be made in a run."""
    model, fired = apply_rule(FUSE_LAYER_NORM_STATISTICS, text(scale=scale))
    assert fired == 1
    assert operators(model)[-1] == "LayerNormalization"
    assert model.graph.outputs[0].producer.get("epsilon") == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"scale": "o = Abs(h)"}, "a scale or bias of their own"),
        ({"scale": "o: float[6] = ... 1"}, "a scale or bias of their own"),
        ({"size": "6.0"}, "not divided by D"),
        ({"target": "[1, 6, 1, 5]"}, "not its rows"),
        ({"variance": "Mul(v, size)"}, "no match"),
    ],
)
def test_declines(options, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(FUSE_LAYER_NORM_STATISTICS, text(**options))
