"""The outputs of a small model in float64, by which two engines that disagree are judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sardonyx.dtypes import DataType, OnnxValue, is_float
from sardonyx.errors import SardonyxError
from sardonyx.ir import Attribute, AttributeKind, Graph, Model, Tensor, TensorType, Value
from sardonyx.ir.walk import nested_graphs
from sardonyx.optimize.edit import clone_model
from sardonyx.providers.reference.whole import run_model

__all__ = ["distance", "exact_outputs"]

_TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype")
_TENSOR_OF = {"value_float": "value", "value_floats": "value"}
"""Attributes of Constant that are always float32, and the one that takes a tensor of any type."""
_INNER_TYPES = ("stash_type", "softmax_precision", "precision")


def exact_outputs(model: Model, feed: Mapping[str, OnnxValue]) -> list[OnnxValue] | str:
    """Return the outputs of a model, without function calls, computed by the reference kernels in float64.

    Each floating-point constant and input is converted, which changes no value, and so is each type that an attribute names.

    Returns:
        The outputs, or why there are none, as where an operator is not defined for double.
    """
    wide = clone_model(model)
    for graph in nested_graphs(wide.graph):
        _widen_values(graph)
        for node in graph:
            for value in node.outputs:
                value.type = None
            node.attributes = {_TENSOR_OF.get(name, name): _widened(name, attribute) for name, attribute in node.attributes.items()}
    given = {name: _wide(value) for name, value in feed.items()}
    try:
        with np.errstate(all="ignore"):
            return run_model(wide, given)
    except SardonyxError as error:
        return str(error)


def distance(exact: Sequence[OnnxValue], found: Sequence[OnnxValue]) -> list[float | None]:
    """Return for each output the largest difference from the exact one; None where it is no tensor of numbers of that shape."""
    return [_distance(one, other) for one, other in zip(exact, found, strict=True)]


def _distance(exact: OnnxValue, found: OnnxValue) -> float | None:
    if not isinstance(exact, np.ndarray) or not isinstance(found, np.ndarray) or exact.shape != found.shape:
        return None
    if exact.dtype.kind in "OUSc" or found.dtype.hasobject:
        return None
    one, other = exact.astype(np.float64), found.astype(np.float64)
    with np.errstate(all="ignore"):
        differences = np.abs(one - other)
    differences = np.where((one == other) | (np.isnan(one) & np.isnan(other)), 0.0, differences)
    return float(np.where(np.isnan(differences), np.inf, differences).max(initial=0.0))


def _widen_values(graph: Graph) -> None:
    for value in (*graph.inputs, *graph.initializers.values()):
        _widen_value(value)


def _widen_value(value: Value) -> None:
    if value.constant is not None and is_float(value.constant.dtype):
        value.constant = Tensor.from_array(value.constant.numpy().astype(np.float64), value.constant.name)
    if isinstance(value.type, TensorType) and is_float(value.type.dtype):
        value.type = TensorType(DataType.DOUBLE, value.type.shape)


def _widened(name: str, attribute: Attribute) -> Attribute:
    value = attribute.value
    if isinstance(value, Tensor) and is_float(value.dtype):
        return Attribute(attribute.kind, Tensor.from_array(value.numpy().astype(np.float64), value.name))
    if name in _TYPE_ATTRIBUTES and attribute.kind is AttributeKind.INT and is_float(DataType(value)):
        return Attribute(attribute.kind, int(DataType.DOUBLE))
    if name in _INNER_TYPES and attribute.kind is AttributeKind.INT:
        return Attribute(attribute.kind, int(DataType.DOUBLE))
    if name in _TENSOR_OF:
        return Attribute(AttributeKind.TENSOR, Tensor.from_array(np.asarray(value, np.float32).astype(np.float64)))
    return attribute


def _wide(value: OnnxValue) -> OnnxValue:
    if isinstance(value, list):
        return [_wide(item) for item in value]
    if not isinstance(value, np.ndarray) or value.dtype.hasobject or value.dtype.kind in "SUc":
        return value
    return value.astype(np.float64) if is_float(DataType.from_numpy(value.dtype)) else value
