"""Operators of com.microsoft on tokens and characters."""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor
from sardonyx.ops.shapes.axes import require_rank
from sardonyx.ops.shapes.contrib.array import same_shape

__all__: list[str] = []

_MICROSOFT = "com.microsoft"

shape_function("SampleOp", domain=_MICROSOFT)(same_shape)


@shape_function("BifurcationDetector", domain=_MICROSOFT)
def bifurcation_detector(
    call: ShapeCall, src_tokens: Fact, cur_tokens: Fact, prev_suffix_match_idx: Fact, pred_tokens: Fact | None = None
) -> tuple[Fact, Fact]:
    """Return tokens, as many as the data says, and one place."""
    count = cur_tokens.shape if pred_tokens is None and cur_tokens.shape is not None else (anonymous(),)
    return tensor(DataType.INT64, count), tensor(DataType.INT64, ())


@shape_function("MurmurHash3", domain=_MICROSOFT)
def murmur_hash_3(call: ShapeCall, x: Fact, *, positive: int = 1) -> Fact:
    """Return an integer for each element."""
    return tensor(DataType.UINT32 if positive else DataType.INT32, x.shape)


@shape_function("WordConvEmbedding", domain=_MICROSOFT)
def word_conv_embedding(call: ShapeCall, sequence: Fact, w: Fact, b: Fact, c: Fact) -> Fact:
    """Infer (words, characters) and (E, 1, window, K) -> (words, E)."""
    words, weights = require_rank(sequence, "Sequence", 2, 2), require_rank(w, "W", 4, 4)
    return tensor(w.dtype, (anonymous() if words is None else words[0], anonymous() if weights is None else weights[0]))
