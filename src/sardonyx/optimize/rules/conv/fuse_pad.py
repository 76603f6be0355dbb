"""Fold a padding into the convolution or pooling after it.

    Conv(Pad(x, p), w, b?) {pads = q}            ->      Conv(x, w, b?) {pads = p + q}
    AveragePool(Pad(x, p)) {pads = q}            ->      AveragePool(x) {pads = p + q, count_include_pad = 1}       where q is 0
    MaxPool(Pad(x, p, least)) {pads = q}         ->      MaxPool(x) {pads = p + q}

with 0 as the value that is padded with, and the least of the type, or -inf, for MaxPool, which pads with it.

Left alone:
    a mode other than constant, other values
    pads that are no constants, that are negative, or that reach the batch or the channels
    auto_pad other than NOTSET, which computes pads of its own from the padded size
    AveragePool that pads too, or rounds up (ceil_mode): which elements count would change; or whose opset has no count_include_pad
    MaxPool that rounds up (ceil_mode), gives indices, or would pad as much as its window: a window in the padding gives its value
    Pad of opset 18 and later with axes
    a padded value that has other users
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Value
from sardonyx.ops.views.slice import Pad
from sardonyx.ops.views.window import Sliding
from sardonyx.optimize.edit import small_constant
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term, attribute_value

__all__ = ["FUSE_PAD"]

_OTHER_VALUE = "the value is not that with which the operator pads"


def _pattern(op: PatternBuilder, x: Term) -> Term:
    padded = op.Pad(x, op.rest("operands"), mode="constant", _as="pad")
    return op.any_of(op.Conv(padded, op.rest("weights")), op.AveragePool(padded), op.MaxPool(padded))


def _check(match: Match) -> str | list[int]:
    pads = _pads(match)
    if isinstance(pads, str):
        return pads
    node, rank = match.root, len(pads) // 2
    if rank < 3 or any(pads[:2]) or any(pads[rank : rank + 2]) or min(pads) < 0:
        return f"the pads {pads} are not of the spatial axes alone, or negative"
    sliding = Sliding.of(node)
    if sliding.auto_pad != "NOTSET":
        return f"auto_pad is {sliding.auto_pad}, expected NOTSET"
    spatial = [*pads[2:rank], *pads[rank + 2 :]]
    own = list(sliding.pads or [0] * len(spatial))
    if len(own) != len(spatial):
        return f"the pads {own} and {spatial} do not fit"
    if node.op_type == "AveragePool" and (any(own) or sliding.ceil_mode):
        return "the pooling pads too, or rounds up"
    if node.op_type == "AveragePool" and attribute_value(node, "count_include_pad") is None:
        return "the pooling has no count_include_pad"
    sums = [ours + theirs for ours, theirs in zip(own, spatial, strict=True)]
    if node.op_type == "MaxPool" and (sliding.ceil_mode or _reaches(sums, sliding)):
        return "the pooling rounds up, or a window may lie in the padding"
    return sums


def _reaches(pads: list[int], sliding: Sliding) -> bool:
    """Return whether a window of the pooling may hold nothing but padding."""
    window = sliding.kernel_shape
    if any(step != 1 for step in sliding.dilations):
        return True
    return len(pads) != 2 * len(window) or any(pad >= size for pad, size in zip(pads, [*window, *window], strict=True))


def _pads(match: Match) -> list[int] | str:
    """Return the pads in the order begin..., end..., or why they cannot be used."""
    node = match.node("pad")
    view = Pad.of(node, match.inputs(node))
    if view.axes is not None:
        return "the padding has axes"
    value = node.input(2)
    number = small_constant(value, match.place.overridable, max_elements=1)
    if value is not None and (number is None or number.size != 1):
        return _OTHER_VALUE
    if not _is_neutral(match, view.value or 0.0 if number is None else float(number.reshape(()))):
        return _OTHER_VALUE
    return list(view.pads) if isinstance(view.pads, tuple) else "the pads are no constant"


def _is_neutral(match: Match, number: float) -> bool:
    """Return whether what follows pads with the same number."""
    dtype = match["x"].dtype
    if match.root.op_type != "MaxPool":
        return number == 0
    return dtype is DataType.FLOAT and number <= float(np.finfo(np.float32).min)


def _replace(op: Builder, match: Match, pads: list[int]) -> Value:
    node = match.root
    weights = match.rest("weights") if node.op_type == "Conv" else ()
    included = 1 if node.op_type == "AveragePool" else None
    return op.node(node.op_type, match["x"], *weights, _attributes=node.attributes, pads=pads, count_include_pad=included)


FUSE_PAD = Rule("fuse_pad", _pattern, _replace, _check, aliases=("Pad_Fusion",))
