"""Operators through the standard's function bodies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.models import model
from support.sessions import built_of

import sardonyx as ort
from sardonyx.formats.onnx import load, to_bytes
from sardonyx.ir.text import parse_model
from sardonyx.ir.verify import verify
from sardonyx.provider import HOST, Bound, Capability, Claims, GraphView, Layout, Partition
from sardonyx.providers.reference.provider import ReferenceProvider
from sardonyx.session.function_bodies import expand


def _run(held: Any, x: Any) -> Any:
    return built_of(held, ReferenceProvider()).executor.run([x])[0]


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


LOCAL = """ir_version 10
opset 21
opset local 1
graph main(x: float[2]) -> (y: float[2], z: float[2]) {
    t = local.Twice(x)
    y = local.Four(t)
    z = Neg(t)
}
function local.Twice(a) -> (b) {
    opset 21, local 1
    b = Add(a, a)
}
function local.Four(a) -> (b) {
    opset 21, local 1
    c = local.Twice(a)
    b = local.Twice(c)
}"""


class _Whole:
    """Runs local.Four whole, as a product with four; declines it when asked again, where that is wished."""

    name, preferred_layout, memory = "WholeProvider", Layout.NCHW, HOST

    def __init__(self, *, fickle: bool = False) -> None:
        self._fickle, self.asked = fickle, 0

    def capabilities(self, view: GraphView) -> Claims:
        self.asked += 1
        if self._fickle and self.asked > 1:
            return Claims()
        return Claims([Capability((node,)) for node in view.nodes if node.op_type == "Four"])

    def compile(self, partition: Partition, bodies: Any) -> Any:
        return _Product(len(partition.outputs))


class _Product:
    makes_outputs = True

    def __init__(self, count: int) -> None:
        self._count = count

    def bind(self, shapes: Any) -> Bound:
        return Bound((None,) * self._count)

    def run(self, bound: Bound, inputs: Any, outputs: Any, scratch: Any) -> list[Any]:
        return [inputs[0] * 4]


def test_a_function_that_a_provider_claims_stays_whole() -> None:
    """The others are inlined, also where they have the same body as a part of it."""
    session = ort.InferenceSession(to_bytes(parse_model(LOCAL)), providers=[_Whole(), "ReferenceExecutionProvider"])
    assert sorted((place.op_type, place.provider) for place in session.explain()) == [
        ("Add", "ReferenceExecutionProvider"),
        ("Neg", "ReferenceExecutionProvider"),
        ("local.Four", "WholeProvider"),
    ]
    y, z = session.run(None, {"x": np.array([1, 2], np.float32)})
    assert (y.tolist(), z.tolist()) == ([8, 16], [-2, -4])


def test_a_function_that_nobody_claims_in_the_end_is_inlined() -> None:
    """Its provider changed its mind: its body takes its place, and is offered anew."""
    session = ort.InferenceSession(to_bytes(parse_model(LOCAL)), providers=[_Whole(fickle=True)])
    assert [place.op_type for place in session.explain()].count("Add") == 3
    y, _ = session.run(None, {"x": np.array([1, 2], np.float32)})
    assert y.tolist() == [8, 16]


def test_all_functions_can_stay_until_providers_are_asked(tmp_path: Path) -> None:
    """The optimized model that is saved has the calls; what no provider claims is expanded then, with the same results."""
    options = ort.SessionOptions()
    options.add_session_config_entry("session.disable_aot_function_inlining", "1")
    options.optimized_model_filepath = str(tmp_path / "saved.onnx")
    for providers in ([_Whole()], None):
        session = ort.InferenceSession(to_bytes(parse_model(LOCAL)), options, providers=providers)
        y, z = session.run(None, {"x": np.array([1, 2], np.float32)})
        assert (y.tolist(), z.tolist()) == ([8, 16], [-2, -4])
        assert sorted(node.op_type for node in load(tmp_path / "saved.onnx").graph) == ["Four", "Neg", "Twice"]
