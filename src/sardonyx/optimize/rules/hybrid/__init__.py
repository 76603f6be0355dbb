"""Rules about operators of decoders that mix attention with recurrences, in the order in which they are tried at one node."""

from sardonyx.optimize.rule import Rule
from sardonyx.optimize.rules.hybrid.expand_attention_gate import EXPAND_ATTENTION_DECAY, EXPAND_ATTENTION_GATE
from sardonyx.optimize.rules.hybrid.expand_causal_conv import EXPAND_CAUSAL_CONV, EXPAND_MICROSOFT_CAUSAL_CONV
from sardonyx.optimize.rules.hybrid.expand_gated_norm import EXPAND_BRANCHWISE_NORM, EXPAND_GATED_NORM
from sardonyx.optimize.rules.hybrid.expand_group_router import EXPAND_GROUP_ROUTER, EXPAND_ROUTER_SCORES
from sardonyx.optimize.rules.hybrid.expand_hyper_connection import (
    EXPAND_ENGRAM_GATE,
    EXPAND_ENGRAM_GATE_NORM,
    EXPAND_STREAM_POST_MIX,
    EXPAND_STREAM_PRE_MIX,
)
from sardonyx.optimize.rules.hybrid.expand_multimodal_rotary import EXPAND_MULTIMODAL_ROTARY

__all__ = ["DECOMPOSITIONS"]

DECOMPOSITIONS: tuple[Rule, ...] = (
    EXPAND_ATTENTION_GATE,
    EXPAND_ATTENTION_DECAY,
    EXPAND_BRANCHWISE_NORM,
    EXPAND_CAUSAL_CONV,
    EXPAND_MICROSOFT_CAUSAL_CONV,
    EXPAND_GATED_NORM,
    EXPAND_GROUP_ROUTER,
    EXPAND_ROUTER_SCORES,
    EXPAND_STREAM_PRE_MIX,
    EXPAND_STREAM_POST_MIX,
    EXPAND_ENGRAM_GATE,
    EXPAND_ENGRAM_GATE_NORM,
    EXPAND_MULTIMODAL_ROTARY,
)
"""Rules that take fused operators apart, at level BASIC before all others."""
