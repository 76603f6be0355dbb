"""What changes no result is there again after loading and saving."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

import sardonyx
from sardonyx.formats import onnx as onnx_format


def note(proto: Any, text: str) -> None:
    proto.metadata_props.add(key=text, value=f"{text}!")


def annotated_model() -> Any:
    """A model of Add and Relu with everything beside it that a file can hold; Any as protobuf's messages are."""
    node = helper.make_node("Add", ["x", "w"], ["y"], "add", doc_string="adds")
    note(node, "node")
    device = node.device_configurations.add(configuration_id="two", pipeline_stage=1)
    device.sharding_spec.add(tensor_name="x", device=[0, 1])
    scale, zero = numpy_helper.from_array(np.float32(0.5), "s"), numpy_helper.from_array(np.uint8(3), "zero")
    weights = numpy_helper.from_array(np.ones(3, np.float32), "w")
    weights.doc_string = "what is added"
    note(weights, "weights")
    graph = helper.make_graph(
        [node, helper.make_node("Relu", ["y"], ["z"])],
        "graph",
        [helper.make_tensor_value_info("x", 1, ["N", 3])],
        [helper.make_tensor_value_info("z", 1, ["N", 3])],
        [weights, scale, zero],
        doc_string="a graph",
        value_info=[helper.make_tensor_value_info("y", 1, ["N", 3])],
    )
    note(graph, "graph")
    note(graph.value_info[0], "value")
    for name in ("y", "w"):
        annotation = graph.quantization_annotation.add(tensor_name=name)
        annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="s")
        annotation.quant_parameter_tensor_names.add(key="ZERO_POINT_TENSOR", value="zero")
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=11)
    note(model, "model")
    model.configuration.add(name="two", num_devices=2, device=["a", "b"])
    training = model.training_info.add()
    training.algorithm.CopyFrom(helper.make_graph([helper.make_node("Identity", ["w"], ["next"])], "step", [], []))
    training.update_binding.add(key="w", value="next")
    return model


def loaded_and_saved(model: Any) -> Any:
    return onnx.ModelProto.FromString(onnx_format.to_bytes(onnx_format.load(model.SerializeToString())))


def test_annotations_come_back() -> None:
    """Every field beside the computation has its content again."""
    before, after = annotated_model(), loaded_and_saved(annotated_model())
    assert after.training_info == before.training_info
    assert after.configuration == before.configuration
    assert after.metadata_props == before.metadata_props
    assert after.graph.metadata_props == before.graph.metadata_props
    assert after.graph.node == before.graph.node
    assert after.graph.value_info == before.graph.value_info
    assert after.graph.initializer == before.graph.initializer
    by_name = [sorted(graph.quantization_annotation, key=lambda item: item.tensor_name) for graph in (before.graph, after.graph)]
    assert by_name[0] == by_name[1]


def test_an_annotation_of_what_is_not_there_is_dropped() -> None:
    """A parameter that is no initializer any more, a tensor that never was."""
    model = annotated_model()
    model.graph.quantization_annotation.add(tensor_name="nobody")
    del model.graph.initializer[2]
    after = loaded_and_saved(model).graph.quantization_annotation
    assert {item.tensor_name for item in after} == {"w", "y"}
    assert [entry.key for entry in after[0].quant_parameter_tensor_names] == ["SCALE_TENSOR"]


def test_annotations_are_no_metadata_to_a_session() -> None:
    """A model with annotations runs, and shows its own metadata alone."""
    session = sardonyx.InferenceSession(annotated_model().SerializeToString())
    assert session.get_modelmeta().custom_metadata_map == {"model": "model!"}
    (z,) = session.run(None, {"x": np.array([[-2, 0, 1]], np.float32)})
    np.testing.assert_array_equal(z, [[0, 1, 2]])
