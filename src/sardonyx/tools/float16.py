"""Models in float16: a file of half the size, for devices that compute in float16.

    half = convert_float_to_float16(onnx.load("model.onnx"), keep_io_types=True)

The names and arguments are those of `onnxruntime.transformers.float16`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.formats.onnx_tensor import write_tensor
from sardonyx.formats.protos import Message, protos
from sardonyx.formats.tensor_file import array_of
from sardonyx.ir import Tensor
from sardonyx.tools.half_conversion import HalfPolicy, to_half
from sardonyx.tools.models import Given, read, to_proto

__all__ = [
    "DEFAULT_OP_BLOCK_LIST",
    "convert_float_to_float16",
    "convert_np_to_float16",
    "convert_tensor_float_to_float16",
    "float_to_float16_max_diff",
]

DEFAULT_OP_BLOCK_LIST: list[str] = [
    *("ArrayFeatureExtractor", "Binarizer", "CastMap", "CategoryMapper", "DictVectorizer", "FeatureVectorizer", "Imputer"),
    *("LabelEncoder", "LinearClassifier", "LinearRegressor", "Normalizer", "OneHotEncoder", "RandomUniformLike", "SVMClassifier"),
    *("SVMRegressor", "Scaler", "TreeEnsembleClassifier", "TreeEnsembleRegressor", "TreeEnsemble", "ZipMap", "NonMaxSuppression"),
    *("TopK", "RoiAlign", "Range", "CumSum", "Min", "Max", "Upsample"),
]
"""Operators that stay in float32 unless a list says otherwise, as in onnxruntime."""

_LEAST, _GREATEST = 5.96e-08, 65504.0
"""The smallest positive number of float16, and its largest finite one."""


def convert_float_to_float16(
    model: Given,
    min_positive_val: float = _LEAST,
    max_finite_val: float = _GREATEST,
    keep_io_types: bool | Sequence[str] = False,
    disable_shape_infer: bool = False,
    op_block_list: Collection[str] | None = None,
    node_block_list: Collection[str] | None = None,
    force_fp16_initializers: bool = False,
    force_fp16_inputs: Mapping[str, Sequence[int]] | None = None,
    use_bfloat16_as_blocked_nodes_dtype: bool = False,
) -> Message:
    """Return a copy of a model whose float32 values are float16, but for those of nodes that stay in float32.

    A node stays in float32 where a list names it, or where its operator does not take float16; an operand, where the operator
    takes it in float32 only. A Cast goes in where the types meet, one for each value.

    Args:
        model: an onnx.ModelProto, or the path of a model.
        min_positive_val: constants nearer to 0 than this, but not 0, become this, with their sign; at least 5.96e-08.
        max_finite_val: finite constants beyond this become this, with their sign; at most 65504.
        keep_io_types: whether inputs and outputs stay float32, or the names of those that do.
        disable_shape_infer: accepted; types are always inferred, as without them nothing could be converted.
        op_block_list: operators that stay in float32; None for DEFAULT_OP_BLOCK_LIST.
        node_block_list: names of nodes that stay in float32.
        force_fp16_initializers: whether constants that only nodes in float32 read become float16 too.
        force_fp16_inputs: operator -> numbers of inputs that become float16 in any case.
        use_bfloat16_as_blocked_nodes_dtype: must be False.

    Raises:
        InvalidArgument: a limit is not one of float16, a list is one text, a node in the block list works on sequences, or
            bfloat16 is asked for.
        SardonyxError: the model cannot be read, or is invalid.
    """
    if not min_positive_val >= _LEAST or not max_finite_val <= _GREATEST:
        raise InvalidArgument(
            f"constants in float16 lie between {_LEAST} and {_GREATEST}, got min_positive_val={min_positive_val} and "
            f"max_finite_val={max_finite_val}"
        )
    if use_bfloat16_as_blocked_nodes_dtype:
        raise InvalidArgument("nodes that do not become float16 stay in float32: leave out use_bfloat16_as_blocked_nodes_dtype")
    for name, names in (("op_block_list", op_block_list), ("node_block_list", node_block_list), ("keep_io_types", keep_io_types)):
        if isinstance(names, str):
            raise InvalidArgument(f"{name} is a list of names, got the text {names!r}")
    converted = read(model)
    kept = (None if keep_io_types else ()) if isinstance(keep_io_types, bool) else frozenset(keep_io_types)
    policy = HalfPolicy(
        narrow=lambda array: convert_np_to_float16(array, min_positive_val, max_finite_val),
        blocked_operators=frozenset(DEFAULT_OP_BLOCK_LIST if op_block_list is None else op_block_list),
        blocked_nodes=frozenset(node_block_list or ()),
        kept_ends=kept,
        forced_inputs=force_fp16_inputs or {},
        narrows_all_constants=force_fp16_initializers,
    )
    to_half(converted, policy)
    return to_proto(converted)


def convert_np_to_float16(np_array: Array, min_positive_val: float = _LEAST, max_finite_val: float = _GREATEST) -> Array:
    """Return an array in float16, whose numbers keep away from 0 and from infinity as far as the limits say.

    Zeros, infinities and NaN stay what they are.

    Args:
        np_array: numbers of any floating-point type.
        min_positive_val: what numbers nearer to 0 become, with their sign.
        max_finite_val: what finite numbers beyond it become, with their sign.
    """
    given = np.asarray(np_array)
    size = np.abs(given)
    size = np.where((size > 0) & (size < min_positive_val), min_positive_val, size)
    size = np.where(np.isfinite(size) & (size > max_finite_val), max_finite_val, size)
    with np.errstate(over="ignore", invalid="ignore"):
        half: Array = np.copysign(size, given).astype(np.float16)
    return half


def convert_tensor_float_to_float16(
    tensor: Message, min_positive_val: float = _LEAST, max_finite_val: float = _GREATEST
) -> Message:
    """Make an onnx.TensorProto of float32 one of float16, in place, and return it; others stay as they are."""
    if tensor.data_type == protos().TensorProto.FLOAT:
        half = convert_np_to_float16(_array(tensor), min_positive_val, max_finite_val)
        name = tensor.name
        tensor.Clear()
        write_tensor(tensor, Tensor.from_array(half, name), name)
    return tensor


def float_to_float16_max_diff(tensor: Message, min_positive_val: float = _LEAST, max_finite_val: float = _GREATEST) -> float:
    """Return by how much an element of an onnx.TensorProto of float32 changes at most when it becomes float16.

    Raises:
        InvalidArgument: the tensor is of another type.
    """
    if tensor.data_type != protos().TensorProto.FLOAT:
        raise InvalidArgument(f"tensor {tensor.name!r} is not float32")
    array = _array(tensor)
    half = convert_np_to_float16(array, min_positive_val, max_finite_val).astype(np.float32)
    return float(np.max(np.abs(array - half), initial=0.0))


def _array(tensor: Message) -> Array:
    return array_of(tensor)
