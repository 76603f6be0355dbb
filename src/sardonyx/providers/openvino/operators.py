"""What is known of operators before OpenVINO is asked: where integers may stand, and what it computes in another way.

OpenVINO computes doubles as floats, 64-bit integers in 32 bits, and arithmetic of short integers as it sees fit. So integers may
pass where they are only moved, or where they count and index; all arithmetic is on floats and booleans.
"""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.dtypes import DataType
from sardonyx.ir import Node

__all__ = ["reason_against"]

_FLOATS = frozenset({DataType.FLOAT, DataType.FLOAT16, DataType.BFLOAT16})
_DATA = _FLOATS | {DataType.BOOL}
_SHORT = frozenset({DataType.INT8, DataType.UINT8, DataType.INT32})
_INDICES = frozenset({DataType.INT32, DataType.INT64})

_MOVES = frozenset({
    "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Reshape", "Slice",
    "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze", "DequantizeLinear", "QuantizeLinear",
})  # fmt: skip
"""Operators that integers of up to 32 bits pass through unchanged, or are stored by."""

_INDEX_INPUTS = {
    "CumSum": (1,), "Expand": (1,), "Gather": (1,), "GatherElements": (1,), "GatherND": (1,), "NonMaxSuppression": (2,),
    "Pad": (1, 3), "ReduceL1": (1,), "ReduceL2": (1,), "ReduceLogSum": (1,), "ReduceLogSumExp": (1,), "ReduceMax": (1,),
    "ReduceMean": (1,), "ReduceMin": (1,), "ReduceProd": (1,), "ReduceSum": (1,), "ReduceSumSquare": (1,), "Reshape": (1,),
    "Resize": (3,), "ScatterElements": (1,), "ScatterND": (1,), "Slice": (1, 2, 3, 4), "Split": (1,), "Squeeze": (1,),
    "Tile": (1,), "TopK": (1,), "Trilu": (1,), "Unsqueeze": (1,),
}  # fmt: skip
"""Operator -> inputs that count or index."""

_INDEX_OUTPUTS = {"ArgMax": (0,), "ArgMin": (0,), "NonMaxSuppression": (0,), "TopK": (1,)}
"""Operator -> outputs that are indices."""

_DIFFERENT: dict[str, tuple[Callable[[Node], bool], str]] = {
    "Attention": (lambda node: _has_window(node) or _is_causal_with_past(node), "windows, or a past under a causal mask, differ"),
    "DFT": (lambda node: True, "its results are less accurate"),
    "NonMaxSuppression": (lambda node: True, "it drops boxes that overlap by the threshold itself"),
    "ReduceMax": (lambda node: True, "its result is finite where all elements are infinite"),
    "ReduceMin": (lambda node: True, "its result is finite where all elements are infinite"),
    "Resize": (lambda node: not _is_plain_resize(node), "antialiasing, kept aspect ratios and weights outside differ"),
    "SpaceToDepth": (lambda node: node.get("mode", "DCR") != "DCR", "it has the order DCR only"),
    "Tile": (lambda node: not _is_constant(node, 1), "repeats that are not constant may go wrong"),
}
"""Operator -> for which of its nodes OpenVINO's results differ from the standard's, and how; found by the standard's own cases."""

_RANDOM = frozenset({
    "Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
})  # fmt: skip


def reason_against(node: Node) -> str | None:
    """Why OpenVINO is not even asked about `node`, or None."""
    if node.subgraphs:
        return "its subgraphs are planned by sardonyx"
    if node.op_type in _RANDOM:
        return "its random numbers would depend on who runs it"
    differs, how = _DIFFERENT.get(node.op_type, (None, ""))
    if differs is not None and differs(node):
        return f"in OpenVINO {how}"
    for index, value in enumerate(node.inputs):
        allowed = _INDICES if index in _INDEX_INPUTS.get(node.op_type, ()) else _carried(node)
        if value is not None and value.dtype not in allowed:
            return f"input {index} has elements of type {value.dtype or 'unknown'}, which OpenVINO would compute differently"
    for index, value in enumerate(node.outputs):
        allowed = _INDICES if index in _INDEX_OUTPUTS.get(node.op_type, ()) else _carried(node)
        if (value.name or value.use_count) and value.dtype not in allowed:
            return f"output {index} has elements of type {value.dtype or 'unknown'}, which OpenVINO would compute differently"
    shapes = [value.shape for value in (*node.inputs, *node.outputs) if value is not None]
    if None in shapes:
        return "the rank of an input or output is not known"
    if any(0 in shape for shape in shapes if shape is not None):
        return "it has empty tensors"
    return None


def _carried(node: Node) -> frozenset[DataType]:
    return _DATA | _SHORT if node.op_type in _MOVES else _DATA


def _is_constant(node: Node, index: int) -> bool:
    value = node.input(index)
    return value is not None and value.constant is not None


def _has_window(node: Node) -> bool:
    return any("window" in name for name in node.attributes)


def _is_causal_with_past(node: Node) -> bool:
    return bool(node.get("is_causal", 0)) and node.input(4) is not None


def _is_plain_resize(node: Node) -> bool:
    if node.get("antialias", 0) or node.get("exclude_outside", 0):
        return False
    stretches = _text(node, "keep_aspect_ratio_policy") in ("", "stretch")
    return stretches and not (_text(node, "coordinate_transformation_mode") == "align_corners" and node.input(3) is None)


def _text(node: Node, name: str) -> str:
    value = node.get(name, "")
    return value.decode() if isinstance(value, bytes) else str(value)
