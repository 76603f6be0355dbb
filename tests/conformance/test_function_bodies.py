"""Kernels against the function bodies that the standard gives, on instances that hypothesis draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from onnx import helper
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
    node = helper.make_node(op_type, names, outputs, "the node", **instance.attributes)
    graph = helper.make_graph([node], "one", values, [helper.make_empty_tensor_value_info(name) for name in outputs])
    version = instance.version or onnx.defs.onnx_opset_version()
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=10)


def _type_of(array: Any) -> int:
    return int(helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype))


def run(model: Any, instance: Instance) -> list[Any]:
    """The outputs of a ModelProto or of an ir.Model, without optimization."""
    options = ort.SessionOptions()
    options.graph_optimization_level = LEVELS["off"]
    session = ort.InferenceSession(model, options, providers=[REFERENCE])
    return session.run(None, {f"x{index}": np.asarray(array) for index, array in enumerate(instance.inputs) if array is not None})


def expanded(proto: Any) -> Model:
    """The model with the node's body in its place."""
    model = load(proto)
    INFER_SHAPES.run(model, Context())
    (node,) = model.graph
    assert expand(model, [node]), f"there is no body for {node!r}"
    assert all(inner.op_type != node.op_type for inner in model.graph)
    return model


@pytest.mark.parametrize("op_type", INSTANCES)
@settings(QUICK)
@given(data=st.data())
def test_the_kernel_agrees_with_the_body(op_type: str, data: Any) -> None:
    """Types and shapes are equal, integers too; floating-point numbers within the body's rounding."""
    instance = INSTANCES[op_type](Draw(data.draw))
    proto = model_of(op_type, instance)
    found = run(proto, instance)
    wanted = run(expanded(proto), instance)
    for index, (mine, other) in enumerate(zip(found, wanted, strict=True)):
        types = {np.asarray(array).dtype.name for array in (mine, *instance.inputs) if array is not None}
        bound = max(CANCELLING.get(op_type, 0.0), *(TOLERANCES.get(name, 0.0) for name in types))
        text = difference(other, mine, bound, bound)
        assert text is None, f"{op_type} {instance.attributes} on {_shown(instance)}, output {index}: {text}"


def _shown(instance: Instance) -> str:
    return ", ".join("none" if array is None else f"{np.asarray(array).dtype}{list(np.shape(array))}" for array in instance.inputs)


def test_every_operator_with_a_body_is_compared() -> None:
    """Each operator of the standard that has a body is drawn here or compared elsewhere."""
    bodied = {item.name for item in onnx.defs.get_all_schemas() if item.has_function or item.has_context_dependent_function}
    assert bodied <= INSTANCES.keys() | WITHOUT.keys()
