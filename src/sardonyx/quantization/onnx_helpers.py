"""What scripts about quantization ask of an onnx.ModelProto, with the names of `onnxruntime.quantization.quant_utils`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import onnx
from onnx import helper

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.formats.protos import Message
from sardonyx.formats.tensor_file import array_of
from sardonyx.ops.infer import infer_graph
from sardonyx.tools.models import Given, graphs_of, read, to_proto

__all__ = [
    "add_infer_metadata",
    "add_pre_process_metadata",
    "attribute_to_kwarg",
    "find_by_name",
    "generate_identified_filename",
    "get_elem_index",
    "get_mul_node",
    "get_opset_version",
    "load_model_with_shape_infer",
    "model_has_external_data",
    "model_has_infer_metadata",
    "model_has_pre_process_metadata",
    "save_and_reload_model_with_shape_infer",
    "tensor_proto_to_array",
]

_OURS = "onnxruntime.quant"
"""What onnxruntime's tools write under these keys, and look for."""
_INFERRED, _PREPARED = "onnx.infer", "onnx.quant.pre_process"


def attribute_to_kwarg(attribute: Message) -> dict[str, Any]:
    """Return an onnx.AttributeProto as {name: value}, as onnx.helper.make_node takes it; Any, as attributes are."""
    return {attribute.name: helper.get_attribute_value(attribute)}


def find_by_name(item_name: str, item_list: Iterable[Message]) -> Message | None:
    """Return the item with a name, the first; None where there is none."""
    return next((item for item in item_list if item.name == item_name), None)


def get_elem_index(elem_name: str, elem_list: Iterable[str]) -> int:
    """Return the last place of a text in a list, -1 where it is not there."""
    return max((index for index, item in enumerate(elem_list) if item == elem_name), default=-1)


def get_mul_node(inputs: list[str], output: str, name: str) -> Message:
    """Return an onnx.NodeProto that multiplies."""
    return helper.make_node("Mul", inputs, [output], name)


def generate_identified_filename(filename: Path, identifier: str) -> Path:
    """Return the path of a file with a text before its suffix."""
    return filename.parent / f"{filename.stem}{identifier}{filename.suffix}"


def model_has_external_data(model_path: Given) -> bool:
    """Return whether constants of a model lie in other files; raises OSError where the model cannot be read."""
    is_path = isinstance(model_path, (str, os.PathLike))
    proto: Message = onnx.load(model_path, load_external_data=False) if is_path else model_path
    return any(
        tensor.data_location == onnx.TensorProto.EXTERNAL for graph in graphs_of(proto.graph) for tensor in graph.initializer
    )


def add_pre_process_metadata(model: Message) -> None:
    """Note in an onnx.ModelProto that it was prepared for quantization."""
    _note(model, _PREPARED)


def model_has_pre_process_metadata(model: Message) -> bool:
    """Return whether `add_pre_process_metadata` noted it."""
    return _is_noted(model, _PREPARED)


def add_infer_metadata(model: Message) -> None:
    """Note in an onnx.ModelProto that its shapes were inferred."""
    _note(model, _INFERRED)


def model_has_infer_metadata(model: Message) -> bool:
    """Return whether `add_infer_metadata` noted it."""
    return _is_noted(model, _INFERRED)


def _note(model: Message, key: str) -> None:
    if all(entry.key != key for entry in model.metadata_props):
        model.metadata_props.add(key=key, value=_OURS)


def _is_noted(model: Message, key: str) -> bool:
    return any((entry.key, entry.value) == (key, _OURS) for entry in model.metadata_props)


def get_opset_version(model: Message) -> int:
    """Return the version of ai.onnx that an onnx.ModelProto imports; raises InvalidArgument where it imports none, or several."""
    found = [entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")]
    if len(found) != 1:
        raise InvalidArgument(f"the model imports {len(found)} versions of ai.onnx; expected one")
    return int(found[0])


def load_model_with_shape_infer(model_path: Given) -> Message:
    """Return the onnx.ModelProto of a path, or of another, with the types that follow from its inputs, and a note of that.

    Raises:
        SardonyxError: it cannot be read, or is invalid.
    """
    model = read(model_path)
    infer_graph(model)
    proto = to_proto(model)
    add_infer_metadata(proto)
    return proto


def save_and_reload_model_with_shape_infer(model: Message) -> Message:
    """Return a copy of an onnx.ModelProto with its types inferred, as `load_model_with_shape_infer` does; no file is written."""
    return load_model_with_shape_infer(model)


def tensor_proto_to_array(initializer: Message) -> Array:
    """Return a copy of the elements of an onnx.TensorProto; raises ValueError for what is none."""
    if not isinstance(initializer, onnx.TensorProto):
        raise ValueError(f"tensor_proto_to_array takes an onnx.TensorProto, got {type(initializer).__name__}")
    return array_of(initializer)
