"""Write embeddings that are summed and normalized as what ai.onnx has for them.

    y, count = EmbedLayerNormalization(ids, segments?, words, positions, kinds?, gamma, beta, mask?, places?)

        ->      y = LayerNormalization(Gather(words, ids) + p + Gather(kinds, segments), gamma, beta)
                p = Gather(positions, places), or the first positions, as many as there are ids
                count = ReduceSum(mask = 1), or zeros without a mask

(com.microsoft, as onnxruntime's optimizers write it), so that any provider computes it. What is gathered of tables of half types
is cast to float32, and the result back: the sum is rounded once, and tables stay as they are.

Left alone:
    types other than float and half types
    a sum that is used; ids of unknown shape
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Value
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import microsoft
from sardonyx.optimize.terms import Term, attribute_value

__all__ = ["EXPAND_EMBEDDING", "EXPAND_EMBEDDING_MASK"]

_READS_AXES = 13
"""From this version on ReduceSum takes axes as an input, and Cast bfloat16."""
_KINDS = (DataType.FLOAT, DataType.FLOAT16, DataType.BFLOAT16)


def _pattern(op: PatternBuilder, ids: Term, words: Term, positions: Term, gamma: Term, beta: Term) -> Term:
    return op.EmbedLayerNormalization(
        ids,
        op.optional("segments"),
        words,
        positions,
        op.optional("kinds"),
        gamma,
        beta,
        op.optional("mask"),
        op.optional("places"),
        _domain="com.microsoft",
    )


def _mask_pattern(op: PatternBuilder, ids: Term, words: Term, positions: Term, gamma: Term, beta: Term) -> tuple[Term, ...]:
    return op.outputs(_pattern(op, ids, words, positions, gamma, beta), 2)


def _check(match: Match) -> str | None:
    tables = [match.get(name) for name in ("words", "positions", "kinds", "gamma", "beta")]
    if match["words"].dtype not in _KINDS or len({value.dtype for value in tables if value is not None}) > 1:
        return f"it is of {match['words'].dtype}, expected one of float, float16 and bfloat16"
    integers = [match.get(name) for name in ("ids", "segments", "mask", "places")]
    if any(value is not None and value.dtype is not DataType.INT32 for value in integers):
        return "ids or mask are no int32"
    shape = match["ids"].shape
    return None if shape is not None and len(shape) == 2 else f"the ids have shape {shape}, expected two dimensions"


def _replace(op: Builder, match: Match, learned: None) -> Value:
    total = op.Add(_wide(op, op.Gather(match["words"], match["ids"])), _wide(op, _placed(op, match)))
    segments, kinds = match.get("segments"), match.get("kinds")
    if segments is not None and kinds is not None:
        total = op.Add(total, _wide(op, op.Gather(kinds, segments)))
    gamma, beta = _wide(op, match["gamma"]), _wide(op, match["beta"])
    found, dtype = (
        op.LayerNormalization(total, gamma, beta, epsilon=float(attribute_value(match.root, "epsilon"))),
        match["words"].dtype,
    )
    return found if dtype is None or dtype is DataType.FLOAT else _cast(op, found, dtype)


def _wide(op: Builder, value: Value) -> Value:
    """Return a value in float32."""
    return value if value.dtype is DataType.FLOAT else _cast(op, value, DataType.FLOAT)


def _cast(op: Builder, value: Value, dtype: DataType) -> Value:
    return op.Cast(value, to=int(dtype), _version=max(op.version(), _READS_AXES))


def _placed(op: Builder, match: Match) -> Value:
    """Return the embeddings of positions, of each id or for all batches."""
    places = match.get("places")
    if places is not None:
        return op.Gather(match["positions"], places)
    zero, one, two = (np.array([number], np.int64) for number in range(3))
    version = max(op.version(), _READS_AXES)
    count = op.Slice(op.Shape(match["ids"]), one, two, _version=version)
    return op.Slice(match["positions"], zero, count, zero, _version=version)


def _replace_mask(op: Builder, match: Match, learned: None) -> tuple[Value, Value]:
    """Return the normalized embeddings, and how many ones the rows of the mask have."""
    mask, version = match.get("mask"), max(op.version(), _READS_AXES)
    if mask is None:
        one, zero = (np.array([number], np.int64) for number in (1, 0))
        batch = op.Slice(op.Shape(match["ids"]), zero, one, _version=version)
        return _replace(op, match, learned), op.Expand(np.zeros(1, np.int32), batch)
    is_seen = op.Cast(op.Equal(mask, np.ones((), np.int32)), to=int(DataType.INT32), _version=version)
    return _replace(op, match, learned), op.ReduceSum(is_seen, np.array([1], np.int64), keepdims=0, _version=version)


EXPAND_EMBEDDING = Rule(
    "expand_embedding",
    _pattern,
    _replace,
    _check,
    takes_apart=microsoft("EmbedLayerNormalization"),
    summary="Write EmbedLayerNormalization of com.microsoft without its mask index as Gather, Add and LayerNormalization.",
)
EXPAND_EMBEDDING_MASK = Rule(
    "expand_embedding_mask",
    _mask_pattern,
    _replace_mask,
    _check,
    takes_apart=microsoft("EmbedLayerNormalization"),
    summary="Write EmbedLayerNormalization of com.microsoft with its mask index as Gather, Add, ReduceSum and LayerNormalization.",
)
