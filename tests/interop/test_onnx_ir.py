"""Models to and from onnx_ir, and onnxscript's rules; skipped where the packages are missing."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from support.evaluate import evaluate_model, random_feeds
from support.optimizing import body, model_of, operators

import sardonyx as ort
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir.text import print_model
from sardonyx.ir.verify import verify
from sardonyx.optimize.contract import Context

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of their imports
    onnx_ir = pytest.importorskip("onnx_ir")
    pattern = pytest.importorskip("onnxscript.rewriter.pattern")

from sardonyx.interop.onnx_ir import OnnxscriptRules, from_onnx_ir, to_onnx_ir  # after the skip

pytestmark = pytest.mark.filterwarnings("ignore")

MODELS = {
    "weights and symbols": """graph g(x: float[n, 4]) -> (y: float[n, 2]) {
        w: float[4, 2] = ... 1 h: float16[] = 0.5 y = MatMul(x, w) @product }""",
    "left out inputs and outputs": """graph g(x: float[2, 4]) -> (y) {
        hi: float[] = 1 a = Clip(x, _, hi) @clip y, b, z = Split(a) {axis = 1, num_outputs = 3} @split }""",
    "subgraphs": """graph g(x: float[2], c: bool[]) -> (y) { k: float[2] = [1, 2] y = If(c) {
        then_branch = graph a() -> (t) { t = Add(x, k) @add }, else_branch = graph b() -> (u) { u = Neg(x) @n }} @choice }""",
    "attributes": """graph g(x: float[1, 1, 4, 4]) -> (y) {
        k = Constant() {value: int64[2] = [3, 4]} @a f = Constant() {value_floats = [1.5, 2.5]} @b
        s = Constant() {value_strings = ["a", "b"]} @c y = MaxPool(x) {kernel_shape = [2, 2], auto_pad = "SAME_UPPER"} @d }""",
}


@pytest.mark.parametrize("text", MODELS.values(), ids=MODELS)
def test_there_and_back_is_the_same(text: str) -> None:
    """Nodes, names, types, attributes and elements stay."""
    model = model_of(text)
    back = from_onnx_ir(to_onnx_ir(model))
    verify(back)
    assert print_model(back) == print_model(model)


def test_functions_and_metadata_stay() -> None:
    """Model-local functions with attributes, and what a model says about itself."""
    model = model_of("""opset 21
    graph g(x: float[2]) -> (y) { y = f.Scale(x) {factor = 2.0} @call }
    function f.Scale(x) {factor, bias = 0.5} -> (y) {
        opset 21
        k = Constant() {value_float: float = @factor} @number
        y = Mul(x, k) @product
    }""")
    model.producer_name, model.metadata, model.version = "me", {"key": "text"}, 7
    back = from_onnx_ir(to_onnx_ir(model))
    assert print_model(back) == print_model(model)
    assert (back.producer_name, back.metadata, back.version) == ("me", {"key": "text"}, 7)


def test_types_that_onnx_ir_has_stay() -> None:
    """Sequences, optionals and strings keep their types."""
    model = model_of("""graph(x: seq(float[n]), o: optional(int64[]), s: string[2]) -> (y) {
        k: int64[] = 0 t: string[2] = ["p", "q"] y = SequenceAt(x, k) }""")
    back = from_onnx_ir(to_onnx_ir(model))
    assert [str(value.type) for value in back.graph.inputs] == ["seq(tensor(float))", "optional(tensor(int64))", "tensor(string)"]
    assert back.graph.initializers["t"].constant.numpy().tolist() == ["p", "q"]


def test_weights_are_shared() -> None:
    """No bytes of weights are copied."""
    model = model_of("graph(x: float[2, 4]) -> (y) { w: float[4, 2] = ... 1 y = MatMul(x, w) }")
    weight = model.graph.initializers["w"].constant.numpy()
    back = from_onnx_ir(to_onnx_ir(model))
    assert np.shares_memory(back.graph.initializers["w"].constant.numpy(), weight)


def _sign_dropped() -> Any:
    return pattern.RewriteRule(lambda op, x: op.Abs(op.Neg(x)), lambda op, x: op.Abs(x), name="sign_dropped")


TEXT = "graph(x: float[n, 3]) -> (y: float[n, 3]) { k: float[3] = [1, 2, 3] a = Neg(x) b = Abs(a) c = Mul(b, k) y = Relu(c) }"


def test_a_rule_of_onnxscript_rewrites_a_model() -> None:
    """The pass applies it, keeps the interface and the numbers, and says whether anything changed."""
    model = model_of(TEXT)
    rules = OnnxscriptRules([_sign_dropped()])
    assert rules.run(model, Context())
    verify(model)
    assert operators(model) == ["Abs", "Mul", "Relu"]
    assert body(model).startswith("graph graph(x: float[n, 3]) -> (y: float[n, 3])")
    feeds = random_feeds(model_of(TEXT))
    np.testing.assert_array_equal(evaluate_model(model, feeds)[0], evaluate_model(model_of(TEXT), feeds)[0])
    assert not rules.run(model, Context())


def test_rules_that_make_functions_are_inlined() -> None:
    """What a rule puts into a function stands in the graph again afterwards."""
    rule = pattern.RewriteRule(lambda op, x: op.Abs(op.Neg(x)), lambda op, x: op.Abs(x, _domain="fused"), as_function=True)
    model = model_of(TEXT)
    assert OnnxscriptRules([rule]).run(model, Context())
    assert operators(model) == ["Neg", "Abs", "Mul", "Relu"]
    assert not model.functions


def test_rules_take_part_in_a_session() -> None:
    """Given to the options they run with the others, with verify too, and can be disabled by name."""
    options = ort.SessionOptions()
    options.add_pass(OnnxscriptRules([_sign_dropped()], name="from_onnxscript"))
    options.verify = True
    session = ort.InferenceSession(to_bytes(model_of(TEXT)), options)
    x = np.array([[1, -2, 3]], np.float32)
    assert session.run(None, {"x": x})[0].tolist() == [[1, 4, 9]]
    report = session.optimization_report
    assert report.problems == []
    assert report.passes["from_onnxscript"].changes == 1
    assert report.verified["from_onnxscript"] == 1
    report = ort.InferenceSession(to_bytes(model_of(TEXT)), options, disabled_optimizers=["from_onnxscript"]).optimization_report
    assert "from_onnxscript" not in report.passes


def test_a_branch_that_gives_out_a_value_around_it() -> None:
    """It gives out an Identity of it, as onnx_ir wants outputs to be a graph's own."""
    model = model_of("""graph(x: float[2], c: bool[]) -> (y) {
        y = If(c) {then_branch = graph() -> (t) { t = Neg(x) }, else_branch = graph() -> (x) {}} }""")
    back = from_onnx_ir(to_onnx_ir(model))
    verify(back)
    assert [node.op_type for node in next(iter(back.graph)).subgraphs[1]] == ["Identity"]
