"""Operators through the standard's function bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.models import model

from sardonyx.ir.verify import verify
from sardonyx.providers.reference.provider import ReferenceProvider
from sardonyx.session.build import build
from sardonyx.session.function_bodies import expand
from sardonyx.session.options import SessionOptions


def _run(held: Any, x: Any) -> Any:
    built = build(held, SessionOptions(), [ReferenceProvider()], frozenset())
    return built.executor.run([x])[0]


NODES = [
    "Gelu(x)",
    'Gelu(x) {approximate = "tanh"}',
    "Celu(x) {alpha = 0.5}",
    "HardSwish(x)",
    "Softmax(x) {axis = 0}",
    "ThresholdedRelu(x)",
    "Mish(x)",
    "LogSoftmax(x)",
    "MeanVarianceNormalization(x) {axes = [0, 1]}",
]


@pytest.mark.parametrize("node", NODES)
def test_a_body_computes_what_the_kernel_does(node: str) -> None:
    """Attributes given, and the defaults of those left out, reach the body."""
    text = f"graph(x: float[3, 4]) -> (y: float[3, 4]) {{\ny = {node}\n}}"
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    held = model(text)
    assert expand(held, list(held.graph))
    verify(held)
    assert held.graph.outputs[0].name == "y"
    np.testing.assert_allclose(_run(held, x), _run(model(text), x), rtol=2e-5, atol=1e-6)


def test_an_operator_without_a_body_stays() -> None:
    """Conv is no function of others."""
    held = model("graph(x: float[1, 1, 4]) -> (y: float[1, 1, 4]) {\nw: float[1, 1, 1] = ... 1\ny = Conv(x, w)\n}")
    assert not expand(held, list(held.graph))
    assert [node.op_type for node in held.graph] == ["Conv"]
