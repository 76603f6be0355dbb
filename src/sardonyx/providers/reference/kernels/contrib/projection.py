"""Projections of com.microsoft on packed weights, with the normalization in front of them.

Dimension letters: K features, N features of a projection. Half types compute in float32 and are rounded where the parts round.
"""

from __future__ import annotations

import dataclasses

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.precision import widen
from sardonyx.providers.reference.kernels.contrib.matmul import matmul_n_bits
from sardonyx.providers.reference.kernels.contrib.normalize import (
    simplified_layer_normalization,
    skip_simplified_layer_normalization,
)
from sardonyx.providers.reference.kernels.delegate import run_standard
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["matmul_n_bits_mlp", "matmul_n_bits_qkv"]

_MICROSOFT = "com.microsoft"


@kernel("MatMulNBitsMlp", domain=_MICROSOFT)
def matmul_n_bits_mlp(
    call: Call,
    a: Array,
    skip: Array | None,
    norm_scale: Array | None,
    gate_b: Array,
    gate_scales: Array,
    gate_bias: Array | None,
    up_b: Array,
    up_scales: Array,
    up_bias: Array | None = None,
    *,
    K: int,
    N: int,
    accuracy_level: int = 0,
    activation: str,
    bits: int = 4,
    block_size: int,
    epsilon: float = 1e-5,
) -> tuple[Array, Array]:
    """Return SiLU(x gate + gate_bias) * (x up + up_bias) and a + skip.

    x is that sum over its root mean square, times norm_scale, or a itself without one. Weights are packed as those of MatMulNBits.
    Source: com.microsoft MatMulNBitsMlp.
    """
    if activation != "silu":
        raise InvalidArgument(f"activation is {activation!r}; expected 'silu'")
    x, total = _normalize(call, a, skip, norm_scale, epsilon)
    weights = _Packing(K, bits, block_size)
    gate, up = weights.project(call, x, gate_b, gate_scales, gate_bias, N), weights.project(call, x, up_b, up_scales, up_bias, N)
    y = widen(run_standard("Swish", gate)) * widen(up)
    return y.astype(a.dtype, copy=False), total


@kernel("MatMulNBitsQkv", domain=_MICROSOFT)
def matmul_n_bits_qkv(
    call: Call,
    a: Array,
    skip: Array | None,
    norm_scale: Array,
    q_b: Array,
    q_scales: Array,
    q_bias: Array | None,
    k_b: Array,
    k_scales: Array,
    k_bias: Array | None,
    v_b: Array,
    v_scales: Array,
    v_bias: Array | None = None,
    *,
    K: int,
    Nkv: int,
    Nq: int,
    accuracy_level: int = 0,
    bits: int = 4,
    block_size: int,
    epsilon: float = 1e-6,
) -> tuple[Array, ...]:
    """Return x q + q_bias, x k + k_bias, x v + v_bias and a + skip.

    x is that sum over its root mean square, times norm_scale. Weights are packed as those of MatMulNBits.
    Source: com.microsoft MatMulNBitsQkv.
    """
    x, total = _normalize(call, a, skip, norm_scale, epsilon)
    weights = _Packing(K, bits, block_size)
    q = weights.project(call, x, q_b, q_scales, q_bias, Nq)
    k, v = weights.project(call, x, k_b, k_scales, k_bias, Nkv), weights.project(call, x, v_b, v_scales, v_bias, Nkv)
    return q, k, v, total


@dataclasses.dataclass(frozen=True, slots=True)
class _Packing:
    """How the weights of all projections of a node are packed."""

    K: int
    """Features that a projection reads."""
    bits: int
    """Of a number."""
    block_size: int
    """Numbers that share a scale."""

    def project(self, call: Call, x: Array, b: Array, scales: Array, bias: Array | None, N: int) -> Array:
        """Return X (…, K) by weights (K, N), plus bias: (…, N)."""
        y: Array = matmul_n_bits(call, x, b, scales, None, None, bias, K=self.K, N=N, bits=self.bits, block_size=self.block_size)
        return y


def _normalize(call: Call, a: Array, skip: Array | None, scale: Array | None, epsilon: float) -> tuple[Array, Array]:
    """Return the normalized sum of a and skip, and the sum."""
    if scale is None:
        if skip is not None:
            raise InvalidArgument("skip is given without norm_scale; they belong to one normalization")
        return a, a
    if skip is not None:
        x, _, _, total = skip_simplified_layer_normalization(_ONE_OUTPUT, a, skip, scale, epsilon=epsilon)
        return x, total
    normalized = simplified_layer_normalization(_ONE_OUTPUT, a, scale, epsilon=epsilon)
    return (normalized[0] if isinstance(normalized, tuple) else normalized), a


_ONE_OUTPUT = Call(_MICROSOFT, "SimplifiedLayerNormalization", 1, (True,), (None,))
