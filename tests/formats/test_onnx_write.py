"""A model to ModelProto."""

from __future__ import annotations

import numpy as np
import onnx
from support.protos import model as proto_model
from support.protos import node as proto_node
from support.protos import tensor

from sardonyx import trace
from sardonyx.dtypes import DataType
from sardonyx.formats.onnx_tensor import write_tensor
from sardonyx.formats.onnx_write import write_model
from sardonyx.ir import Attribute, AttributeKind, Function, Graph, Model, Node, Tensor, TensorType, Value

FLOATS = TensorType(DataType.FLOAT, (2,))


def written(model: Model, *, check: bool = True) -> onnx.ModelProto:
    proto = onnx.ModelProto()
    write_model(proto, model, write_tensor)
    if check:
        onnx.checker.check_model(proto, full_check=True)
    return proto


def chain(*names: str) -> Model:
    """A chain of Relu from x to y, through values with the names given."""
    value = source = Value("x", FLOATS)
    nodes = []
    for name in (*names, "y"):
        nodes.append(Node("Relu", [value], 1, version=21))
        value = nodes[-1].output
        value.name = name
    value.type = FLOATS
    return Model(Graph("main", [source], [value], nodes=nodes), {"": 21})


def test_names_are_kept() -> None:
    """A model whose names are all there and different is written under them."""
    proto = written(chain("a", "b"))
    assert [(list(node.input), list(node.output)) for node in proto.graph.node] == [(["x"], ["a"]), (["a"], ["b"]), (["b"], ["y"])]


def test_values_without_a_name_get_one() -> None:
    """Each gets a name of its own that no other value has."""
    proto = written(chain("", "value_1", ""))
    outputs = [node.output[0] for node in proto.graph.node]
    assert len(set(outputs)) == 4
    assert "" not in outputs


def test_the_interface_keeps_its_names() -> None:
    """Where an inner value has the name of an output, it is the inner one that is renamed."""
    proto = written(chain("y", "x"))
    assert proto.graph.input[0].name == "x"
    assert proto.graph.output[0].name == "y"
    assert proto.graph.node[0].output[0] == "y_1"
    assert proto.graph.node[1].output[0] == "x_1"


def test_unread_outputs_without_a_name_stay_without() -> None:
    """An output that nobody reads is the empty name that leaves it out."""
    source = Value("x", FLOATS)
    node = Node("Dropout", [source], 2, version=21)
    node.outputs[0].name, node.outputs[0].type = "y", FLOATS
    proto = written(Model(Graph("main", [source], [node.outputs[0]], nodes=[node]), {"": 21}))
    assert list(proto.graph.node[0].output) == ["y", ""]


def test_nodes_have_different_names() -> None:
    """The first keeps a name that several have; no name is no name."""
    model = chain("a", "b", "c", "d", "e")
    for node, name in zip(model.graph, ["n", "n", "n_1", "n", "", ""], strict=False):
        node.name = name
    assert [node.name for node in written(model).graph.node][:5] == ["n", "n_1", "n_1_1", "n_2", ""]


def test_inputs_left_out_are_empty() -> None:
    """None is the empty name."""
    source, bound = Value("x", FLOATS), Value("max", TensorType(DataType.FLOAT, ()))
    node = Node("Clip", [source, None, bound], 1, version=21)
    node.output.name, node.output.type = "y", FLOATS
    proto = written(Model(Graph("main", [source, bound], [node.output], nodes=[node]), {"": 21}))
    assert list(proto.graph.node[0].input) == ["x", "", "max"]


def test_subgraphs_do_not_shadow_the_values_around_them() -> None:
    """A name that the outer graph has is not used again inside; two branches may share one."""
    condition, source = Value("c", TensorType(DataType.BOOL, ())), Value("x", FLOATS)
    branches = []
    for _ in range(2):
        inner = Node("Relu", [source], 1, version=21)
        last = Node("Neg", [inner.output], 1, version=21)
        inner.output.name, last.output.name, last.output.type = "y", "z", FLOATS
        branches.append(Graph("branch", [], [last.output], nodes=[inner, last]))
    choice = Node("If", [condition], 1, {"then_branch": branches[0], "else_branch": branches[1]}, version=21)
    choice.output.name, choice.output.type = "y", FLOATS
    proto = written(Model(Graph("main", [condition, source], [choice.output], nodes=[choice]), {"": 21}))
    outputs = [[item.output[0] for item in attribute.g.node] for attribute in proto.graph.node[0].attribute]
    assert [names[1] for names in outputs] == ["z", "z"]
    assert all(names[0] not in ("x", "y", "c", "z") for names in outputs)


def test_types_of_inner_values_are_written() -> None:
    """What is known of a value between two nodes is kept as value_info."""
    model = chain("a")
    first = next(iter(model.graph))
    first.output.type = FLOATS
    (info,) = written(model).graph.value_info
    assert (info.name, info.type.tensor_type.elem_type) == ("a", onnx.TensorProto.FLOAT)


def test_missing_imports_are_added() -> None:
    """A domain that only a node knows is imported at the node's version."""
    model = chain("a")
    first = next(iter(model.graph))
    first.domain, first.version = "com.microsoft", 1
    assert {entry.domain: entry.version for entry in written(model).opset_import} == {"": 21, "com.microsoft": 1}


def test_a_node_of_another_version_is_reported() -> None:
    """A file has one version per domain: a node that was made under another is written under it, with an event."""
    model = chain("a")
    next(iter(model.graph)).version = 6
    events = []
    with trace.observe(events.append):
        written(model)
    assert [(event.name, event.details["written_as"]) for event in events] == [("save.version_differs", 21)]


def test_the_ir_version_is_raised_to_what_the_model_needs() -> None:
    """Initializers that are no inputs need version 4, functions 8, overloads 10."""
    model = chain()
    model.ir_version = 3
    assert written(model).ir_version == 4
    model.functions["d", "F", ""] = Function("d", "F", Graph("F"), {"": 21})
    assert written(model, check=False).ir_version == 8
    model.functions["d", "F", "o"] = Function("d", "F", Graph("F"), {"": 21}, overload="o")
    assert written(model, check=False).ir_version == 10


def test_functions_are_written_with_references_and_defaults() -> None:
    """The body, its attributes and its imports are there, and the model imports the function's domain."""
    source = Value("a")
    body = Node("LeakyRelu", [source], 1, {"alpha": Attribute(AttributeKind.FLOAT, None, "slope")}, version=16)
    graph = Graph("F", [source], [body.output], nodes=[body])
    attributes: dict[str, Attribute | None] = {"slope": None, "other": Attribute.of(1)}
    model = chain()
    model.functions["d", "F", ""] = Function("d", "F", graph, {"": 16}, attributes=attributes)
    proto = written(model)
    (function,) = proto.functions
    assert (function.domain, function.name, list(function.input), list(function.output)) == ("d", "F", ["a"], ["value_1"])
    assert list(function.attribute) == ["slope"]
    assert [attribute.name for attribute in function.attribute_proto] == ["other"]
    assert function.node[0].attribute[0].ref_attr_name == "slope"
    assert {entry.domain: entry.version for entry in proto.opset_import} == {"": 21, "d": 1}


def test_initializers_are_written_with_their_data() -> None:
    """The message is what the onnx package itself would have made."""
    weight = Value("w", FLOATS, Tensor.from_array(np.ones(2, np.float32)))
    source = Value("x", FLOATS)
    add = Node("Add", [source, weight], 1, version=21)
    add.output.name, add.output.type = "y", FLOATS
    model = Model(Graph("main", [source], [add.output], [weight], [add]), {"": 21})
    expected = proto_model([proto_node("Add", ["x", "w"], ["y"])], initializers=[tensor("w", np.ones(2, np.float32))])
    assert written(model).graph == expected.graph
