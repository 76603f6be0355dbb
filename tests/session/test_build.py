"""The chain from bytes to a plan."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from support.models import model
from support.providers import DeviceProvider, FusingProvider
from support.sessions import built_of

from sardonyx.errors import EPFail, InvalidArgument
from sardonyx.ir import Graph
from sardonyx.provider import Body, Claims, GraphView, Partition, Program
from sardonyx.providers.reference.provider import ReferenceProvider
from sardonyx.session.built import Built
from sardonyx.session.options import SessionOptions
from sardonyx.trace import Event, observe


def _build(text: str, *providers: FusingProvider) -> Built:
    return built_of(model(text), *providers, ReferenceProvider())


def test_the_stages_are_told_in_order() -> None:
    """Observers see each stage of the chain."""
    seen: list[Event] = []
    with observe(seen.append):
        _build("graph(x: float[2]) -> (y: float[2]) {\ny = Relu(x)\n}")
    stages = [event.name for event in seen if event.name.startswith("session.")]
    assert stages == ["session.load", "session.check", "session.optimize", "session.compile"]


def test_a_fused_claim_that_is_not_convex_is_taken_apart() -> None:
    """The nodes go to the next provider, and the report says why."""

    class Around(FusingProvider):
        def capabilities(self, view):  # type: ignore[no-untyped-def]  # as the base class
            from sardonyx.provider import Capability, Claims

            mine = tuple(node for node in view.nodes if node.op_type == "Relu")
            return Claims([Capability(mine, True, "around")] if len(mine) > 1 else [])

    built = _build("graph(x: float[2]) -> (y: float[2]) {\na = Relu(x)\nb = Exp(a)\nc = Neg(b)\ny = Relu(c)\n}", Around(()))
    assert {placement.provider for placement in built.placements} == {"ReferenceExecutionProvider"}
    assert "cannot run as one" in built.placements[0].declined["FusingProvider"]


def test_a_provider_that_fails_to_compile_is_named() -> None:
    """With the nodes that it claimed."""

    class Liar(FusingProvider):
        def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> Program:
            raise MemoryError("too big")

    with pytest.raises(EPFail, match="FusingProvider claimed 1 nodes, beginning with .*Relu.* MemoryError: too big"):
        _build("graph(x: float[2]) -> (y: float[2]) {\ny = Relu(x)\n}", Liar({"Relu"}))


def test_an_initializer_that_the_model_lacks_is_refused() -> None:
    """By name."""
    options = SessionOptions()
    options.add_initializer("k", 3)
    with pytest.raises(InvalidArgument, match="'k', which is no initializer"):
        built_of(model("graph(x: float[2]) -> (y: float[2]) {\ny = Relu(x)\n}"), ReferenceProvider(), options=options)


class _WithoutMish(ReferenceProvider):
    """The reference provider, but for one kernel."""

    def capabilities(self, view: GraphView) -> Claims:
        return super().capabilities(dataclasses.replace(view, nodes=tuple(node for node in view.nodes if node.op_type != "Mish")))


def test_standard_function_bodies_stand_in_for_missing_kernels() -> None:
    """A provider list without a kernel for an operator that has a function body runs the nodes of that body."""
    built = built_of(model("graph(x: float[2]) -> (y: float[2]) {\ny = Mish(x)\n}"), _WithoutMish())
    assert [placement.op_type for placement in built.placements] == ["Softplus", "Tanh", "Mul"]
    x = np.array([-1, 2], np.float32)
    np.testing.assert_allclose(built.executor.run([x])[0], x * np.tanh(np.log1p(np.exp(x))), rtol=1e-6)


def test_placements_and_copies_are_told() -> None:
    """In one event for all graphs of a session."""
    told: list[Event] = []
    text = "graph(x: float[2]) -> (y: float[2]) {\na = Relu(x)\ny = Exp(a)\n}"
    with observe(told.append):
        built = built_of(model(text), DeviceProvider(), ReferenceProvider())
    (done,) = [item.details for item in told if item.name == "placement.done"]
    assert (done["placements"], done["copies"]) == (built.placements, 2)
