"""The error of each layer of a quantized model, against the model in floats, on the same feeds.

    for layer in layer_errors("model.onnx", "model_int8.onnx", feeds):
        print(layer.tensor, layer.operator, layer.relative_error)

A layer is a tensor that both models have under one name, or as its `…_DequantizeLinear_Output` in the quantized one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from sardonyx.dtypes import Array, DataType, OnnxValue
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Model, Value
from sardonyx.ops.infer import infer_graph
from sardonyx.quantization.calibrate import open_model
from sardonyx.session.inference_session import InferenceSession
from sardonyx.tools.models import Given, read

__all__ = ["LayerError", "layer_errors"]

_FLOATS = (DataType.FLOAT, DataType.FLOAT16, DataType.DOUBLE)
_SUFFIX = "_DequantizeLinear_Output"


@dataclasses.dataclass(frozen=True, slots=True)
class LayerError:
    """How far a tensor of the quantized model is from that of the model in floats."""

    tensor: str
    """Its name in the model in floats."""
    operator: str
    """What makes it there."""
    node: str
    """The name of that node."""
    relative_error: float
    """The root of the mean square of the differences / that of the values; infinite where only the latter is 0."""
    largest_error: float
    """The largest difference."""

    @property
    def signal_to_noise_db(self) -> float:
        """The ratio of the powers of values and differences, in dB."""
        return math.inf if self.relative_error == 0 else -20 * math.log10(self.relative_error)


def layer_errors(
    float_model: Given,
    quantized_model: Given,
    feeds: Iterable[Mapping[str, OnnxValue]],
    providers: Sequence[str] = ("CPUExecutionProvider",),
) -> list[LayerError]:
    """Return the errors of all layers, in the order of the model in floats.

    Args:
        float_model: the path of the model in floats, or an onnx.ModelProto.
        quantized_model: what quantization made of it.
        feeds: input name -> value, for each run of both.
        providers: what both run on.

    Raises:
        InvalidArgument: there is no feed, or the models have no tensor in common, or one of two shapes.
        SardonyxError: a model cannot be read, or a feed does not fit.
    """
    first, second = read(float_model), read(quantized_model)
    pairs = _pairs(first, second)
    if not pairs:
        raise InvalidArgument("the two models have no tensor in common: is the second one made of the first?")
    sides = list(zip(*pairs, strict=True))
    sessions = [_giving(model, values, providers) for model, values in zip((first, second), sides, strict=True)]
    names = [[value.name for value in side] for side in sides]
    sums = np.zeros((len(pairs), 3))
    count = 0
    for feed in feeds:
        count += 1
        results = [session.run(asked, dict(feed)) for session, asked in zip(sessions, names, strict=True)]
        for row, (value, _), left, right in zip(sums, pairs, *results, strict=True):
            if left.shape != right.shape:
                raise InvalidArgument(f"tensor {value.name!r} has shapes {left.shape} and {right.shape} in the two models")
            _add(row, left, right)
    if not count:
        raise InvalidArgument("layer_errors needs at least one feed")
    return [_error(value, row) for (value, _), row in zip(pairs, sums, strict=True)]


def _pairs(first: Model, second: Model) -> list[tuple[Value, Value]]:
    infer_graph(first)
    infer_graph(second)
    known = {value.name: value for node in second.graph for value in node.outputs if value.name}
    found = []
    for node in first.graph:
        for value in node.outputs:
            other = known.get(f"{value.name}{_SUFFIX}") or known.get(value.name)
            if value.dtype in _FLOATS and other is not None and other.dtype in _FLOATS and node.op_type != "Constant":
                found.append((value, other))
    return found


def _giving(model: Model, values: Sequence[Value], providers: Sequence[str]) -> InferenceSession:
    for value in values:
        if value not in model.graph.outputs:
            model.graph.add_output(value)
    return open_model(model, providers)


def _add(row: Array, left: Array, right: Array) -> None:
    """Add to the sums of squares of values and differences, and to the largest difference."""
    left, right = left.astype(np.float64), right.astype(np.float64)
    difference = np.abs(left - right)
    row[0] += np.square(left).sum()
    row[1] += np.square(difference).sum()
    row[2] = max(row[2], difference.max(initial=0.0))


def _error(value: Value, row: Array) -> LayerError:
    size, difference, largest = (float(number) for number in row)
    relative = math.sqrt(difference / size) if size else (math.inf if difference else 0.0)
    node = value.producer
    return LayerError(value.name, "" if node is None else node.op_type, "" if node is None else node.name, relative, largest)
