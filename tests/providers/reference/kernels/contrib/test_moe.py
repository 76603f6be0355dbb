"""Mixtures of experts against a loop over tokens in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

T, C, E, INNER = 6, 16, 4, 8


def draw(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def run(op_type: str, *inputs: Any, **options: Any) -> Array:
    result: Array = run_op(op_type, *inputs, domain="com.microsoft", **options)
    return result


X, ROUTER = draw(T, C, seed=1), draw(T, E, seed=2)
FC1, FC2, FC3 = draw(E, INNER, C, seed=3), draw(E, C, INNER, seed=4), draw(E, INNER, C, seed=5)
B1, B2 = draw(E, INNER, seed=6), draw(E, C, seed=7)


def softmax(x: Array) -> Array:
    weights = np.exp(x.astype(np.float64))
    return weights / weights.sum(-1, keepdims=True)


def by_hand(expert: Callable[[int, Array], Array], k: int, is_normalized: bool, mixing: Array | None = None) -> Array:
    y = np.zeros((T, C))
    weights = softmax(ROUTER) if mixing is None else mixing
    for t in range(T):
        best = np.argsort(-ROUTER[t])[:k]
        total = weights[t, best].sum() if is_normalized else 1
        y[t] = sum(weights[t, e] / total * expert(e, X[t].astype(np.float64)) for e in best)
    return y


def dense(activation: Callable[[Array], Array]) -> Callable[[int, Array], Array]:
    return lambda e, x: FC2[e] @ activation(FC1[e] @ x + B1[e]) + B2[e]


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "identity": lambda x: x,
}


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize(("k", "normalize"), [(1, 0), (2, 0), (2, 1), (E, 1)])
def test_MoE_mixes_the_best_experts(name: str, k: int, normalize: int) -> None:
    """Router rows are logits; their softmax over all experts weighs the chosen ones."""
    y = run("MoE", X, ROUTER, FC1, B1, FC2, B2, k=k, normalize_routing_weights=normalize, activation_type=name)
    np.testing.assert_allclose(y, by_hand(dense(ACTIVATIONS[name]), k, bool(normalize)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("fusion", [0, 1, 2])
def test_MoE_swiglu_halves_lie_apart_or_fused(fusion: int) -> None:
    """In fc3, alternating with the gate, or behind it."""

    def expert(e: int, x: Array) -> Array:
        gate, linear = np.minimum(FC1[e] @ x, 2), np.clip(FC3[e] @ x, -2, 2)
        return FC2[e] @ (gate / (1 + np.exp(-1.5 * gate)) * (linear + 0.5))

    weights = {0: FC1, 1: np.stack([FC1, FC3], axis=2).reshape(E, 2 * INNER, C), 2: np.concatenate([FC1, FC3], axis=1)}[fusion]
    third = (None, FC3) if fusion == 0 else ()
    y = run(
        "MoE",
        X,
        ROUTER,
        weights,
        None,
        FC2,
        *third,
        k=2,
        activation_type="swiglu",
        swiglu_fusion=fusion,
        activation_alpha=1.5,
        activation_beta=0.5,
        swiglu_limit=2.0,
    )
    np.testing.assert_allclose(y, by_hand(expert, 2, False), rtol=1e-4, atol=1e-4)


def test_MoE_keeps_rank_and_type() -> None:
    """A batch is flattened to tokens; half types are kept."""
    y = run("MoE", X.reshape(2, 3, C).astype(np.float16), *(w.astype(np.float16) for w in (ROUTER, FC1, B1, FC2)))
    assert (y.shape, y.dtype) == ((2, 3, C), np.float16)


def pack(numbers: Array, bits: int) -> Array:
    shifts = np.arange(0, 8, bits)
    return (numbers.reshape(*numbers.shape[:-1], -1, len(shifts)) << shifts).sum(-1).astype(np.uint8)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize(("block", "has_zero_points"), [(0, False), (0, True), (8, False), (8, True)])
def test_QMoE_equals_MoE_of_its_dequantized_weights(bits: int, block: int, has_zero_points: bool) -> None:
    """Scales go by row or by block; zero points lie along the rows, or along the blocks of each row."""
    generator = np.random.default_rng(8)
    plain, given = [], []
    for rows, columns in ((INNER, C), (C, INNER)):
        blocks = columns // block if block else 1
        numbers = generator.integers(0, 1 << bits, (E, rows, columns))
        scales = generator.random((E, rows, blocks)).astype(np.float32)
        zeros = (
            generator.integers(0, 1 << bits, (E, rows, blocks)) if has_zero_points else np.full((E, rows, blocks), 1 << (bits - 1))
        )
        weights = (numbers.reshape(E, rows, blocks, -1) - zeros[..., None]) * scales[..., None]
        plain.append(weights.reshape(E, rows, columns).astype(np.float32))
        padded = np.pad(zeros, ((0, 0), (0, 0), (0, -blocks % (8 // bits)))) if block else zeros[..., 0]
        given.append((pack(numbers, bits), scales if block else scales[..., 0], pack(padded, bits) if has_zero_points else None))
    (w1, s1, z1), (w2, s2, z2) = given
    y = run("QMoE", X, ROUTER, w1, s1, B1, w2, s2, B2, None, None, None, z1, z2, k=2, expert_weight_bits=bits, block_size=block)
    expected = run("MoE", X, ROUTER, plain[0], B1, plain[1], B2, k=2)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-3)


def test_QMoE_may_mix_by_other_weights_than_it_chooses_by() -> None:
    """router_weights stand in for the softmax."""
    weights, scales = np.full((E, INNER, C // 2), 0x99, np.uint8), np.ones((E, INNER), np.float32)
    back, back_scales = np.full((E, C, INNER // 2), 0x99, np.uint8), np.ones((E, C), np.float32)
    mixing = np.abs(draw(T, E, seed=9))
    y = run("QMoE", X, ROUTER, weights, scales, None, back, back_scales, *[None] * 7, mixing, k=2, activation_type="identity")

    def expert(_: int, x: Array) -> Array:
        return np.full(C, x.sum() * INNER)

    np.testing.assert_allclose(y, by_hand(expert, 2, False, mixing), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "message"),
    [
        ("MoE", (X, ROUTER[:2], FC1, B1, FC2), {}, "a router row for each token"),
        ("MoE", (X, ROUTER, FC1, B1, FC2), {"k": 5}, "k is 5"),
        ("MoE", (X, ROUTER, FC1, B1, FC2), {"activation_type": "tanh"}, "'tanh'"),
        ("MoE", (X, ROUTER, FC1, B1, FC2), {"activation_type": "swiglu"}, "fc3 is not given"),
        ("MoE", (X, ROUTER, FC1[:2], B1, FC2), {}, r"weights for \[2, 4\] experts"),
        ("MoE", (X, ROUTER, FC1, B1[:, :3], FC2), {}, "a bias has shape"),
        ("MoE", (X, ROUTER, FC1[:, :, :5], B1, FC2), {}, "its input has 16 elements"),
        ("QMoE", (X, ROUTER, FC1, B1, None, FC2, B2), {"quant_type": "fp8"}, "'fp8'"),
        ("QMoE", (X, ROUTER, FC1, B1, None, FC2, B2), {"expert_weight_bits": 3}, "3 bits"),
        ("QMoE", (X, ROUTER, FC1.astype(np.uint8), B2, None, FC2, B2), {}, "scales have shape"),
    ],
)
def test_bad_arguments_are_named(op_type: str, inputs: tuple[Any, ...], attributes: dict[str, Any], message: str) -> None:
    """The message holds what was found."""
    with pytest.raises(InvalidArgument, match=message):
        run(op_type, *inputs, **attributes)
