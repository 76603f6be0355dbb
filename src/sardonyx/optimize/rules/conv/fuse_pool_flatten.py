"""Replace a global average pooling, and the Flatten or Squeeze after it, by ReduceMean.

    Flatten(GlobalAveragePool(x))           ->      ReduceMean(x, [2, 3]) {keepdims = 0}
    Squeeze(GlobalAveragePool(x), [2, 3])   ->      the same

with one axis for each dimension behind the channels. The numbers are the same.

Left alone:
    x of unknown rank, Flatten at another axis than 1, Squeeze of other axes
    a pool that has other users, or reads quantized numbers, which have a pool of their own
"""

from __future__ import annotations

import numpy as np

from sardonyx.ir import Value
from sardonyx.ops.views.reduce import takes_axes_input
from sardonyx.ops.views.reshape import Flatten, Squeeze
from sardonyx.optimize.contract import Level
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import standard
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_POOL_FLATTEN"]


def _pattern(op: PatternBuilder, x: Term) -> Term:
    pool = op.GlobalAveragePool(x)
    return op.any_of(op.Flatten(pool), op.Squeeze(pool, op.optional_constant("axes")))


def _check(match: Match) -> str | list[int]:
    x, node = match["x"], match.root
    if x.shape is None or (x.producer is not None and x.producer.op_type == "DequantizeLinear"):
        return "the rank of what is pooled is not known, or it is quantized"
    spatial = list(range(2, len(x.shape)))
    if node.op_type == "Flatten":
        return spatial if Flatten.of(node).place(len(x.shape)) == 1 else "it flattens at another axis than 1"
    axes = Squeeze.of(node, match.inputs(node)).places(len(x.shape))
    return spatial if isinstance(axes, tuple) and list(axes) == spatial else f"it squeezes {axes}, expected {spatial}"


def _replace(op: Builder, match: Match, axes: list[int]) -> Value:
    if takes_axes_input("ReduceMean", op.version("", "ReduceMean")):
        return op.ReduceMean(match["x"], np.array(axes, np.int64), keepdims=0)
    return op.ReduceMean(match["x"], axes=axes, keepdims=0)


FUSE_POOL_FLATTEN = Rule("fuse_pool_flatten", _pattern, _replace, _check, Level.EXTENDED, makes=standard("ReduceMean"))
