"""Rules about attention and rotary embeddings, in the order in which they are tried at one node."""

from sardonyx.optimize.rule import Rule
from sardonyx.optimize.rules.attention.expand_attention import EXPAND_ATTENTION
from sardonyx.optimize.rules.attention.expand_attention_buffer import EXPAND_DECODER_SHARED_ATTENTION, EXPAND_MULTI_HEAD_BUFFER
from sardonyx.optimize.rules.attention.expand_attention_cache import EXPAND_ATTENTION_CACHE
from sardonyx.optimize.rules.attention.expand_attention_scores import (
    EXPAND_ATTENTION_IN_DOUBLE,
    EXPAND_ATTENTION_IN_DOUBLE_CACHE,
    EXPAND_ATTENTION_SCORES,
)
from sardonyx.optimize.rules.attention.expand_bias_softmax import EXPAND_BIAS_SOFTMAX
from sardonyx.optimize.rules.attention.expand_decoder_masked_attention import (
    EXPAND_DECODER_CACHE_ATTENTION,
    EXPAND_DECODER_CACHE_SCORES,
    EXPAND_DECODER_CROSS_ATTENTION,
    EXPAND_DECODER_CROSS_SCORES,
)
from sardonyx.optimize.rules.attention.expand_group_query import EXPAND_GROUP_QUERY
from sardonyx.optimize.rules.attention.expand_multi_head_attention import (
    EXPAND_MULTI_HEAD_ATTENTION,
    EXPAND_MULTI_HEAD_ATTENTION_CACHE,
    EXPAND_MULTI_HEAD_ATTENTION_SCORES,
)
from sardonyx.optimize.rules.attention.expand_rotary_embedding import EXPAND_ROTARY_EMBEDDING, EXPAND_ROTARY_POSITIONS
from sardonyx.optimize.rules.attention.fuse_attention import FUSE_ATTENTION
from sardonyx.optimize.rules.attention.fuse_attention_cache import FUSE_ATTENTION_CACHE
from sardonyx.optimize.rules.attention.fuse_attention_groups import FUSE_ATTENTION_GROUPS
from sardonyx.optimize.rules.attention.fuse_attention_projections import FUSE_ATTENTION_PROJECTIONS
from sardonyx.optimize.rules.attention.fuse_attention_scale import FUSE_ATTENTION_SCALE, FUSE_ATTENTION_SCALE_CACHE
from sardonyx.optimize.rules.attention.fuse_bias_softmax import FUSE_BIAS_SOFTMAX
from sardonyx.optimize.rules.attention.fuse_partial_rotary_embedding import FUSE_PARTIAL_ROTARY_EMBEDDING
from sardonyx.optimize.rules.attention.fuse_rotary_embedding import FUSE_ROTARY_EMBEDDING, FUSE_ROTARY_PAIRS
from sardonyx.optimize.rules.attention.pack_attention_heads import PACK_ATTENTION_HEADS
from sardonyx.optimize.rules.attention.pack_transposed_heads import PACK_TRANSPOSED_HEADS, PACK_TRANSPOSED_HEADS_CACHE
from sardonyx.optimize.rules.attention.split_attention_inputs import PROJECT_ATTENTION, SPLIT_ATTENTION_INPUTS

__all__ = ["DECOMPOSITIONS", "EXTENDED", "LATE_FUSIONS"]

DECOMPOSITIONS: tuple[Rule, ...] = (
    EXPAND_ATTENTION,
    EXPAND_ATTENTION_CACHE,
    EXPAND_ATTENTION_IN_DOUBLE,
    EXPAND_ATTENTION_IN_DOUBLE_CACHE,
    EXPAND_ATTENTION_SCORES,
    EXPAND_BIAS_SOFTMAX,
    EXPAND_DECODER_CROSS_ATTENTION,
    EXPAND_DECODER_CACHE_ATTENTION,
    EXPAND_DECODER_CROSS_SCORES,
    EXPAND_DECODER_CACHE_SCORES,
    EXPAND_DECODER_SHARED_ATTENTION,
    EXPAND_GROUP_QUERY,
    EXPAND_MULTI_HEAD_ATTENTION,
    EXPAND_MULTI_HEAD_ATTENTION_CACHE,
    EXPAND_MULTI_HEAD_ATTENTION_SCORES,
    EXPAND_MULTI_HEAD_BUFFER,
    EXPAND_ROTARY_EMBEDDING,
    EXPAND_ROTARY_POSITIONS,
    *PROJECT_ATTENTION,
    *SPLIT_ATTENTION_INPUTS,
)
"""Rules that take fused operators apart, at level BASIC before all others."""

EXTENDED: tuple[Rule, ...] = (
    FUSE_ATTENTION,
    PACK_ATTENTION_HEADS,
    FUSE_ATTENTION_GROUPS,
    FUSE_ATTENTION_CACHE,
    FUSE_ROTARY_EMBEDDING,
    FUSE_ROTARY_PAIRS,
    FUSE_PARTIAL_ROTARY_EMBEDDING,
    PACK_TRANSPOSED_HEADS,
    PACK_TRANSPOSED_HEADS_CACHE,
    FUSE_ATTENTION_SCALE,
    FUSE_ATTENTION_SCALE_CACHE,
)
"""The rules of level EXTENDED."""

LATE_FUSIONS: tuple[Rule, ...] = (
    FUSE_ATTENTION_PROJECTIONS,
    FUSE_BIAS_SOFTMAX,
)
"""Rules of level EXTENDED that make one operator of what other rules would decompose again."""
