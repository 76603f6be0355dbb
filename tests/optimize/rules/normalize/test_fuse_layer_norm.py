"""Layer normalizations that are written out."""

import pytest
from support.optimizing import apply_rule, declines, model_of, operators

from sardonyx.ir.verify import verify
from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.rewrite import RuleSet, rewrite
from sardonyx.optimize.rules.normalize.fuse_layer_norm import (
    FUSE_LAYER_NORM,
    FUSE_LAYER_NORM_AFFINE,
    FUSE_LAYER_NORM_BIAS,
    FUSE_LAYER_NORM_SCALE,
    FUSE_LAYER_NORM_UNSCALED,
)


def text(
    mean="ReduceMean(x, a)",
    square="Pow(d, two)",
    variance="ReduceMean(q, a)",
    scale="g: float[5] = ... 1",
    extra="",
    outputs="y",
    epsilon="e: float[] = 1e-3",
):
    return f"""graph(x: float[batch, 3, 5]) -> ({outputs}) {{
        {scale} {epsilon} two: float[] = 2.0 a: int64[1] = [-1] f: int64[1] = [1] w: int64[2] = [2, 1]
        m = {mean} d = Sub(x, m) q = {square} v = {variance} p = Add(v, e) s = Sqrt(p) n = Div(d, s) y = Mul(n, g) {extra} }}"""


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"square": "Mul(d, d)"},
        {"mean": "ReduceMean:13(x) {axes = [2]}", "variance": "ReduceMean:13(q) {axes = [-1]}"},
        {"mean": "ReduceMean(x, w)", "variance": "ReduceMean(q, w)", "scale": "g: float[3, 5] = ... 1"},
    ],
)
def test_fires_with_the_same_numbers(options):
    """Each way to write it becomes one node."""
    model, fired = apply_rule(FUSE_LAYER_NORM, text(**options))
    assert fired == 1
    assert operators(model) == ["LayerNormalization"]


def test_operator_that_the_opset_lacks_is_read_under_its_first_version():
    """In a model of opset 14 the new node is read under opset 17, which brought the operator."""
    model, fired = apply_rule(
        FUSE_LAYER_NORM, text(mean="ReduceMean(x) {axes = [2]}", variance="ReduceMean(q) {axes = [2]}"), opset="14"
    )
    assert fired == 1
    assert next(iter(model.graph)).version == 17


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"mean": "ReduceMean(x, f)"}, "the axes of the means are not the same last axes"),
        ({"variance": "ReduceMean(q, w)"}, "the axes of the means are not the same last axes"),
        ({"mean": "ReduceMean(x)"}, "the axes of the means are not the same last axes"),
        ({"scale": "g: float[1] = ... 1"}, "scale is float (1,), expected float (5,)"),
        ({"scale": "h: float[5] = ... 1 g = Neg(h)"}, "no match"),
        ({"epsilon": "e: float[5] = ... 1"}, "epsilon is not one number"),
        ({"extra": "z = Neg(d)", "outputs": "y, z"}, "no match"),
        ({"square": "Pow(x, two)"}, "no match"),
    ],
)
def test_declines(options, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(FUSE_LAYER_NORM, text(**options))


def test_declines_an_unknown_rank():
    """Without the rank it is not known which axes are the last."""
    assert declines(FUSE_LAYER_NORM, text().replace("x: float[batch, 3, 5]", "x: float"), infer=False) == "the rank is unknown"


def test_without_a_scale():
    """A normalization that nothing scales, or a value of the run, gets a scale of ones."""
    model, fired = apply_rule(FUSE_LAYER_NORM_UNSCALED, text(scale="h: float[5] = ... 1 g = Neg(h)"))
    assert fired == 1
    assert operators(model) == ["Neg", "LayerNormalization", "Mul"]
    assert declines(FUSE_LAYER_NORM_UNSCALED, text()) == "a constant scale follows, with which another rule replaces it"


def test_bias_joins_the_normalization():
    """The bias that is added after becomes the third input."""
    both = RuleSet([FUSE_LAYER_NORM, FUSE_LAYER_NORM_BIAS])
    model = model_of(text(extra="b: float[5] = ... 2 r = Add(b, y)", outputs="r"))
    INFER_SHAPES.run(model, Context())
    assert rewrite(model, both) == {"fuse_layer_norm": 1, "fuse_layer_norm_bias": 1}
    verify(model)
    assert len(next(iter(model.graph)).inputs) == 3


BIASED = "graph(x: float[2, 5], u: float[5]) -> (y) {{ g: float[5] = ... 1 {} }}"


def test_bias_has_the_same_numbers():
    """LayerNormalization plus a constant equals LayerNormalization with a bias."""
    lines = "b: float[5] = ... 2 n = LayerNormalization(x, g) {epsilon = 0.1} y = Add(n, b)"
    model, fired = apply_rule(FUSE_LAYER_NORM_BIAS, BIASED.format(lines))
    assert fired == 1
    assert operators(model) == ["LayerNormalization"]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("b: float[2, 5] = ... 2 n = LayerNormalization(x, g) y = Add(n, b)", "bias is float (2, 5), expected float (5,)"),
        ("n = LayerNormalization(x, g) y = Add(n, u)", "no match"),
        ("b: float[5] = ... 2 n = LayerNormalization(x, g, u) y = Add(n, b)", "no match"),
        ("b: float[5] = ... 2 n, m = LayerNormalization(x, g) t = Add(n, b) y = Mul(t, m)", "no match"),
    ],
)
def test_bias_declines(lines, reason):
    """A bias of another shape or that is no constant, a normalization that has one, and one whose mean is used, stay."""
    assert reason in declines(FUSE_LAYER_NORM_BIAS, BIASED.format(lines))


def affine(shift="t = Mul(m, w) k = Sub(b, t)", bias="b: float[5] = ... 2", mean="ReduceMean(x, a)", result="u = Mul(x, w)"):
    return f"""graph(x: float[batch, 3, 5]) -> (y) {{ g: float[5] = ... 1 {bias} e: float[] = 1e-3 a: int64[1] = [-1]
        m = {mean} d = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, a) p = Add(v, e) s = Sqrt(p) i = Reciprocal(s) w = Mul(i, g)
        {shift} {result} y = Add(u, k) }}"""


@pytest.mark.parametrize("options", [{}, {"shift": "n = Neg(m) t = Mul(n, w) k = Add(t, b)"}, {"mean": "GlobalAveragePool(x)"}])
def test_affine_forms(options):
    """The value times a weight plus a shift, both computed from the statistics, as TensorFlow's batch_normalization writes it."""
    model, fired = apply_rule(FUSE_LAYER_NORM_AFFINE, affine(**options))
    assert fired == 1
    assert operators(model) == ["LayerNormalization"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"bias": "b: float[1] = [0.5]"}, "bias is float (1,), expected float (5,)"),
        ({"shift": "t = Mul(m, i) k = Sub(b, t)"}, "no match"),
        ({"result": "u = Mul(d, w)"}, "no match"),
    ],
)
def test_affine_declines(options, reason):
    """A bias of another shape, a shift of another weight, another value."""
    assert reason in declines(FUSE_LAYER_NORM_AFFINE, affine(**options))


SCALED = "graph(x: float[2, 5], u: float[5]) -> (y) {{ g: float[5] = ... 1 {} }}"


def test_factor_joins_the_scale():
    """A constant that multiplies the normalization multiplies its scale."""
    lines = "f: float[5] = ... 2 n = LayerNormalization(x, g) y = Mul(n, f)"
    model, fired = apply_rule(FUSE_LAYER_NORM_SCALE, SCALED.format(lines))
    assert fired == 1
    assert operators(model) == ["LayerNormalization"]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("f: float[1] = ... 2 n = LayerNormalization(x, g) y = Mul(n, f)", "the factor is float (1,), expected float (5,)"),
        ("f: float[5] = ... 2 n = LayerNormalization(x, g, f) y = Mul(n, f)", "no match"),
        ("n = LayerNormalization(x, g) y = Mul(n, u)", "no match"),
    ],
)
def test_factor_declines(lines, reason):
    """A factor of another shape, after a bias, or that is no constant."""
    assert reason in declines(FUSE_LAYER_NORM_SCALE, SCALED.format(lines))
