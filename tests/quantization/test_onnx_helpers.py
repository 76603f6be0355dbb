"""What scripts ask of protos."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from sardonyx.errors import InvalidArgument
from sardonyx.quantization import onnx_helpers, quant_utils


def _model() -> onnx.ModelProto:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 2]) for name in "xy"]
    nodes = [helper.make_node("Relu", ["x"], ["h"]), helper.make_node("Neg", ["h"], ["y"])]
    weights = [numpy_helper.from_array(np.ones((40, 40), np.float32), "w")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_quant_utils_has_them() -> None:
    """Under onnxruntime's name of the module."""
    assert not [name for name in onnx_helpers.__all__ if getattr(quant_utils, name) is not getattr(onnx_helpers, name)]


def test_types_are_inferred_and_noted() -> None:
    """The model that was given stays as it is."""
    given = _model()
    found = quant_utils.load_model_with_shape_infer(given)
    assert [value.name for value in found.graph.value_info] == ["h"]
    assert (quant_utils.model_has_infer_metadata(found), quant_utils.model_has_infer_metadata(given)) == (True, False)
    quant_utils.add_pre_process_metadata(given)
    quant_utils.add_pre_process_metadata(given)
    assert quant_utils.model_has_pre_process_metadata(given)
    assert len(given.metadata_props) == 1


def test_external_data_is_found(tmp_path: Path) -> None:
    """Of a path whose files need not be there."""
    inside, outside = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(_model(), inside)
    onnx.save(_model(), outside, save_as_external_data=True, location="w.bin")
    (tmp_path / "w.bin").unlink()
    assert [quant_utils.model_has_external_data(path) for path in (inside, outside)] == [False, True]


def test_one_version_of_the_standard_is_imported() -> None:
    """Else the message says how many are."""
    proto = _model()
    assert quant_utils.get_opset_version(proto) == 17
    del proto.opset_import[:]
    with pytest.raises(InvalidArgument, match="imports 0 versions"):
        quant_utils.get_opset_version(proto)


def test_items_are_found_by_name_and_place() -> None:
    """None and -1 where they are not there."""
    nodes = [helper.make_node("Relu", ["x"], ["y"], name="a"), quant_utils.get_mul_node(["x", "x"], "y", "b")]
    assert quant_utils.find_by_name("b", nodes) is nodes[1]
    assert quant_utils.find_by_name("c", nodes) is None
    assert (quant_utils.get_elem_index("x", ["x", "y", "x"]), quant_utils.get_elem_index("z", [])) == (2, -1)
    assert quant_utils.attribute_to_kwarg(helper.make_attribute("axis", 3)) == {"axis": 3}
    assert quant_utils.generate_identified_filename(Path("a/b.onnx"), "-q") == Path("a/b-q.onnx")


def test_tensors_become_arrays() -> None:
    """What is no tensor is refused."""
    assert quant_utils.tensor_proto_to_array(_model().graph.initializer[0]).sum() == 1600
    with pytest.raises(ValueError, match=r"takes an onnx\.TensorProto, got ModelProto"):
        quant_utils.tensor_proto_to_array(_model())
