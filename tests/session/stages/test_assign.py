"""The third stage: partitions."""

from __future__ import annotations

import pytest
from onnx import TensorProto, helper
from support.models import model
from support.providers import DeviceProvider, FusingProvider
from support.sessions import options_of

import sardonyx as ort
from sardonyx.errors import Fail, InvalidGraph
from sardonyx.errors import NotImplemented as NoProvider
from sardonyx.partition.part import Cut
from sardonyx.provider import Provider
from sardonyx.providers.reference.provider import ReferenceProvider
from sardonyx.session.options import SessionOptions
from sardonyx.session.settings.settings import read_settings
from sardonyx.session.stages.assign import Assigned, assign_model
from sardonyx.session.stages.load import load
from sardonyx.session.stages.prepare import prepare
from sardonyx.session.stages.provider_list import ProviderList
from sardonyx.session.stages.source import Source

CHAIN = "graph(x: float[2]) -> (y: float[2]) {\na = Relu(x)\nb = Exp(a)\ny = Neg(b)\n}"
BODY = """graph(x: float[2], n: int64[], go: bool[]) -> (y: float[2]) {
    a = Exp(x)
    y = Loop(n, go, a) {body = graph(i: int64[], c: bool[], v: float[2]) -> (c, w) {
        w = Mul(v, a)
    }} @loop
}"""


def _assigned(
    text: str, *providers: Provider, options: SessionOptions | None = None, excluded: dict[str, str] | None = None
) -> Assigned:
    settings, listed = read_settings(options or SessionOptions()), ProviderList.of(providers, excluded)
    return assign_model(prepare(load(Source(model(text)), settings.load), settings, listed), settings, listed)


def test_partitions_and_copies_are_in_their_order() -> None:
    """What a device reads and makes is copied."""
    main = _assigned(CHAIN, DeviceProvider({"Exp"}), ReferenceProvider()).main
    shown = [stage.provider.name if isinstance(stage, Cut) else f"to {stage.target.name}" for stage in main.stages]
    assert shown == ["ReferenceExecutionProvider", "to pretended:0", "DeviceProvider", "to cpu", "ReferenceExecutionProvider"]
    assert main.copy_count == 2


def test_bodies_are_assigned_after_their_graph() -> None:
    """Each with what it reads of outer graphs, and what it copies of that."""
    found = _assigned(BODY, DeviceProvider({"Mul"}), ReferenceProvider())
    main, body = found.main.walk()
    assert [value.name for value in body.captures] == ["a"]
    assert [move.value.name for move in body.entering] == ["a"]
    assert [place.graph for place in found.placements] == ["main", "main", "main/loop/body"]
    assert found.placements == (*main.placements, *body.placements)


def test_why_a_provider_was_left_out_is_reported() -> None:
    """With each node, as if it had declined it."""
    given = [FusingProvider({"Relu"}, "A"), ReferenceProvider()]
    found = _assigned(CHAIN, *given, excluded={"A": "it failed"})
    assert {place.declined["A"] for place in found.placements} == {"left out: it failed"}


def test_placed_nodes_go_where_they_are_placed() -> None:
    """Unless their provider was left out."""
    given = [FusingProvider({"Relu", "Exp", "Neg"}, "A", fuse=False), ReferenceProvider()]
    options = options_of(session__place="Relu=Reference; Exp=A")
    assert [place.provider for place in _assigned(CHAIN, *given, options=options).placements][:2] == [
        "ReferenceExecutionProvider",
        "A",
    ]
    lost = _assigned(CHAIN, *given, options=options, excluded={"A": "it failed"})
    assert {place.provider for place in lost.placements} == {"ReferenceExecutionProvider"}


def test_a_node_that_nobody_runs_is_an_error_with_the_reasons() -> None:
    """It begins with the model's name."""
    with pytest.raises(NoProvider, match="^model .*Conv.*: no provider runs it .A: Conv is not among its operators"):
        _assigned("graph(x: float[1, 1, 4], w: float[1, 1, 1]) -> (y) {\ny = Conv(x, w)\n}", FusingProvider({"Exp"}, "A"))


@pytest.mark.parametrize(
    ("domain", "kinds"), [("com.microsoft", (InvalidGraph, Fail)), ("my", (InvalidGraph, Fail)), ("", (InvalidGraph,))]
)
def test_an_unknown_operator_is_the_error_that_onnxruntime_raises(domain: str, kinds: tuple[type[Exception], ...]) -> None:
    """A Fail beside the standard's domains, also an InvalidGraph; in the standard's the latter only."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Foo", ["x"], ["y"], domain=domain)], "g", ends[:1], ends[1:])
    with pytest.raises(InvalidGraph) as caught:
        ort.InferenceSession(helper.make_model(graph, ir_version=8).SerializeToString())
    assert [kind for kind in (InvalidGraph, Fail) if isinstance(caught.value, kind)] == list(kinds)
