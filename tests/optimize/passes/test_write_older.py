"""Newer operators under older names."""

import numpy as np
import pytest
from support.evaluate import evaluate_model, random_feeds
from support.optimizing import model_of, operators

from sardonyx.formats.onnx import load, to_bytes
from sardonyx.ir.verify import verify
from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.passes.write_older import WRITE_OLDER, has_older_name


def older(call, opset=14, kind="float"):
    model = model_of(f"graph(x: {kind}[n, 4]) -> (y: {kind}[n, 4]) {{ g: {kind}[4] = ... 1 y = {call} }}", "24")
    INFER_SHAPES.run(model, Context())
    before = evaluate_model(model, random_feeds(model))
    model.opset_imports[""] = opset
    return model, WRITE_OLDER.run(model, Context()), before


@pytest.mark.parametrize(
    ("call", "made", "domain"),
    [
        ("Gelu(x)", "Gelu", "com.microsoft"),
        ('Gelu(x) {approximate = "tanh"}', "FastGelu", "com.microsoft"),
        ("Swish(x)", "QuickGelu", "com.microsoft"),
        ("Swish(x) {alpha = 1.5}", "QuickGelu", "com.microsoft"),
        ("LayerNormalization(x, g, g) {epsilon = 0.1}", "LayerNormalization", ""),
        ("RMSNormalization(x, g) {epsilon = 0.1}", "SimplifiedLayerNormalization", ""),
    ],
)
def test_the_same_numbers_in_an_older_file(call, made, domain):
    """It is saved, loaded and computed."""
    model, changed, before = older(call)
    (node,) = model.graph
    assert (changed, node.op_type, node.domain) == (True, made, domain)
    again = load(to_bytes(model))
    verify(again)
    assert again.opset_imports[""] == 14
    np.testing.assert_allclose(evaluate_model(again, random_feeds(again))[0], before[0], rtol=1e-6, atol=1e-6)


def test_what_the_model_has_stays():
    """Nothing is renamed where its set has it."""
    model, changed, _ = older("Gelu(x)", 24)
    assert not changed
    assert operators(model) == ["Gelu"]


@pytest.mark.parametrize(
    ("call", "kind", "has"),
    [
        ("Gelu(x)", "float16", True),
        ("Gelu(x)", "double", False),
        ("Mish(x)", "float", False),
    ],
)
def test_which_have_older_names(call, kind, has):
    """Those of the table, in types that onnxruntime has kernels for."""
    model = model_of(f"graph(x: {kind}[n, 4]) -> (y: {kind}[n, 4]) {{ y = {call} }}", "24")
    assert has_older_name(next(iter(model.graph)), 14) is has
