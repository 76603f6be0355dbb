"""Small edits of graphs."""

import numpy as np
from support.optimizing import body, model_of, operators

from sardonyx.ir import Value
from sardonyx.ir.text import parse_graph, print_graph
from sardonyx.ir.verify import verify
from sardonyx.optimize.edit import (
    Names,
    clone_graph,
    clone_model,
    inherit_metadata,
    overridable_values,
    remove_dead,
    replace_value,
    small_constant,
    take_over,
    tensor_of,
)


def test_names_differ_from_those_of_the_model():
    """A fresh name is none of the model's, at any depth, and none given before."""
    model = model_of("""graph(x, c) -> (y) { w: float[] = 1.0
        y = If(c) {then_branch = graph() -> (inner) { inner = Neg(x) }, else_branch = graph() -> (x) {}} }""")
    names = Names.of(model)
    assert [names.fresh(base) for base in ("x", "x", "inner", "w", "new", "")] == ["x_1", "x_2", "inner_1", "w_1", "new", "_1"]


def test_constants_are_told_from_defaults():
    """tensor_of knows initializers and Constant nodes; an input with a default is no constant."""
    model = model_of("""graph(x, d: float[1]) -> (y) { d: float[1] = [1] w: float[1] = [2]
        k = Constant() {value: float[] = 3.0} y = Add(k, w) }""")
    _, default = model.graph.inputs
    constant, add = model.graph
    overridable = overridable_values(model)
    assert overridable == {default}
    assert tensor_of(default, overridable) is None
    assert tensor_of(add.inputs[1], overridable).numpy().tolist() == [2.0]
    assert small_constant(constant.output).tolist() == 3.0
    assert small_constant(add.inputs[1], max_elements=0) is None
    assert tensor_of(None) is None


def test_removal_goes_upwards():
    """Removing a dead node removes what only it used, captures of its subgraphs included."""
    model = model_of("""graph(x, c) -> (x) { a = Neg(x) b = Exp(a)
        y = If(c) {then_branch = graph() -> (b) {}, else_branch = graph() -> (t) { t = Abs(a) }} }""")
    *_, last = model.graph
    removed = remove_dead([last])
    assert [node.op_type for node in removed] == ["If", "Exp", "Neg"]
    assert len(model.graph) == 0


def test_used_nodes_are_not_removed():
    """A node that something uses stays."""
    model = model_of("graph(x) -> (b) { a = Neg(x) b = Exp(a) }")
    assert remove_dead(list(model.graph)) == []


def test_replacement_of_an_output_needs_a_value_of_the_same_graph():
    """replace_value refuses where an output could not keep its name, and does nothing then."""
    model = model_of("graph(x) -> (y) { a = Neg(x) y = Identity(a) }")
    first, second = model.graph
    assert not replace_value(second.output, model.graph.inputs[0])
    assert replace_value(second.output, first.output)
    remove_dead([second])
    verify(model)
    assert body(model) == "graph(x) -> (y) {\n    y = Neg(x)\n}\n"


def test_takeover_gives_the_identity_a_version():
    """Where an Identity keeps an output's name, it has the version asked for."""
    model = model_of("graph(x) -> (y) { y = Neg(x) }")
    (node,) = model.graph
    take_over(node.output, model.graph.inputs[0], 17)
    remove_dead([node])
    (identity,) = model.graph
    assert (identity.op_type, identity.version) == ("Identity", 17)


def test_copies_of_graphs_share_only_what_they_capture():
    """A copied graph has values of its own, at every depth; what it captures is looked up or stays."""
    text = """graph g(x: float[2], c: bool[]) -> (y) { w: float[2] = [1, 2] a = Add(x, w)
        y = If(c) {then_branch = graph() -> (t) { t = Neg(a) }, else_branch = graph() -> (a) {}} }"""
    graph = parse_graph(text)
    copy = clone_graph(graph, {})
    assert print_graph(copy) == print_graph(graph)
    own = {value for node in graph for value in node.outputs} | set(graph.inputs)
    assert not own & {value for node in copy for value in node.outputs}
    outer = Value("outer")
    inner = parse_graph("graph() -> (b) { b = Neg(z) z = Exp(b) }")
    z = next(iter(inner)).inputs[0]
    assert next(iter(clone_graph(inner, {z: outer}))).inputs[0] is outer


def test_copies_keep_constants_as_they_are():
    """The tensor of a copied initializer is the same object: data is not copied."""
    graph = parse_graph("graph() -> (w) { w: float[2] = [1, 2] }")
    copy = clone_graph(graph, {})
    assert copy.initializers["w"] is not graph.initializers["w"]
    assert copy.initializers["w"].constant is graph.initializers["w"].constant
    assert np.array_equal(copy.outputs[0].constant.numpy(), [1, 2])


def test_new_nodes_inherit_metadata():
    """Of two texts under one key the first node's stays, and what a new node has of its own."""
    model = model_of("graph(x) -> (c) { a = Neg(x) b = Exp(a) c = Abs(b) }")
    first, second, new = model.graph
    first.metadata, second.metadata, new.metadata = {"k": "1"}, {"k": "2", "m": "3"}, {"own": "4"}
    inherit_metadata([first, second], [new])
    assert new.metadata == {"k": "1", "m": "3", "own": "4"}


def test_a_copy_of_a_model_is_another_model():
    """What it says of itself is the same; changing one leaves the other."""
    model = model_of("graph(x: float[2]) -> (y) { y = Neg(x) }")
    model.producer_name, model.metadata = "test", {"key": "text"}
    copy = clone_model(model)
    copy.metadata["key"] = "other"
    next(iter(copy.graph)).op_type = "Abs"
    assert (copy.producer_name, model.metadata, operators(model), operators(copy)) == ("test", {"key": "text"}, ["Neg"], ["Abs"])
