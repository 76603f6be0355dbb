"""Mixtures of experts of com.microsoft: each token goes through the k networks that its router likes best.

Dimension letters: T tokens, C hidden size, E experts, I inner size of an expert.

    w = softmax(router row), the k largest, normalized or not
    y = sum over those of w x (activation(x fc1^T + b1) fc2^T + b2)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.packed_weights import BITS, unpack
from sardonyx.providers.reference.algorithms.precision import widen
from sardonyx.providers.reference.algorithms.product import matmul_in_parts
from sardonyx.providers.reference.kernels.delegate import run_standard
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["mixture_of_experts", "quantized_mixture_of_experts"]

_MICROSOFT = "com.microsoft"

_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: run_standard("Gelu", x, approximate="tanh"),
    "silu": lambda x: run_standard("Swish", x),
    "identity": lambda x: x,
}


@dataclasses.dataclass(frozen=True, slots=True)
class _Activation:
    """What stands between the two products of an expert."""

    kind: str
    """One of _ACTIVATIONS, or swiglu."""
    alpha: float
    """Factor inside the sigmoid of SwiGLU."""
    beta: float
    """Added to the linear half of SwiGLU."""
    limit: float | None
    """Where SwiGLU clamps its halves, None for nowhere."""
    fusion: int
    """How the halves of SwiGLU lie in fc1: 0 in fc3 instead, 1 alternating, 2 one behind the other."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Layer:
    """One product of all experts."""

    weights: Callable[[int], Array]
    """Expert -> weights (out, in) in float32."""
    experts: int
    """How many experts have weights."""
    bias: Array | None
    """(E, out)."""

    def apply(self, expert: int, x: Array) -> Array:
        """Return X (T, in) through the layer of `expert`."""
        weights = self.weights(expert)
        if weights.ndim != 2 or weights.shape[1] != x.shape[1]:
            raise InvalidArgument(f"an expert's weights have shape {weights.shape}; its input has {x.shape[1]} elements")
        y = matmul_in_parts(x, weights.T)
        if self.bias is not None:
            if self.bias.ndim != 2 or self.bias.shape[0] <= expert or self.bias.shape[1] != len(weights):
                raise InvalidArgument(f"a bias has shape {self.bias.shape}; expected (experts, {len(weights)})")
            y += widen(self.bias[expert])
        return y


@kernel("MoE", domain=_MICROSOFT)
def mixture_of_experts(
    call: Call,
    x: Array,
    router_probs: Array,
    fc1_weights: Array,
    fc1_bias: Array | None,
    fc2_weights: Array,
    fc2_bias: Array | None = None,
    fc3_weights: Array | None = None,
    fc3_bias: Array | None = None,
    *,
    activation_alpha: float = 1.0,
    activation_beta: float = 0.0,
    activation_type: str = "relu",
    k: int = 1,
    normalize_routing_weights: int = 0,
    swiglu_fusion: int = 0,
    swiglu_limit: float | None = None,
    use_sparse_mixer: int = 0,
) -> Array:
    """Send X (T, C) or (B, S, C) through experts: fc1 (E, I, C), or 2I for fused SwiGLU, fc2 (E, C, I), fc3 (E, I, C).

    Router rows (T, E) are logits. `use_sparse_mixer` changes nothing, as in ONNX Runtime on a CPU. Source: com.microsoft MoE.
    """
    activation = _Activation(activation_type, activation_alpha, activation_beta, swiglu_limit, swiglu_fusion)
    layers = [_plain_layer(fc1_weights, fc1_bias), _plain_layer(fc2_weights, fc2_bias), _plain_layer(fc3_weights, fc3_bias)]
    return _mix(x, router_probs, None, layers, activation, k, bool(normalize_routing_weights))


@kernel("QMoE", domain=_MICROSOFT)
def quantized_mixture_of_experts(
    call: Call,
    x: Array,
    router_probs: Array,
    fc1_weights: Array,
    fc1_scales: Array,
    fc1_bias: Array | None,
    fc2_weights: Array,
    fc2_scales: Array,
    fc2_bias: Array | None = None,
    fc3_weights: Array | None = None,
    fc3_scales: Array | None = None,
    fc3_bias: Array | None = None,
    fc1_zero_points: Array | None = None,
    fc2_zero_points: Array | None = None,
    fc3_zero_points: Array | None = None,
    router_weights: Array | None = None,
    *,
    activation_alpha: float = 1.0,
    activation_beta: float = 0.0,
    activation_type: str = "relu",
    block_size: int = 0,
    expert_weight_bits: int = 4,
    fc1_expert_weight_bits: int = 0,
    fc2_expert_weight_bits: int = 0,
    fc3_expert_weight_bits: int = 0,
    k: int = 1,
    normalize_routing_weights: int = 0,
    quant_type: str = "int",
    swiglu_fusion: int = 0,
    swiglu_limit: float | None = None,
    use_sparse_mixer: int = 0,
    weights_prepacked: int = -1,
) -> Array:
    """Compute MoE on weights of 2, 4 or 8 bits, packed along their last axis, scaled per row or per block of `block_size` inputs.

    Scales are (E, out) or (E, out, blocks), zero points packed alike, half the range by default. Router weights (T, E), where
    given, mix what router_probs has chosen. Source: com.microsoft QMoE with quant_type int.
    """
    if quant_type != "int" or weights_prepacked == 1:
        raise InvalidArgument(
            f"quant_type is {quant_type!r} and weights_prepacked {weights_prepacked}; expected int, and -1 or 0: plain"
        )
    activation = _Activation(activation_type, activation_alpha, activation_beta, swiglu_limit, swiglu_fusion)
    given = (
        (fc1_weights, fc1_scales, fc1_zero_points, fc1_bias, fc1_expert_weight_bits),
        (fc2_weights, fc2_scales, fc2_zero_points, fc2_bias, fc2_expert_weight_bits),
        (fc3_weights, fc3_scales, fc3_zero_points, fc3_bias, fc3_expert_weight_bits),
    )
    layers = [
        None
        if weights is None or scales is None
        else _packed_layer(weights, scales, zeros, bias, bits or expert_weight_bits, block_size)
        for weights, scales, zeros, bias, bits in given
    ]
    return _mix(x, router_probs, router_weights, layers, activation, k, bool(normalize_routing_weights))


def _mix(
    x: Array,
    router: Array,
    router_weights: Array | None,
    layers: list[_Layer | None],
    activation: _Activation,
    k: int,
    is_normalized: bool,
) -> Array:
    """Return the weighted sum of the chosen experts, in the shape and type of x."""
    if x.ndim not in (2, 3) or router.ndim != 2 or router.shape[0] != x.size // max(x.shape[-1], 1):
        raise InvalidArgument(f"input has shape {x.shape} and router_probs {router.shape}; expected a router row for each token")
    E = router.shape[1]
    if not 1 <= k <= E:
        raise InvalidArgument(f"k is {k}; router_probs has {E} experts to choose from")
    if router_weights is not None and router_weights.shape != router.shape:
        raise InvalidArgument(f"router_weights has shape {router_weights.shape}; expected that of router_probs, {router.shape}")
    counts = {layer.experts for layer in layers if layer is not None}
    if counts != {E}:
        raise InvalidArgument(f"router_probs has shape {router.shape}, but there are weights for {sorted(counts)} experts")
    tokens = widen(x).reshape(len(router), x.shape[-1])
    chosen, weights = _route(widen(router), router_weights, k, is_normalized)
    y = np.zeros(tokens.shape, tokens.dtype)
    for expert in np.unique(chosen):
        rows, places = np.nonzero(chosen == expert)
        found = _run_expert(int(expert), tokens[rows], layers, activation)
        if found.shape != tokens[rows].shape:
            raise InvalidArgument(f"experts make {found.shape[1]} elements of {x.shape[-1]}; expected as many as the input has")
        y[rows] += weights[rows, places, None] * found
    return y.reshape(x.shape).astype(x.dtype, copy=False)


def _route(router: Array, router_weights: Array | None, k: int, is_normalized: bool) -> tuple[Array, Array]:
    """Return the chosen experts (T, k) and their weights; of equal logits the first wins."""
    chosen = np.argsort(-router, axis=1, kind="stable")[:, :k]
    source = run_standard("Softmax", router, axis=1) if router_weights is None else widen(router_weights)
    weights: Array = np.take_along_axis(source, chosen, axis=1)
    if is_normalized:
        total = weights.sum(axis=1, keepdims=True)
        weights = weights / np.where(total == 0, 1, total)
    return chosen, weights


def _run_expert(expert: int, x: Array, layers: list[_Layer | None], activation: _Activation) -> Array:
    first, second, gated = layers
    if first is None or second is None:
        raise InvalidArgument("the weights of fc1 or fc2, or their scales, are not given")
    inner = first.apply(expert, x)
    if activation.kind == "swiglu":
        inner = _swiglu(inner, None if gated is None else gated.apply(expert, x), activation)
    elif activation.kind in _ACTIVATIONS:
        inner = _ACTIVATIONS[activation.kind](inner)
        inner = inner if gated is None else inner * gated.apply(expert, x)
    else:
        raise InvalidArgument(f"activation_type is {activation.kind!r}; expected swiglu or one of {', '.join(_ACTIVATIONS)}")
    return second.apply(expert, inner)


def _swiglu(inner: Array, separate: Array | None, activation: _Activation) -> Array:
    """Return G sigmoid(alpha g) (l + beta), with both halves clamped; `separate` is l where fc1 holds g alone."""
    if activation.fusion == 0:
        if separate is None:
            raise InvalidArgument("swiglu_fusion is 0, but fc3 is not given: it holds the linear half of SwiGLU")
        gate, linear = inner, separate
    else:
        half = inner.shape[1] // 2
        gate, linear = (inner[:, ::2], inner[:, 1::2]) if activation.fusion == 1 else (inner[:, :half], inner[:, half:])
    if activation.limit is not None:
        gate, linear = np.minimum(gate, activation.limit), np.clip(linear, -activation.limit, activation.limit)
    result: Array = run_standard("Swish", gate, alpha=activation.alpha) * (linear + np.float32(activation.beta))
    return result


def _plain_layer(weights: Array | None, bias: Array | None) -> _Layer | None:
    if weights is None:
        return None
    experts = weights
    if experts.ndim != 3:
        raise InvalidArgument(f"weights have shape {experts.shape}; expected (experts, out, in)")
    return _Layer(lambda expert: widen(experts[expert]), len(experts), bias)


def _packed_layer(
    weights: Array, scales: Array, zero_points: Array | None, bias: Array | None, bits: int, block_size: int
) -> _Layer:
    """Return a layer that unpacks an expert's weights when it is needed."""
    if bits not in BITS or weights.ndim != 3:
        raise InvalidArgument(f"weights have shape {weights.shape} and {bits} bits; expected (experts, out, packed) and 2, 4 or 8")
    E, rows = weights.shape[:2]
    columns = weights.shape[2] * 8 // bits
    blocks = columns // block_size if block_size > 0 else 1
    if scales.size != E * rows * blocks or scales.shape[:2] != (E, rows):
        raise InvalidArgument(
            f"scales have shape {scales.shape}; weights {weights.shape} and block_size {block_size} make them "
            f"({E}, {rows}, {blocks})"
        )
    packed = (-(-rows * bits // 8),) if zero_points is not None and zero_points.ndim == 2 else (rows, -(-blocks * bits // 8))
    if zero_points is not None and (zero_points.shape != (E, *packed) or (len(packed) == 1 and blocks > 1)):
        raise InvalidArgument(f"zero points have shape {zero_points.shape}; scales {scales.shape} make them {(E, *packed)}")

    def read(expert: int) -> Array:
        numbers = unpack(weights[expert], bits, 1 << (bits - 1) if zero_points is None else 0).reshape(rows, blocks, -1)
        if zero_points is not None:
            numbers -= _zero_points_of(zero_points[expert], bits, rows, blocks)
        numbers *= widen(scales[expert]).reshape(rows, blocks, 1)
        return numbers.reshape(rows, columns)

    return _Layer(read, E, bias)


def _zero_points_of(packed: Array, bits: int, rows: int, blocks: int) -> Array:
    """Return zero points (rows, blocks, 1), packed along the blocks of each row, or along the rows where there is one block."""
    if packed.ndim == 1:
        return unpack(packed, bits)[:rows].reshape(rows, 1, 1)
    return unpack(packed, bits)[:, :blocks].reshape(rows, blocks, 1)
