"""Kernels against the function bodies that the standard gives, on instances that hypothesis draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from onnx import helper
from support.backend_suite import cases_of
from support.compare import difference
from support.conformance import LEVELS
from support.function_instances import INSTANCES, WITHOUT, Draw, Instance

import sardonyx as ort
from sardonyx.formats.onnx import load
from sardonyx.ir import Model
from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.session.function_bodies import expand
from sardonyx.session.providers import REFERENCE

TOLERANCES = {"float64": 2e-5, "float32": 2e-5, "float16": 1e-2, "bfloat16": 6e-2}
"""How far a body may be off: it rounds after each of its operators, its constants and often its middle in single precision."""
CANCELLING = {"MeanVarianceNormalization": 2e-3}
"""Operators whose body subtracts the square of a mean from a mean of squares, and how far that may be off."""
QUICK = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
"""The same instances in every run; a failing one is shown as it was drawn, since building models makes shrinking slow."""


def model_of(op_type: str, instance: Instance) -> Any:
    """A ModelProto with one node."""
    names = [f"x{index}" if array is not None else "" for index, array in enumerate(instance.inputs)]
    outputs = [f"y{index}" for index in range(instance.outputs)]
    given = [(name, array) for name, array in zip(names, instance.inputs, strict=True) if name]
    values = [helper.make_tensor_value_info(name, _type_of(array), np.shape(array)) for name, array in given]
    node = helper.make_node(op_type, names, outputs, "the node", domain=instance.domain, **instance.attributes)
    graph = helper.make_graph([node], "one", values, [helper.make_empty_tensor_value_info(name) for name in outputs])
    imports = [helper.make_opsetid("", instance.version or onnx.defs.onnx_opset_version())]
    if instance.domain:
        imports.append(helper.make_opsetid(instance.domain, 1))
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def _type_of(array: Any) -> int:
    return int(helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype))


def run(model: Any, instance: Instance, names: Sequence[str] = ()) -> list[Any]:
    """The outputs of a ModelProto or of an ir.Model, without optimization; its inputs are called x0, x1 … or `names`."""
    options = ort.SessionOptions()
    options.graph_optimization_level = LEVELS["off"]
    session = ort.InferenceSession(model, options, providers=[REFERENCE])
    called = names or [f"x{index}" for index in range(len(instance.inputs))]
    feed = {name: np.asarray(array) for name, array in zip(called, instance.inputs, strict=True) if array is not None}
    return session.run(None, feed)


def expanded(proto: Any) -> Model:
    """The model with the body of "the node" in its place."""
    model = load(proto)
    INFER_SHAPES.run(model, Context())
    (node,) = (item for item in model.graph if item.name == "the node")
    assert expand(model, [node]), f"there is no body for {node!r}"
    assert all(inner.op_type != node.op_type for inner in model.graph)
    return model


def with_graphs_inside(proto: Any, types: list[Any]) -> Any:
    """The ModelProto with the last node calling its body, which holds the graphs that are its attributes; `types` of its inputs."""
    model = onnx.ModelProto.FromString(proto.SerializeToString())
    node = model.graph.node[-1]
    version = next(entry.version for entry in model.opset_import if entry.domain == node.domain)
    schema = onnx.defs.get_schema(node.op_type, version, node.domain)
    since = max(item for item in schema.context_dependent_function_opset_versions if item <= onnx.defs.onnx_opset_version())
    serialized = [item.SerializeToString() for item in types]
    written = schema.get_context_dependent_function_with_opset_version(since, node.SerializeToString(), serialized)
    function = onnx.FunctionProto.FromString(bytes(written))
    function.domain = node.domain = "bodies"
    del function.attribute[:], node.attribute[:]
    model.functions.append(function)
    model.opset_import.append(helper.make_opsetid("bodies", 1))
    return model


@pytest.mark.parametrize("op_type", INSTANCES)
@settings(QUICK)
@given(data=st.data())
def test_the_kernel_agrees_with_the_body(op_type: str, data: Any) -> None:
    """Types and shapes are equal, integers too; floating-point numbers within the body's rounding."""
    instance = INSTANCES[op_type](Draw(data.draw))
    proto = model_of(op_type, instance)
    found = run(proto, instance)
    has_graphs = any(isinstance(value, onnx.GraphProto) for value in instance.attributes.values())
    types = [item.type for item in proto.graph.input]
    wanted = run(with_graphs_inside(proto, types) if has_graphs else expanded(proto), instance)
    for index, (mine, other) in enumerate(zip(found, wanted, strict=True)):
        types = {np.asarray(array).dtype.name for array in (mine, *instance.inputs) if array is not None}
        bound = max(CANCELLING.get(op_type, 0.0), *(TOLERANCES.get(name, 0.0) for name in types))
        text = difference(other, mine, bound, bound)
        assert text is None, f"{op_type} {instance.attributes} on {_shown(instance)}, output {index}: {text}"


def _shown(instance: Instance) -> str:
    return ", ".join("none" if array is None else f"{np.asarray(array).dtype}{list(np.shape(array))}" for array in instance.inputs)


@settings(QUICK)
@given(data=st.data())
def test_SequenceMap_agrees_with_its_body(data: Any) -> None:
    """Over sequences of any length, with a tensor that goes along or a second sequence, and one output or two."""
    draw = Draw(data.draw)
    rank, count = draw.integer(0, 3), draw.integer(1, 4)
    elements = [draw.array([draw.integer(1, 4) for _ in range(rank)]) for _ in range(count)]
    others = [draw.array(element.shape) for element in elements] if draw.flag() else [draw.array([])]
    instance = Instance([*elements, *others])
    proto = sequence_map_model(rank, count, len(others) == count and count > 1, draw.integer(1, 2), len(others))
    sequence, tensor = helper.make_tensor_sequence_value_info("s", 1, None).type, proto.graph.input[-1].type
    types = [sequence, sequence if len(proto.graph.node) == 3 else tensor]
    for mine, other in zip(run(proto, instance), run(with_graphs_inside(proto, types), instance), strict=True):
        for left, right in zip(mine, other, strict=True):
            np.testing.assert_array_equal(left, right)


def sequence_map_model(rank: int, count: int, has_two_sequences: bool, outputs: int, others: int) -> Any:
    """SequenceMap over `count` inputs and, along with them, a second sequence or the first of the `others`."""
    shape = [None] * rank
    info = helper.make_tensor_value_info
    names = [f"x{index}" for index in range(count + others)]
    body = helper.make_graph(
        [helper.make_node("Sub", ["a", "b"], ["y0"]), helper.make_node("Exp", ["a"], ["y1"])][:outputs],
        "body",
        [info("a", 1, shape), info("b", 1, None)],
        [info(f"y{index}", 1, None) for index in range(outputs)],
    )
    nodes = [helper.make_node("SequenceConstruct", names[:count], ["s"])]
    along = names[count]
    if has_two_sequences:
        nodes.append(helper.make_node("SequenceConstruct", names[count:], ["t"]))
        along = "t"
    results = [f"z{index}" for index in range(outputs)]
    nodes.append(helper.make_node("SequenceMap", ["s", along], results, "the node", body=body))
    graph = helper.make_graph(
        nodes,
        "one",
        [info(name, 1, shape if index < count or others > 1 else None) for index, name in enumerate(names)],
        [helper.make_tensor_sequence_value_info(name, 1, None) for name in results],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", onnx.defs.onnx_opset_version())], ir_version=10)


@pytest.mark.parametrize("probability", [0.0, 1.0])
def test_the_body_of_Bernoulli_is_the_wrong_way_round(probability: float) -> None:
    """Where the probability is 0 or 1 the operator gives it back, as its text says, and the body the other."""
    given_ = np.full(10, probability)
    found = {}
    for name in ("test_bernoulli", "test_bernoulli_expanded"):
        (case,) = (item for item in cases_of("node") if item.name == name)
        (found[name],) = run(case.proto, Instance([given_]), [item.name for item in case.proto.graph.input])
    np.testing.assert_array_equal(found["test_bernoulli"], given_)
    np.testing.assert_array_equal(found["test_bernoulli_expanded"], 1 - given_)


def test_every_operator_with_a_body_is_compared() -> None:
    """Each operator of the standard that has a body is drawn here or compared elsewhere."""
    bodied = {item.name for item in onnx.defs.get_all_schemas() if item.has_function or item.has_context_dependent_function}
    assert bodied <= INSTANCES.keys() | WITHOUT.keys()
