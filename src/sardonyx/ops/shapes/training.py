"""Optimizers of ai.onnx.preview.training."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.ops.fact import UNKNOWN, Fact, ShapeCall, shape_function, tensor

__all__: list[str] = []

_STATES = {"Adagrad": 2, "Adam": 3, "Momentum": 2}
"""How many outputs each parameter has: itself and its states. The inputs have its gradient too."""


@shape_function("Adagrad", "Adam", "Momentum", domain="ai.onnx.preview.training")
def optimizer(call: ShapeCall, rate: Fact, step: Fact, *inputs: Fact | None) -> tuple[Fact, ...]:
    """Infer R, T, all parameters, all gradients, all states … -> new parameters, then new states, each as its parameter."""
    count = len(inputs) // (_STATES[call.op_type] + 1)
    parameters = [UNKNOWN if fact is None else tensor(fact.dtype, fact.shape) for fact in inputs[:count]]
    return tuple(parameters * _STATES[call.op_type])


@shape_function("Gradient", domain="ai.onnx.preview.training")
def gradient(call: ShapeCall, *inputs: Fact | None, xs: Sequence[str] = ()) -> tuple[Fact, ...]:
    """Return the derivative by each of the first inputs, in its shape."""
    return tuple([UNKNOWN if fact is None else tensor(fact.dtype, fact.shape) for fact in inputs[: len(xs)]])
