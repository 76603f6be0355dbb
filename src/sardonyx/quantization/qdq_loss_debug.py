"""What quantization does to single tensors: onnxruntime's functions for it, with their names.

    modify_model_output_intermediate_tensors("model.onnx", "watched.onnx")
    floats = collect_activations("watched.onnx", reader)
    compute_activation_error(create_activation_matching(quantized_activations, floats))

`sardonyx.quantization.layer_errors` gives errors in one call, without files and without keeping tensors.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from sardonyx.dtypes import Array, OnnxValue
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Model, Node, Tensor, Value
from sardonyx.optimize.edit import Names, overridable_values, tensor_of
from sardonyx.providers.reference.provider import evaluate
from sardonyx.quantization.calibrate import MinMaxCalibrater
from sardonyx.quantization.quant_utils import DEQUANT_OP_NAME, DEQUANT_OUTPUT_SUFFIX, QUANT_INPUT_SUFFIX, TENSOR_NAME_QUANT_SUFFIX
from sardonyx.session.inference_session import InferenceSession
from sardonyx.session.options import GraphOptimizationLevel, SessionOptions
from sardonyx.tools.models import Given, read, save, to_proto

__all__ = [
    "collect_activations",
    "compute_activation_error",
    "compute_signal_to_quantization_noice_ratio",
    "compute_weight_error",
    "create_activation_matching",
    "create_weight_matching",
    "modify_model_output_intermediate_tensors",
]

Activations: TypeAlias = Mapping[str, Sequence[Array]]
"""Tensor name -> its elements in each run."""

_SAVED = "_ReshapedSavedOutput"
"""What onnxruntime puts behind the name of a tensor that is given out."""
_SECOND = f"{DEQUANT_OUTPUT_SUFFIX}_1"
_LEAST = float(np.finfo(np.float64).eps)


def modify_model_output_intermediate_tensors(
    input_model_path: Given,
    output_model_path: str | os.PathLike[str],
    op_types_for_saving: Sequence[str] | None = None,
    save_as_external_data: bool = False,
) -> None:
    """Write a model that also gives out its floats that are no constants, flat.

    Args:
        input_model_path: the path of a model, or an onnx.ModelProto.
        output_model_path: where the other one goes.
        op_types_for_saving: operators whose inputs and outputs are given out; all of them where it is None or empty.
        save_as_external_data: whether weights go into a file beside it.

    Raises:
        SardonyxError: the model cannot be read, or is invalid.
    """
    calibrater = MinMaxCalibrater(input_model_path, list(op_types_for_saving or ()) or None)
    model, names = calibrater.model, Names.of(calibrater.model)
    known = {value.name: value for value in model.graph.inputs}
    known |= {value.name: value for node in model.graph for value in node.outputs}
    flat = model.graph.add_initializer(Tensor.from_array(np.array([-1], np.int64)), names.fresh("flat_shape"))
    for name in calibrater.tensors_to_calibrate:
        result = Value(names.fresh(f"{name}{_SAVED}"))
        node = Node("Reshape", [known[name], flat], [result], version=model.opset_imports.get("", 1), name=result.name)
        model.graph.append(node)
        model.graph.add_output(result)
    save(to_proto(model), output_model_path, external_data=save_as_external_data or None)


def collect_activations(
    augmented_model: Given,
    input_reader: Iterable[Mapping[str, OnnxValue]],
    session_options: SessionOptions | None = None,
    execution_providers: Sequence[str] | None = None,
) -> dict[str, list[Array]]:
    """Return what runs of a model from `modify_model_output_intermediate_tensors` give: name -> the flat tensor of each run.

    Args:
        augmented_model: its path, or an onnx.ModelProto.
        input_reader: feeds; a CalibrationDataReader, or a list.
        session_options: None for a session that does not optimize.
        execution_providers: None for the CPU.

    Raises:
        RuntimeError: there is no feed.
        SardonyxError: the model cannot be read, or a feed does not fit.
    """
    if session_options is None:
        session_options = SessionOptions()
        session_options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
    session = InferenceSession(augmented_model, session_options, list(execution_providers or ("CPUExecutionProvider",)))
    asked = [output.name for output in session.get_outputs() if output.name.endswith(_SAVED)]
    found: dict[str, list[Array]] = {name.removesuffix(_SAVED): [] for name in asked}
    is_empty = True
    for feed in input_reader:
        is_empty = False
        for kept, result in zip(found.values(), session.run(asked, dict(feed)) if asked else (), strict=True):
            kept.append(result)
    if is_empty:
        raise RuntimeError("no activations were collected: the reader gave no feed")
    return found


def create_activation_matching(
    qdq_activations: Activations, float_activations: Activations | None = None
) -> dict[str, dict[str, Sequence[Array]]]:
    """Return for each quantized tensor its elements before (`pre_qdq`) and after (`post_qdq`) its rounding.

    Args:
        qdq_activations: what `collect_activations` gives of a model with QuantizeLinear and DequantizeLinear.
        float_activations: of the model in floats, which adds `float` where that has the tensor.
    """
    matched: dict[str, dict[str, Sequence[Array]]] = {}
    for name, tensors in qdq_activations.items():
        if name.endswith(QUANT_INPUT_SUFFIX):
            tensor = name.removesuffix(QUANT_INPUT_SUFFIX)
            before, after = tensors, qdq_activations.get(tensor, ())
        elif name.endswith((DEQUANT_OUTPUT_SUFFIX, _SECOND)):
            tensor = name.removesuffix(_SECOND).removesuffix(DEQUANT_OUTPUT_SUFFIX)
            before, after = qdq_activations.get(tensor, ()), tensors
        else:
            continue
        if before and after:
            matched[tensor] = {"pre_qdq": before, "post_qdq": after}
    for name, match in matched.items():
        if float_activations and name in float_activations:
            match["float"] = float_activations[name]
    return matched


def create_weight_matching(float_model_path: Given, qdq_model_path: Given) -> dict[str, dict[str, Array]]:
    """Return for each weight that a quantized model dequantizes its numbers in the model in floats (`float`) and `dequantized`.

    Args:
        float_model_path: the path of the model in floats, or an onnx.ModelProto.
        qdq_model_path: of the quantized one; codes whose names do not end with `_quantized` are passed over.

    Raises:
        SardonyxError: a model cannot be read, or is invalid.
    """
    floats, quantized = read(float_model_path), read(qdq_model_path)
    weights = _constants(floats)
    codes = _constants(quantized)
    matched: dict[str, dict[str, Array]] = {}
    for node in quantized.graph:
        given = node.inputs[0] if node.op_type == DEQUANT_OP_NAME else None
        if given is None or given.name not in codes or not given.name.endswith(TENSOR_NAME_QUANT_SUFFIX):
            continue
        name = given.name.removesuffix(TENSOR_NAME_QUANT_SUFFIX)
        parts = [None if value is None else codes.get(value.name) for value in node.inputs]
        if name in weights and all(part is not None for part, value in zip(parts, node.inputs, strict=True) if value is not None):
            (restored,) = evaluate(node, [None if part is None else part.numpy() for part in parts])
            matched[name] = {"float": weights[name].numpy(), "dequantized": np.asarray(restored)}
    return matched


def _constants(model: Model) -> dict[str, Tensor]:
    overridable = overridable_values(model)
    held = [value for node in model.graph for value in node.inputs if value is not None]
    tensors = {value.name: tensor_of(value, overridable) for value in held}
    return {name: tensor for name, tensor in tensors.items() if tensor is not None}


def compute_signal_to_quantization_noice_ratio(x: Sequence[Array] | Array, y: Sequence[Array] | Array) -> float:
    """Return 20 log10 (|x| / |x - y|), with norms of all elements of at least 2**-52, in dB.

    Args:
        x: a tensor, or several.
        y: as many, with as many elements.

    Raises:
        RuntimeError: there are not as many.
    """
    left, right = ([item] if isinstance(item, np.ndarray) else list(item) for item in (x, y))
    if len(left) != len(right) or not left:
        raise RuntimeError(f"expected as many tensors on both sides, at least one, got {len(left)} and {len(right)}")
    first, second = (np.concatenate([part.reshape(-1) for part in side]).astype(np.float64) for side in (left, right))
    if first.size != second.size:
        raise InvalidArgument(f"tensors to compare have {first.size} and {second.size} elements")
    size, difference = (max(float(np.linalg.norm(part)), _LEAST) for part in (first, first - second))
    return 20 * math.log10(size / difference)


def compute_weight_error(
    weights_match: Mapping[str, Mapping[str, Array]],
    err_func: Callable[[Array, Array], float] = compute_signal_to_quantization_noice_ratio,
) -> dict[str, float]:
    """Return for each weight of `create_weight_matching` how far it moved: `err_func` of its floats and of what is dequantized."""
    return {name: err_func(match["float"], match["dequantized"]) for name, match in weights_match.items()}


def compute_activation_error(
    activations_match: Mapping[str, Mapping[str, Sequence[Array]]],
    err_func: Callable[[Sequence[Array], Sequence[Array]], float] = compute_signal_to_quantization_noice_ratio,
) -> dict[str, dict[str, float]]:
    """Return for each tensor of `create_activation_matching` the errors of its own rounding, and of the model up to it.

    Args:
        activations_match: see there.
        err_func: of two lists of tensors.

    Returns:
        Name -> `qdq_err`, of `pre_qdq` and `post_qdq`; and `xmodel_err`, of `float` and `post_qdq`, where there is `float`.
    """
    errors: dict[str, dict[str, float]] = {}
    for name, match in activations_match.items():
        errors[name] = {"qdq_err": err_func(match["pre_qdq"], match["post_qdq"])}
        if match.get("float"):
            errors[name]["xmodel_err"] = err_func(match["float"], match["post_qdq"])
    return errors
