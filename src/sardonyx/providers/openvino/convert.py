"""Nodes to models of OpenVINO: written as ONNX, read by OpenVINO's own reader.

Large weights are not written. They are inputs of the ONNX model, and in OpenVINO's model constants that share their bytes.
Names are positions (i0, i1 …, o0 …), so that equal nodes are equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.formats import onnx as onnx_format
from sardonyx.ir import Expr, Graph, Model, Node, Shape, TensorType, Value
from sardonyx.ir.shape import anonymous
from sardonyx.ops.schemas import find_schema
from sardonyx.optimize.edit import clone_node

__all__ = [
    "Signature", "as_tensor", "base_versions", "element_type", "is_large", "same_meaning", "share_constants", "signature_of",
    "to_onnx",
]  # fmt: skip

Signature = tuple[tuple[DataType, Shape], ...]
"""Element types and shapes of values."""

_LARGE_BYTES = 4096
_SHARED_TYPES = frozenset({DataType.FLOAT, DataType.FLOAT16})
_NAMES = {DataType.FLOAT: "f32", DataType.FLOAT16: "f16", DataType.BFLOAT16: "bf16", DataType.BOOL: "boolean"}


def is_large(value: Value) -> bool:
    """Whether `value` is a constant that is shared with OpenVINO, not written into a model."""
    tensor = value.constant
    return tensor is not None and tensor.dtype in _SHARED_TYPES and tensor.size_bytes >= _LARGE_BYTES


def base_versions(graph: Graph) -> dict[str, int]:
    """For each domain the version under which nodes of `graph` are written: the lowest, which is the model's own."""
    found: dict[str, int] = {}
    for node in graph:
        found[node.domain] = min(node.version, found.get(node.domain, node.version))
    return found


def same_meaning(node: Node, version: int) -> bool:
    """Whether `node` means the same under `version`; an operator that is newer has one meaning there too, as OpenVINO reads it."""
    if version == node.version:
        return True
    own, other = (find_schema(node.domain, node.op_type, number) for number in (node.version, version))
    return other is None or (own is not None and own.since_version == other.since_version)


def to_onnx(nodes: Iterable[Node], inputs: Sequence[Value], constants: Sequence[Value], outputs: Sequence[Value],
            versions: Mapping[str, int]) -> bytes:  # fmt: skip
    """Write nodes as an ONNX model.

    Args:
        nodes: in topological order.
        inputs: values that they read, from outside.
        constants: constants that they read; the large ones become inputs, after `inputs`.
        outputs: values that they make and that are wanted.
        versions: domain -> version, which `same_meaning` holds for.
    """
    values = {value: _named(value, f"i{index}") for index, value in enumerate(inputs)}
    values.update((value, _named(value, f"w{index}")) for index, value in enumerate(constants))
    weights = [values[value] for value in constants if is_large(value)]
    small = [values[value] for value in constants if not is_large(value)]
    for value in weights:
        value.constant = None
    graph = Graph("partition", [*(values[value] for value in inputs), *weights], initializers=small)
    for index, node in enumerate(nodes):
        copy = graph.append(clone_node(node, values))
        copy.name, copy.doc, copy.metadata, copy.version = "", "", None, versions[node.domain]
        for place, (made, value) in enumerate(zip(copy.outputs, node.outputs, strict=True)):
            made.name = f"v{index}_{place}" if value.name or value.use_count else ""
            made.type, made.doc, made.metadata = None, "", None
    for index, value in enumerate(outputs):
        values[value].name, values[value].type = f"o{index}", _open(value)
    for value in outputs:
        graph.add_output(values[value])
    return onnx_format.to_bytes(Model(graph, dict(versions)))


def share_constants(model: Any, weights: Sequence[Array]) -> None:
    """Put constants over `weights` in the place of the last inputs of `model`, an openvino.Model; they must outlive it."""
    from openvino import op

    parameters = model.get_parameters()
    for parameter, array in zip(parameters[len(parameters) - len(weights) :], weights, strict=True):
        constant = op.Constant(_writeable(array), shared_memory=True)
        constant.friendly_name = parameter.friendly_name
        parameter.output(0).replace(constant.output(0))
        model.remove_parameter(parameter)
    model.validate_nodes_and_infer_types()


def as_tensor(array: Array) -> Any:
    """An openvino.Tensor over the memory of a dense `array`, which must outlive it."""
    import openvino

    if array.dtype == DataType.BFLOAT16.numpy:
        return openvino.Tensor(_writeable(array.view(np.uint16)), openvino.Shape(array.shape), openvino.Type.bf16)
    return openvino.Tensor(_writeable(array), shared_memory=True)


def element_type(dtype: DataType) -> str:
    """OpenVINO's name of an element type."""
    text = str(dtype)
    return _NAMES.get(dtype) or text.replace("uint", "u").replace("int", "i")


def signature_of(values: Sequence[Value]) -> Signature:
    """The signature of tensors whose types are known."""
    found = tuple((value.dtype, value.shape) for value in values)
    return tuple((dtype, shape) for dtype, shape in found if dtype is not None and shape is not None)


def _writeable(array: Array) -> Array:
    """`array` as OpenVINO takes it: dense, and writeable, although it only reads what it is given to read; at any address."""
    dense = np.require(array, requirements="C")
    return dense if dense.flags.writeable else np.asarray(_Writeable(dense))


class _Writeable:
    """The memory of an array under another flag."""

    def __init__(self, array: Array) -> None:
        self._owner = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


def _named(value: Value, name: str) -> Value:
    return Value(name, _open(value), value.constant)


def _open(value: Value) -> TensorType:
    """The type of `value`, with any size where its own is symbolic."""
    if value.dtype is None:
        raise ValueError(f"{value!r} has no element type")
    dims = value.shape
    return TensorType(value.dtype, None if dims is None else tuple(anonymous() if isinstance(dim, Expr) else dim for dim in dims))
