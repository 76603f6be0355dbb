"""What a file says that changes no result: quantization annotations, device configurations, training, notes on initializers.

Nothing here is read while a model runs. It is kept as text, in the `metadata` of what it is about, and as bytes in the model, so
that saving a model gives back what loading it took.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Mapping

from sardonyx import trace
from sardonyx.formats.onnx_text import text_of
from sardonyx.formats.protos import Message, protos
from sardonyx.ir import Model, Node, Value

__all__ = [
    "KEPT",
    "plain_metadata",
    "read_devices",
    "read_quantization",
    "read_tensor_notes",
    "read_training",
    "write_devices",
    "write_quantization",
    "write_tensor_notes",
    "write_training",
]

_DEVICES, _QUANTIZATION, _TENSOR = "file:device_configurations", "file:quantization", "file:initializer"
KEPT = frozenset({_DEVICES, _QUANTIZATION, _TENSOR})
"""The keys of `metadata` that hold what this module keeps; they are no metadata_props."""


def plain_metadata(metadata: Mapping[str, str] | None) -> dict[str, str]:
    """Return the entries that are metadata_props."""
    return {key: text for key, text in (metadata or {}).items() if key not in KEPT}


def _keep(holder: Node | Value, key: str, text: str) -> None:
    holder.metadata = {**(holder.metadata or {}), key: text}


def _kept(holder: Node | Value, key: str) -> str:
    return (holder.metadata or {}).get(key, "")


def read_devices(node: Node, proto: Message) -> None:
    """Keep the device configurations of a NodeProto."""
    if proto.device_configurations:
        alone = protos().NodeProto(device_configurations=proto.device_configurations)
        _keep(node, _DEVICES, base64.b64encode(alone.SerializeToString()).decode())


def write_devices(proto: Message, node: Node) -> None:
    """Give a NodeProto the device configurations that were kept."""
    text = _kept(node, _DEVICES)
    if text:
        proto.MergeFromString(base64.b64decode(text))


def read_quantization(annotations: Message, values: Mapping[str, Value]) -> None:
    """Keep the quantization annotations of a GraphProto with the tensors that they are about."""
    for annotation in annotations:
        value = values.get(annotation.tensor_name)
        if value is None:
            trace.event("load.ignored", what="quantization_annotation", tensor=text_of(annotation.tensor_name))
            continue
        pairs = [(text_of(entry.key), text_of(entry.value)) for entry in annotation.quant_parameter_tensor_names]
        _keep(value, _QUANTIZATION, json.dumps(pairs))


def write_quantization(proto: Message, value: Value, name: str, names: Collection[str]) -> None:
    """Annotate a tensor of a GraphProto as it was; parameters that are no longer there, because nothing read them, are left out."""
    text = _kept(value, _QUANTIZATION)
    pairs = [(key, parameter) for key, parameter in json.loads(text or "[]") if parameter in names]
    if not pairs or not name:
        return
    annotation = proto.quantization_annotation.add(tensor_name=name)
    for key, parameter in pairs:
        annotation.quant_parameter_tensor_names.add(key=key, value=parameter)


def read_tensor_notes(value: Value, proto: Message) -> None:
    """Keep the doc_string and the metadata_props of the TensorProto of an initializer."""
    if proto.doc_string or proto.metadata_props:
        props = [(text_of(entry.key), text_of(entry.value)) for entry in proto.metadata_props]
        _keep(value, _TENSOR, json.dumps([text_of(proto.doc_string), props]))


def write_tensor_notes(proto: Message, value: Value) -> None:
    """Give a TensorProto the notes that were kept."""
    text = _kept(value, _TENSOR)
    if not text:
        return
    doc, props = json.loads(text)
    if doc:
        proto.doc_string = doc
    for key, entry in props:
        proto.metadata_props.add(key=key, value=entry)


def read_training(model: Model, proto: Message) -> None:
    """Keep the training_info and the configurations of a ModelProto."""
    model.training = tuple([item.SerializeToString() for item in proto.training_info])
    model.configurations = tuple([item.SerializeToString() for item in proto.configuration])


def write_training(proto: Message, model: Model) -> None:
    """Give a ModelProto what was kept."""
    for content in model.training:
        proto.training_info.add().ParseFromString(content)
    for content in model.configurations:
        proto.configuration.add().ParseFromString(content)
