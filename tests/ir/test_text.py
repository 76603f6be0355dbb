"""Models and graphs survive printing and parsing."""

import numpy as np
import pytest

from sardonyx.dtypes import DataType, is_float
from sardonyx.ir import (
    Attribute,
    AttributeKind,
    Function,
    Graph,
    MapType,
    Model,
    Node,
    OptionalType,
    SequenceType,
    SparseTensor,
    SparseTensorType,
    Tensor,
    TensorType,
    Value,
    symbol,
)
from sardonyx.ir.shape import anonymous
from sardonyx.ir.text import parse_graph, parse_model, print_graph, print_model

MODEL = """\
ir_version 9
opset 21, com.microsoft 1, local 3
producer_name "a \\"quoted\\" name"
doc "two\\nlines"
version 7
metadata {"key": "value", "k2": ""}
graph main(x: float[batch, 3], cond: bool[]) -> (y: float[batch, 8], low) {
    w: float[3, 2] = [[0.1, -1.0], [1e-30, nan], [inf, -inf]]
    names: string[2] = ["a,b", "\\u00e9"]
    empty: int64[0] = []
    large: float[100] = ...
    c: float[batch, 2] = MatMul(x, w) @"node 1"
    low, _ = Split(c) {axis = 1, num_outputs = 2}
    d = Clip(c, _, w)
    g = com.microsoft.Gelu(d)
    s = Softmax:11(g) {axis = -1}
    f = local.Scale<fast>(s) {factor = 2.5}
    y = If(cond) {then_branch = graph t() -> (u: float[batch, 8]) {
        k: float[] = 2.0
        u = Mul(f, k)
    }, else_branch = graph() -> (f) {
    }}
}
function local.Scale<fast>(x) {factor, bias = 0.0} -> (y) {
    opset 18
    k = Constant() {value_float: float = @factor}
    y = Mul(x, k)
}
"""


def test_model_text_survives_parsing_and_printing():
    """Printing what was parsed gives the same text, for a model with all parts."""
    text = MODEL.replace("\\u00e9", "é")
    assert print_model(parse_model(text)) == text


def test_captured_value_is_the_outer_value_itself():
    """A name that a subgraph takes from outside is the same Value object."""
    model = parse_model(MODEL)
    nodes = list(model.graph)
    scale, choose = nodes[-2], nodes[-1]
    then_branch, else_branch = choose.subgraphs
    assert next(iter(then_branch)).inputs[0] is scale.output
    assert else_branch.outputs == (scale.output,)


def test_versions_come_from_imports_suffix_or_function():
    """A node has the version of its suffix, of its function's import, or of the model's import."""
    model = parse_model(MODEL)
    assert {node.op_type: node.version for node in model.graph} == {
        "MatMul": 21,
        "Split": 21,
        "Clip": 21,
        "Gelu": 1,
        "Softmax": 11,
        "Scale": 3,
        "If": 21,
    }
    assert [node.version for node in model.functions["local", "Scale", "fast"].graph] == [18, 18]


@pytest.mark.parametrize("dtype", [item for item in DataType if item not in (DataType.UNDEFINED,)], ids=str)
def test_elements_of_each_type_survive(dtype):
    """A small constant of every element type is printed in full and parsed to equal elements."""
    array = np.array(["0", "1", "a\ud800"], object) if dtype is DataType.STRING else np.array([1, 1, 2]).astype(dtype.numpy)
    graph = Graph("g")
    graph.add_initializer(Tensor.from_array(array, "c"))
    parsed = parse_graph(print_graph(graph))
    tensor = parsed.initializers["c"].constant
    assert tensor.dtype is dtype
    assert tensor.numpy().tolist() == array.tolist()


@pytest.mark.parametrize("dtype", [item for item in DataType if is_float(item) and item is not DataType.FLOAT8E8M0], ids=str)
def test_floats_survive_bit_by_bit(dtype):
    """Random floats of each width come back with the same bits."""
    numbers = np.random.default_rng(1).standard_normal(200) * 10.0 ** np.arange(-5, 5).repeat(20)
    array = np.clip(numbers, -6, 6).astype(dtype.numpy)
    graph = Graph("g")
    graph.add_initializer(Tensor.from_array(array, "c"))
    parsed = parse_graph(print_graph(graph, max_elements=None))
    assert parsed.initializers["c"].constant.numpy().tobytes() == array.tobytes()


def test_attributes_of_all_kinds_survive():
    """Every attribute kind, filled and empty, comes back with its kind and value."""
    tensor = Tensor.from_array(np.array([1, 2], np.int64))
    body = Graph("inner")
    attributes = {
        "f": 1.0,
        "i": -3,
        "s": 'a"\n',
        "t": tensor,
        "g": body,
        "fs": [0.5, 1e30],
        "ns": [1, 2],
        "ss": ["a", ""],
        "ts": [tensor],
        "gs": [Graph("a"), Graph("b")],
        "sp": SparseTensor(tensor, tensor, (4,)),
        "sps": [SparseTensor(tensor, tensor, (2, 2))],
        "ty": SequenceType(TensorType(DataType.FLOAT, (1, symbol("n")))),
        "tys": [OptionalType(None), MapType(DataType.STRING, None), SparseTensorType(DataType.INT8, (3,))],
        "odd name": 1,
    }
    empties = {kind.name.lower(): Attribute(kind, ()) for kind in AttributeKind if kind.name.endswith("S")}
    references = {f"r{kind.name}": Attribute(kind, None, "outer") for kind in AttributeKind}
    node = Node("Odd.Op", [], 1, {**attributes, **empties, **references}, domain="my domain", version=1)
    text = print_graph(Graph("g", nodes=[node], outputs=node.outputs))
    (parsed,) = parse_graph(text)
    assert (parsed.domain, parsed.op_type) == ("my domain", "Odd.Op")
    assert {name: (a.kind, a.reference) for name, a in parsed.attributes.items()} == {
        name: (a.kind, a.reference) for name, a in node.attributes.items()
    }
    plain = ["f", "i", "s", "fs", "ns", "ss", "ty", "tys"]
    assert [parsed.get(name) for name in plain[:3]] == [1.0, -3, 'a"\n']
    assert parsed.get("ns") == (1, 2)
    assert parsed.get("ss") == ("a", "")
    assert parsed.get("ty") == node.get("ty")
    assert parsed.get("tys") == node.get("tys")
    assert parsed.get("sp").shape == (4,)
    assert print_graph(parsed.graph) == text


def test_values_without_name_or_with_a_taken_one_are_numbered():
    """A nameless value, and one whose name another has, are printed as %0, %1 and stay different values."""
    x = Value("x", TensorType(DataType.FLOAT, ()))
    first = Node("Relu", [x], 1, version=21)
    second = Node("Relu", [first.output], [Value("x")], version=21)
    text = print_graph(Graph("", [x], second.outputs, nodes=[first, second]), opset_imports={"": 21})
    assert "%0 = Relu(x)\n" in text
    assert "%1 = Relu(%0)\n" in text
    parsed = parse_graph(text)
    assert [node.output.name for node in parsed] == ["", ""]
    assert parsed.outputs[0].producer.inputs[0].producer.inputs[0] is parsed.inputs[0]


def test_anonymous_dimensions_stay_equal_and_different():
    """An anonymous dimension that occurs twice is one dimension again; others differ."""
    shared, alone = anonymous(), anonymous()
    x = Value("x", TensorType(DataType.FLOAT, (shared, alone)))
    y = Value("y", TensorType(DataType.FLOAT, (shared, symbol("a b"))))
    text = print_graph(Graph("", [x, y]))
    assert "x: float[?0, ?]" in text
    parsed = parse_graph(text)
    (first, second), (third, fourth) = (value.shape for value in parsed.inputs)
    assert first == third
    assert first != second
    assert fourth == symbol("a b")


def test_initializer_that_is_an_input_too_is_one_value():
    """A constant whose name is among the inputs gives that input its default."""
    graph = parse_graph("graph(w: float[1]) -> (w) { w: float[1] = [3.0] }")
    assert graph.initializers["w"] is graph.inputs[0]
    assert graph.outputs[0].constant.numpy().tolist() == [3.0]


def test_types_between_nodes_can_be_left_out():
    """With types=False only inputs, outputs and constants show types."""
    graph = parse_graph("graph(x: float[1]) -> (y: float[1]) { h: float[1] = Relu(x)\n y = Relu(h) }")
    assert "h: float" in print_graph(graph)
    assert "h: float" not in print_graph(graph, types=False)


def test_print_follows_edits():
    """A model made by hand, with a function, prints what it holds."""
    x = Value("x")
    model = Model(Graph("g", [x], [x]), {"": 20})
    model.functions["d", "F", ""] = Function("d", "F", Graph("F"), {"": 20})
    assert print_model(model) == "ir_version 10\nopset 20\ngraph g(x) -> (x) {\n}\nfunction d.F() -> () {\n    opset 20\n}\n"
