"""Prepare a model for quantization: shapes inferred, constants folded, normalizations folded into convolutions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.formats import onnx as onnx_format
from sardonyx.formats.protos import Message
from sardonyx.ir import Model
from sardonyx.ops.infer import infer_graph
from sardonyx.quantization.kinds import QuantType
from sardonyx.quantization.onnx_helpers import get_opset_version
from sardonyx.session.optimization import optimize_file
from sardonyx.session.options import SessionOptions
from sardonyx.session.settings.settings import read_settings
from sardonyx.tools.models import Given, to_proto

__all__ = ["optimize_model", "prepared", "quant_pre_process", "update_opset_version"]

_OLDEST_OPSET, _OPSET_OF_FLOAT8, _OPSET_OF_BLOCKS = 11, 19, 21
_NARROW_OR_WIDE = frozenset(int(kind) for kind in (DataType.INT16, DataType.UINT16, DataType.INT4, DataType.UINT4))
_LEVELS = {False: "ORT_ENABLE_BASIC", True: "ORT_DISABLE_ALL"}


def quant_pre_process(
    input_model: Given | None = None,
    output_model_path: str | os.PathLike[str] | None = None,
    skip_optimization: bool = False,
    skip_onnx_shape: bool = False,
    skip_symbolic_shape: bool = False,
    auto_merge: bool = False,
    int_max: int = (1 << 31) - 1,
    guess_output_rank: bool = False,
    verbose: int = 0,
    save_as_external_data: bool = False,
    all_tensors_to_one_file: bool = False,
    external_data_location: str | None = None,
    external_data_size_threshold: int = 1024,
) -> None:
    """Write a model that is better to quantize: its types inferred, and optimized at the level of ORT_ENABLE_BASIC.

    Args:
        input_model: a path, or an onnx.ModelProto.
        output_model_path: the file to write.
        skip_optimization: whether to infer types only.
        skip_onnx_shape: accepted: there is one shape inference.
        skip_symbolic_shape: accepted, as that one.
        auto_merge: accepted.
        int_max: accepted.
        guess_output_rank: accepted.
        verbose: accepted.
        save_as_external_data: whether weights go into a file beside it.
        all_tensors_to_one_file: accepted: they always do.
        external_data_location: the name of that file.
        external_data_size_threshold: accepted.

    Raises:
        InvalidArgument: a path is missing.
        SardonyxError: the model cannot be read, or is invalid.
    """
    if input_model is None or output_model_path is None:
        raise InvalidArgument("quant_pre_process takes input_model and output_model_path")
    model = prepared(input_model, optimizes=not skip_optimization)
    external = True if save_as_external_data else None
    onnx_format.save(model, output_model_path, external_data=external, data_name=external_data_location or "")


def prepared(given: Given, *, optimizes: bool, opset: int = 0) -> Model:
    """Return a model with its functions inlined and types inferred, raised to an opset of ai.onnx where it is older.

    Raises:
        SardonyxError: the model cannot be read, is invalid, or cannot be raised.
    """
    options = SessionOptions()
    options.optimized_model_filepath = "prepared.onnx"  # for a file: operators that onnxruntime has
    options.add_session_config_entry("session.graph_optimization_level", _LEVELS[not optimizes])
    model, _ = optimize_file(given, read_settings(options, ()), opset=opset)
    infer_graph(model)
    return model


def optimize_model(model_path: str | os.PathLike[str], opt_model_path: str | os.PathLike[str]) -> None:
    """Write what optimization at the level of ORT_ENABLE_BASIC makes of a model.

    Raises:
        SardonyxError: the model cannot be read, or is invalid.
    """
    onnx_format.save(prepared(model_path, optimizes=True), opt_model_path)


def update_opset_version(
    model: Message,
    weight_type: QuantType | int,
    activation_type: QuantType | int | None = None,
    tensor_quant_overrides: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    block_size: int = 0,
) -> Message:
    """Return an onnx.ModelProto of an opset that has the types of codes: the same one, or another that is raised to it.

    Args:
        model: an onnx.ModelProto.
        weight_type: the type of the codes of weights, or its number in onnx.TensorProto.
        activation_type: of those of activations.
        tensor_quant_overrides: what is said of single tensors, as `TensorQuantOverrides`; Any: of all kinds.
        block_size: the elements of a block that has a scale of its own; 0 for none.

    Raises:
        SardonyxError: the model is invalid, or cannot be raised.
    """
    said = [item for items in (tensor_quant_overrides or {}).values() for item in items]
    said += [item["convert"] for item in said if item.get("convert")]
    given = [kind for kind in (weight_type, activation_type) if kind is not None]
    kinds = {kind.tensor_type if isinstance(kind, QuantType) else int(kind) for kind in given}
    kinds |= {item["quant_type"].tensor_type for item in said if item.get("quant_type")}
    needed = _OLDEST_OPSET
    if DataType.FLOAT8E4M3FN in kinds:
        needed = _OPSET_OF_FLOAT8
    if block_size or kinds & _NARROW_OR_WIDE:
        needed = _OPSET_OF_BLOCKS
    if get_opset_version(model) >= needed:
        return model
    return to_proto(prepared(model, optimizes=False, opset=needed))
