"""Operators of com.microsoft on hyper-connections: several streams of features in place of one residual."""

from __future__ import annotations

from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor
from sardonyx.ops.shapes.axes import require_rank

__all__: list[str] = []

_MICROSOFT = "com.microsoft"


@shape_function("HyperConnectionPreMix", domain=_MICROSOFT)
def hyper_connection_pre_mix(call: ShapeCall, streams: Fact, pre_mix: Fact, *, num_branches: int = 0) -> Fact:
    """Infer (…, C, H), or (…, C x H) with `num_branches` C, -> (…, H)."""
    shape = streams.shape
    if not shape or num_branches < 0 or (num_branches == 0 and len(shape) < 2):
        return tensor(streams.dtype)
    reduced = (*shape[:-1], shape[-1] // num_branches) if num_branches else (*shape[:-2], shape[-1])
    return tensor(streams.dtype, reduced)


@shape_function("HyperConnectionPostMix", domain=_MICROSOFT)
def hyper_connection_post_mix(call: ShapeCall, streams: Fact, *others: Fact | None) -> Fact:
    """Give the output the shape and type of the streams."""
    return tensor(streams.dtype, streams.shape)


@shape_function("EngramGate", domain=_MICROSOFT)
def engram_gate(call: ShapeCall, key: Fact, *others: Fact | None) -> tuple[Fact, Fact]:
    """Give both outputs the shape and type of the keys (B, T, C, H)."""
    gated = tensor(key.dtype, require_rank(key, "key", 4, 4))
    return gated, gated
