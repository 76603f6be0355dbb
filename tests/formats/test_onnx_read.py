"""ModelProto to a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.protos import info, model, node, tensor

from sardonyx import trace
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph, InvalidProtobuf
from sardonyx.formats.external_data import ExternalData
from sardonyx.formats.files import MemoryContent
from sardonyx.formats.onnx_read import read_model
from sardonyx.formats.onnx_tensor import TensorReader
from sardonyx.ir import Model, TensorType, symbol
from sardonyx.ir.verify import verify

ADD = node("Add", ["x", "w"], ["y"], "add")
W = tensor("w", np.ones(2, np.float32))


def read(proto: onnx.ModelProto) -> Model:
    found = read_model(proto, TensorReader(MemoryContent(memoryview(b"")), {}, ExternalData(None)), None)
    verify(found)
    return found


def read_traced(proto: onnx.ModelProto) -> tuple[Model, dict[str, dict[str, Any]]]:
    events: dict[str, dict[str, Any]] = {}
    with trace.observe(lambda event: events.update({event.name: event.details})):
        return read(proto), events


def branch(nodes: list[onnx.NodeProto], output: str = "b") -> onnx.GraphProto:
    return helper.make_graph(nodes, "branch", [], [info(output)])


def conditional(then: list[onnx.NodeProto], before: Sequence[onnx.NodeProto] = (), after: Sequence[onnx.NodeProto] = ()) -> Any:
    """A model whose If has the nodes `then` as its then_branch, and Neg as the other."""
    chosen = node("If", ["c"], ["y"], "if", then_branch=branch(then), else_branch=branch([node("Neg", ["x"], ["b"])]))
    return model([*before, chosen, *after], ["x", info("c", (), TensorProto.BOOL)])


def test_names_become_links() -> None:
    """A node reads the values that the graph and other nodes produce."""
    found = read(model([ADD, node("Relu", ["y"], ["z"])], outputs=["z"], initializers=[W]))
    add, relu = found.graph
    assert add.inputs == (found.graph.inputs[0], found.graph.initializers["w"])
    assert relu.inputs == add.outputs
    assert found.graph.outputs == relu.outputs
    assert (add.name, add.op_type, add.domain, add.version) == ("add", "Add", "", 21)


def test_what_a_model_says_of_itself_is_kept() -> None:
    """Producer, versions, texts and metadata are read."""
    proto = model([ADD], initializers=[W], ir_version=9)
    proto.producer_name, proto.producer_version, proto.domain, proto.model_version, proto.doc_string = "p", "1", "d", 3, "doc"
    proto.graph.doc_string, proto.graph.node[0].doc_string = "graph", "node"
    for props in (proto.metadata_props, proto.graph.metadata_props, proto.graph.input[0].metadata_props):
        props.add(key="k", value="v")
    found = read(proto)
    assert (found.producer_name, found.producer_version, found.domain, found.version, found.doc) == ("p", "1", "d", 3, "doc")
    assert (found.ir_version, found.opset_imports) == (9, {"": 21})
    assert (found.graph.name, found.graph.doc, next(iter(found.graph)).doc) == ("main", "graph", "node")
    assert found.metadata == found.graph.metadata == found.graph.inputs[0].metadata == {"k": "v"}


def test_node_metadata_is_read() -> None:
    """Nodes have metadata since IR version 10."""
    proto = model([ADD], initializers=[W])
    proto.graph.node[0].metadata_props.add(key="k", value="v")
    assert next(iter(read(proto).graph)).metadata == {"k": "v"}


def test_types_come_from_inputs_value_info_and_outputs() -> None:
    """Whatever the file declares about a value is its type."""
    proto = model([node("Relu", ["x"], ["t"]), node("Relu", ["t"], ["y"])], [info("x", ("n", 3))], [info("y", None)])
    proto.graph.value_info.append(info("t", (4,), TensorProto.DOUBLE))
    proto.graph.value_info.append(info("unknown"))
    first, second = read(proto).graph
    assert first.inputs[0] is not None
    assert first.inputs[0].type == TensorType(DataType.FLOAT, (symbol("n"), 3))
    assert first.output.type == TensorType(DataType.DOUBLE, (4,))
    assert second.output.type == TensorType(DataType.FLOAT, None)


def test_optional_inputs_and_outputs_may_be_left_out() -> None:
    """An empty name is None among the inputs, and a nameless value among the outputs."""
    proto = model([node("Clip", ["x", "", "w"], ["y"]), node("Dropout", ["x"], ["z", ""])], initializers=[W])
    clip, dropout = read(proto).graph
    assert clip.inputs[1] is None
    assert [value.name for value in dropout.outputs] == ["z", ""]


def test_the_long_name_of_the_standard_domain_is_the_empty_one() -> None:
    """`ai.onnx` and "" are one domain, in imports and nodes."""
    found = read(model([node("Relu", ["x"], ["y"], domain="ai.onnx")], imports={"ai.onnx": 17}))
    assert [(item.domain, item.version) for item in found.graph] == [("", 17)]
    assert found.opset_imports == {"": 17}


@pytest.mark.parametrize(("ir_version", "opset"), [(3, 1), (14, 28), (99, 9999), (10**12, 10**12)])
def test_no_version_is_refused(ir_version: int, opset: int) -> None:
    """Numbers from before and after this release are read alike."""
    found = read(model([node("Relu", ["x"], ["y"])], ir_version=ir_version, imports={"": opset}))
    assert found.ir_version == ir_version
    assert next(iter(found.graph)).version == opset


@pytest.mark.parametrize(
    ("domain", "version"), [("com.microsoft", 1), ("ai.onnx.ml", onnx.defs.onnx_ml_opset_version()), ("my", 1)]
)
def test_a_domain_without_import_is_read_at_its_latest_version(domain: str, version: int) -> None:
    """ONNX Runtime does so, too; the event tells."""
    found, events = read_traced(model([node("Thing", ["x"], ["y"], domain=domain)]))
    assert next(iter(found.graph)).version == found.opset_imports[domain] == version
    assert events["load.missing_opset_import"] == {"domain": domain, "fallback": version}


def test_the_first_ir_versions_have_opset_1() -> None:
    """Before IR version 3 there were no imports."""
    proto = model([node("Relu", ["x"], ["y"])], ir_version=2)
    del proto.opset_import[:]
    assert next(iter(read(proto).graph)).version == 1


def test_a_model_without_any_import_is_refused() -> None:
    """What its operators mean is open; the message says what to add."""
    proto = model([node("Relu", ["x"], ["y"])])
    del proto.opset_import[:]
    with pytest.raises(InvalidGraph, match=r"node \(Relu\) -> \['y'\]: the model imports no operator set"):
        read(proto)


def test_constant_nodes_become_initializers() -> None:
    """A Constant that holds a tensor is no step of a run."""
    constant = node("Constant", [], ["w"], value=tensor("other", np.ones(2, np.float32)))
    found = read(model([constant, ADD]))
    assert [item.op_type for item in found.graph] == ["Add"]
    assert found.graph.initializers["w"].type == TensorType(DataType.FLOAT, (2,))


@pytest.mark.parametrize(
    "constant", [node("Constant", [], ["w"], value_float=1.0), node("Constant", [], ["w"], domain="my", value=W)]
)
def test_other_constant_nodes_stay(constant: onnx.NodeProto) -> None:
    """Constants of other attributes or other domains are nodes."""
    assert [item.op_type for item in read(model([constant, ADD])).graph] == ["Constant", "Add"]


def test_nodes_out_of_order_are_sorted() -> None:
    """An acyclic graph is sorted and an event says so."""
    found, events = read_traced(model([node("Relu", ["t"], ["y"]), node("Neg", ["x"], ["t"])]))
    assert [item.op_type for item in found.graph] == ["Neg", "Relu"]
    assert events["load.sorted"] == {"graph": "main", "nodes": 2}


def test_a_constant_may_come_late() -> None:
    """A Constant after its reader needs no sorting to be right."""
    found = read(model([ADD, node("Constant", [], ["w"], value=W)]))
    assert [item.op_type for item in found.graph] == ["Add"]


def test_an_initializer_may_be_an_input_too() -> None:
    """Up to IR version 3 every initializer is; it is one value."""
    found = read(model([ADD], ["x", "w"], initializers=[W], ir_version=3))
    assert found.graph.inputs[1] is found.graph.initializers["w"]
    assert found.graph.inputs[1].constant is not None


def test_the_last_of_two_initializers_counts() -> None:
    """ONNX Runtime warns and takes the latest; so does the event."""
    found, events = read_traced(model([ADD], initializers=[W, tensor("w", np.zeros(2, np.float32))]))
    constant = found.graph.initializers["w"].constant
    assert constant is not None
    assert constant.numpy().tolist() == [0, 0]
    assert "load.duplicate_initializer" in events


def test_a_constant_counts_before_an_initializer_of_its_name() -> None:
    """Exporters write both, and ONNX Runtime takes the node's value."""
    found, events = read_traced(
        model([node("Constant", [], ["w"], value=tensor("", np.zeros(2, np.float32))), ADD], initializers=[W])
    )
    constant = found.graph.initializers["w"].constant
    assert constant is not None
    assert constant.numpy().tolist() == [0, 0]
    assert "load.duplicate_initializer" in events


@pytest.mark.parametrize("name", ["value", "sparse_value"])
def test_sparse_constants_become_dense_initializers(name: str) -> None:
    """ONNX Runtime takes a sparse tensor in either attribute."""
    sparse = helper.make_sparse_tensor(tensor("", np.ones(1, np.float32)), tensor("", np.array([1])), [2])
    constant = read(model([node("Constant", [], ["w"], **{name: sparse}), ADD])).graph.initializers["w"].constant
    assert constant is not None
    assert constant.numpy().tolist() == [0, 1]


def test_sparse_initializers_become_dense() -> None:
    """A sparse initializer is a constant like any other."""
    proto = model([ADD])
    sparse = helper.make_sparse_tensor(tensor("w", np.ones(1, np.float32)), tensor("", np.array([1])), [2])
    proto.graph.sparse_initializer.append(sparse)
    constant = read(proto).graph.initializers["w"].constant
    assert constant is not None
    assert constant.numpy().tolist() == [0, 1]


def test_an_annotation_of_no_tensor_is_ignored_aloud() -> None:
    """A quantization annotation whose tensor is not there is left out, and an event says so."""
    proto = model([ADD], initializers=[W])
    proto.graph.quantization_annotation.add(tensor_name="nobody")
    assert read_traced(proto)[1]["load.ignored"] == {"what": "quantization_annotation", "tensor": "nobody"}


def test_subgraphs_read_the_values_around_them() -> None:
    """A captured name is the outer value itself, also two levels up."""
    branches = {"then_branch": branch([node("Neg", ["t"], ["b"])]), "else_branch": branch([node("Abs", ["x"], ["b"])])}
    inner = node("If", ["c"], ["b"], **branches)
    found = read(conditional([inner], before=[node("Relu", ["x"], ["t"])]))
    relu, outer = found.graph
    (middle,) = outer.get("then_branch")
    (neg,), (absolute,) = middle.get("then_branch"), middle.get("else_branch")
    assert neg.inputs == relu.outputs
    assert absolute.inputs == (found.graph.inputs[0],)


def test_a_subgraph_may_capture_what_comes_later() -> None:
    """An outer graph out of order is sorted by what subgraphs capture, too."""
    found = read(conditional([node("Neg", ["t"], ["b"])], after=[node("Relu", ["x"], ["t"])]))
    assert [item.op_type for item in found.graph] == ["Relu", "If"]


def test_a_subgraph_may_give_out_an_outer_value() -> None:
    """Its output is then the outer value itself."""
    proto = conditional([])
    for attribute in proto.graph.node[0].attribute:
        attribute.g.output[0].name = "x"
    found = read(proto)
    assert next(iter(found.graph)).get("then_branch").outputs == (found.graph.inputs[0],)


def test_functions_keep_their_bodies() -> None:
    """Inputs, outputs, attributes, defaults, references and imports of a function are read."""
    body = [node("LeakyRelu", ["a"], ["t"]), node("Constant", [], ["k"], value=W), node("Add", ["t", "k"], ["b"])]
    body[0].attribute.append(onnx.AttributeProto(name="alpha", type=onnx.AttributeProto.FLOAT, ref_attr_name="slope"))
    function = helper.make_function(
        "my", "F", ["a"], ["b"], body, [helper.make_opsetid("", 16)], ["slope"], [helper.make_attribute("other", 1)], overload="o"
    )
    found = read(model([node("F", ["x"], ["y"], domain="my", overload="o")], imports={"": 21, "my": 2}, functions=[function]))
    read_function = found.functions["my", "F", "o"]
    leaky, constant, add = read_function.graph
    assert leaky.attributes["alpha"].reference == "slope"
    assert [item.version for item in read_function.graph] == [16, 16, 16]
    assert constant.op_type == "Constant"
    assert read_function.graph.outputs == add.outputs
    assert read_function.attributes["slope"] is None
    assert read_function.attributes["other"] is not None
    assert next(iter(found.graph)).overload == "o"


def test_a_function_without_import_is_read_as_the_model_says() -> None:
    """What a function does not import, the model does."""
    function = helper.make_function("my", "F", ["a"], ["b"], [node("Relu", ["a"], ["b"])], [])
    found = read(model([node("F", ["x"], ["y"], domain="my")], imports={"": 13, "my": 1}, functions=[function]))
    assert [item.version for item in found.functions["my", "F", ""].graph] == [13]


RELU = node("Relu", ["x"], ["y"], "relu")


@pytest.mark.parametrize(
    ("proto", "message"),
    [
        (
            model([node("Add", ["x", "wieght"], ["y"], "add")], initializers=[tensor("weight", np.ones(2))]),
            r"node 'add' \(Add\): the value 'wieght' is produced by nothing: .*; did you mean 'weight'\?",
        ),
        (model([RELU, node("Neg", ["x"], ["y"], "neg")]), r"node 'neg' \(Neg\): the value 'y' has two .* node 'relu' \(Relu\)"),
        (model([node("Relu", ["x"], ["x"])]), "the value 'x' has two producers.* an input or initializer of the graph"),
        (model([node("Relu", ["x"], ["w"]), ADD], initializers=[W]), "the value 'w' has two producers"),
        (model([node("Split", ["x"], ["y", "y"], "s")]), "the value 'y' has two producers"),
        (model([RELU], ["x", "x"]), "two inputs of the graph are called 'x'"),
        (model([RELU], outputs=["z"]), "output 'z' of graph 'main': the value 'z' is produced by nothing"),
        (model([node("", ["x"], ["y"], "n")]), r"node 'n' \(\): it has no op_type"),
        (model([RELU], [onnx.ValueInfoProto(name="x")]), "input 'x' of the main graph has no type"),
        (model([ADD], [info("w", (2,), TensorProto.INT32), "x"], initializers=[W]), r"'w' holds float, but .* tensor\(int32\)"),
        (model([ADD], initializers=[TensorProto(name="w", data_type=1, dims=[3])]), "initializer 'w' .* has no data"),
        (conditional([node("Neg", ["nowhere"], ["b"], "neg")]), r"node 'if' \(If\): node 'neg' \(Neg\): the value 'nowhere'"),
        (conditional([node("Neg", ["y"], ["b"])]), "graph 'main' has a cycle: node 'if' .* reads 'y'"),
        (
            model([RELU], imports={"": 21, "m": 1}, functions=[helper.make_function("m", "F", [], ["b"], [], [])]),
            "function 'm.F': output 'b' of graph 'F': the value 'b' is produced by nothing",
        ),
        (model([RELU], functions=[helper.make_function("m", "F", [], [], [], [])] * 2), "function 'm.F' is defined twice"),
        (model([node("Elu", ["x"], ["y"], "e", alpha="text")]), None),
    ],
)
def test_what_cannot_be_linked_is_refused(proto: onnx.ModelProto, message: str | None) -> None:
    """The message names node, operator and values, and says what was expected."""
    if message is None:
        read(proto)
        return
    with pytest.raises(InvalidGraph, match=message):
        read(proto)


def test_a_cycle_is_named_node_by_node() -> None:
    """Only the nodes on the cycle are listed, with the values between them."""
    nodes = [node("Add", ["x", "b"], ["a"], "first"), node("Relu", ["a"], ["b"], "second"), node("Neg", ["b"], ["y"], "after")]
    with pytest.raises(InvalidGraph, match=r"graph 'main' has a cycle: ") as caught:
        read(model(nodes))
    assert "'first' (Add) reads 'b'" in str(caught.value)
    assert "'second' (Relu) reads 'a'" in str(caught.value)
    assert "after" not in str(caught.value)


def test_a_node_that_reads_itself_is_a_cycle() -> None:
    """The shortest cycle has one node."""
    with pytest.raises(InvalidGraph, match="node 'n' .* reads 'y', which is produced by node 'n'"):
        read(model([node("Add", ["x", "y"], ["y"], "n")]))


def test_subgraphs_nested_too_deeply_are_refused() -> None:
    """A hostile message does not exhaust the stack."""
    proto = model([], outputs=[])
    graph = proto.graph
    for _ in range(70):
        graph = graph.node.add(op_type="If").attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH).g
    graph.name = "innermost"
    with pytest.raises(InvalidGraph, match="nested more than 64 levels deep"):
        read(proto)


@pytest.mark.parametrize("field", [b"\x0a", b"\x12", b"\x1a", b"\x22"], ids=["input", "output", "name", "op_type"])
def test_a_name_that_is_no_text_is_refused(field: bytes) -> None:
    """Names are UTF-8; protobuf lets others pass."""
    proto = model([RELU])
    proto.graph.node[0].MergeFromString(field + b"\x02\xff\xfe")
    with pytest.raises((InvalidProtobuf, InvalidGraph), match="UTF-8|produced by nothing"):
        read(proto)


def test_a_broken_attribute_names_its_node() -> None:
    """Errors of attributes say where they are."""
    broken = node("LeakyRelu", ["x"], ["y"], "leaky")
    broken.attribute.add(name="alpha", type=onnx.AttributeProto.INT, f=0.5)
    with pytest.raises(InvalidGraph, match=r"node 'leaky' \(LeakyRelu\): attribute 'alpha' says it is INT"):
        read(model([broken]))


@pytest.mark.parametrize("declared", ["sparse", "dense"])
def test_a_sparse_constant_that_is_an_output_is_sparse(declared: str) -> None:
    """Whatever the output is declared as, onnxruntime hands out a sparse tensor."""
    sparse = helper.make_sparse_tensor(tensor("", np.ones(1, np.float32)), tensor("", np.array([1])), [2])
    proto = model([node("Constant", [], ["y"], value=sparse)], [])
    make = helper.make_tensor_value_info if declared == "dense" else helper.make_sparse_tensor_value_info
    proto.graph.output[0].CopyFrom(make("y", onnx.TensorProto.FLOAT, [2]))
    assert str(read(proto).graph.outputs[0].type) == "sparse_tensor(float)"
