"""Hashes of n-grams of com.microsoft."""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.ir import Dim
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor
from sardonyx.ops.shapes.axes import require_rank

__all__: list[str] = []

_MICROSOFT = "com.microsoft"


@shape_function("NGramHashMapping", domain=_MICROSOFT)
def n_gram_hash_mapping(
    call: ShapeCall, input_ids: Fact, *others: Fact | None, max_ngram_size: int, n_head_per_ngram: int
) -> tuple[Fact, Fact]:
    """Infer (B, T) -> a hash for each head, (B, T, D), and the last ids, (B, P)."""
    ids = require_rank(input_ids, "input_ids", 2, 2)
    reach = _reach(max_ngram_size)
    B, T = (anonymous(), anonymous()) if ids is None else ids
    return tensor(input_ids.dtype, (B, T, _heads(reach, n_head_per_ngram))), tensor(input_ids.dtype, (B, reach))


@shape_function("VarlenNGramHashMapping", domain=_MICROSOFT)
def varlen_n_gram_hash_mapping(
    call: ShapeCall,
    input_ids: Fact,
    multipliers: Fact,
    vocab_sizes: Fact,
    cumulative_sequence_length: Fact,
    *others: Fact | None,
    max_ngram_size: int,
    n_head_per_ngram: int,
    state_update_capacity: int = 0,
) -> tuple[Fact, ...]:
    """Infer (T,) of B sequences -> (T, D), the last ids and segments (B, P), and captured ids (B, slots, P)."""
    ids = require_rank(input_ids, "input_ids", 1, 1)
    bounds = require_rank(cumulative_sequence_length, "cumulative_sequence_length", 1, 1)
    reach, T = _reach(max_ngram_size), anonymous() if ids is None else ids[0]
    B = anonymous() if bounds is None or bounds[0] == 0 else bounds[0] - 1
    slots = max(state_update_capacity, 0)
    return (
        tensor(input_ids.dtype, (T, _heads(reach, n_head_per_ngram))),
        tensor(input_ids.dtype, (B, reach)),
        tensor(DataType.INT32, (B, reach)),
        tensor(input_ids.dtype, (B, slots, reach)),
    )


def _reach(max_ngram_size: int) -> Dim:
    """Return how many ids before its own a hash reads; a run refuses less than one."""
    return max_ngram_size - 1 if max_ngram_size > 1 else anonymous()


def _heads(reach: Dim, n_head_per_ngram: int) -> Dim:
    return reach * n_head_per_ngram if n_head_per_ngram > 0 else anonymous()
