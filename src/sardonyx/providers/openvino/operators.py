"""What is known of operators before OpenVINO is asked: where integers may stand, and what it computes in another way.

OpenVINO computes doubles as floats, integers in 32 bits or as it sees fit: these pass where they are only moved, count or index.
"""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.dtypes import DataType
from sardonyx.ir import Node
from sardonyx.ops.views.reshape import Blocks
from sardonyx.ops.views.resize import Resize

__all__ = ["reason_against"]

_DATA = frozenset({DataType.FLOAT, DataType.FLOAT16, DataType.BFLOAT16, DataType.BOOL})
_SHORT = _DATA | {DataType.INT8, DataType.UINT8, DataType.INT32}
_INDICES = frozenset({DataType.INT32, DataType.INT64})

_MOVES = frozenset(
    """Concat DepthToSpace Expand Flatten Gather GatherElements GatherND Identity Reshape Slice SpaceToDepth Split
Squeeze Tile Transpose Unsqueeze DequantizeLinear QuantizeLinear""".split()
)
"""Operators that integers of up to 32 bits pass through unchanged, or are stored by."""

_SECOND_INPUT = """CumSum Expand Gather GatherElements GatherND ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMean ReduceProd
ReduceSum ReduceSumSquare Reshape ScatterElements ScatterND Split Squeeze Tile TopK Trilu Unsqueeze""".split()
_INDEX_INPUTS = {**dict.fromkeys(_SECOND_INPUT, (1,)), "Pad": (1, 3), "Resize": (3,), "Slice": (1, 2, 3, 4)}
"""Operator -> inputs that count or index."""

_INDEX_OUTPUTS = {"ArgMax": (0,), "ArgMin": (0,), "TopK": (1,)}
"""Operator -> outputs that are indices."""


def _is_other_attention(node: Node) -> bool:
    shapes = [value.shape or () for value in node.inputs[:2] if value is not None]
    groups = {*map(len, shapes)} == {4} and shapes[0][1] != shapes[1][1] and any(not isinstance(dim, int) for dim in shapes[0])
    return groups or any("window" in name for name in node.attributes) or (node.flag("is_causal") and node.input(4) is not None)


def _is_other_resize(node: Node) -> bool:
    view = Resize.of(node)
    aligns = view.coordinates == "align_corners" and node.input(3) is None
    return aligns or view.antialiases or view.excludes_outside or view.policy != "stretch"


def _keeps_channels(node: Node) -> bool:
    shape, made = ((value and value.shape) or () for value in (node.inputs[0], node.outputs[0]))
    return len(shape) == 3 and isinstance(shape[1], int) and shape[1] != 1 and shape[1] in made


_RANDOM = ("Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
_DIFFERENT: dict[str, tuple[Callable[[Node], bool], str]] = {
    "Attention": (_is_other_attention, "windows, a past under a causal mask, and grouped heads of open sizes differ"),
    "DFT": (lambda node: True, "its results are less accurate"),
    "NonMaxSuppression": (lambda node: True, "it drops boxes that overlap by the threshold itself"),
    **dict.fromkeys(("AveragePool", "LpPool"), (lambda node: node.flag("ceil_mode"), "rounding up counts padding wrong")),
    **dict.fromkeys([name for name in _SECOND_INPUT if "Reduce" in name], (_keeps_channels, "constants that follow are mixed up")),
    **dict.fromkeys(_RANDOM, (lambda node: True, "its random numbers are others")),
    **dict.fromkeys(("Normalizer", "ReduceMax", "ReduceMin"), (lambda node: True, "the largest negative or infinite one differs")),
    "Resize": (_is_other_resize, "antialiasing, kept aspect ratios and weights outside differ"),
    "SpaceToDepth": (lambda node: not Blocks.of(node).is_depth_first, "it has the order DCR only"),
    "Tile": (lambda node: all(value is None or value.constant is None for value in node.inputs[1:]), "open repeats go wrong"),
}
"""Operator -> for which of its nodes OpenVINO's results differ from the standard's, and how; found by the standard's own cases."""


def reason_against(node: Node) -> str | None:
    """Return why OpenVINO is not queried for `node`, or None."""
    if node.subgraphs:
        return "its subgraphs are planned by sardonyx"
    differs, how = _DIFFERENT.get(node.op_type, (None, ""))
    if differs is not None and differs(node):
        return f"in OpenVINO {how}"
    made = [value if value.name or value.use_count else None for value in node.outputs]
    for what, values, table in (("input", node.inputs, _INDEX_INPUTS), ("output", made, _INDEX_OUTPUTS)):
        for index, value in enumerate(values):
            allowed = _INDICES if index in table.get(node.op_type, ()) else _SHORT if node.op_type in _MOVES else _DATA
            if value is not None and value.dtype not in allowed:
                return f"{what} {index} has elements of type {value.dtype or 'unknown'}, which OpenVINO would compute differently"
    shapes = [value.shape for value in (*node.inputs, *node.outputs) if value is not None]
    if None in shapes:
        return "the rank of an input or output is not known"
    return "it has empty tensors" if any(0 in shape for shape in shapes if shape is not None) else None
