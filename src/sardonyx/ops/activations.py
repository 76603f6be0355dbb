"""Activations that fused operators of com.microsoft name, as FusedConv and FusedGemm do."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["FUSED_ACTIVATIONS"]

FUSED_ACTIVATIONS: Mapping[str, tuple[str, ...]] = {
    "Elu": ("alpha",),
    "Gelu": (),
    "HardSigmoid": ("alpha", "beta"),
    "HardSwish": (),
    "LeakyRelu": ("alpha",),
    "Relu": (),
    "Sigmoid": (),
    "Softplus": (),
    "Softsign": (),
    "Tanh": (),
    "ThresholdedRelu": ("alpha",),
}
"""Operator of ai.onnx -> the attributes that its parameters stand for, in order. Clip, whose limits are inputs, is one more."""
