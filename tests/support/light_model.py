"""Models without their weights, made loadable so that shapes can be inferred."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import onnx

_BITS = {onnx.TensorProto.INT4: 4, onnx.TensorProto.UINT4: 4}


def read_light(path: Path | str) -> Any:
    """The onnx.ModelProto at `path`: initializers without data become inputs, other tensors without data zeros."""
    model = onnx.load(str(path), load_external_data=False)
    kept = []
    for tensor in model.graph.initializer:
        if not _lacks_data(tensor):
            kept.append(tensor)
        elif all(value.name != tensor.name for value in model.graph.input):
            model.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t") and _lacks_data(attribute.t):
                attribute.t.raw_data = bytes(_size_bytes(attribute.t))
    return model


def _size_bytes(tensor: Any) -> int:
    bits: int = _BITS.get(tensor.data_type) or 8 * onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    count: int = math.prod(tensor.dims)
    return (count * bits + 7) // 8


def _lacks_data(tensor: Any) -> bool:
    if tensor.data_type == onnx.TensorProto.STRING:
        return False
    fields = (tensor.raw_data, tensor.float_data, tensor.int32_data, tensor.int64_data, tensor.double_data, tensor.uint64_data)
    return math.prod(tensor.dims) > 0 and not any(len(field) for field in fields)
