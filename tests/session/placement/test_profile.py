"""Measuring a model for placement, on a device that is slow by known amounts."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.models import model
from support.providers import FusingProvider
from support.slow_device import FakeClock, TimedDevice

import sardonyx as ort
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir import Graph
from sardonyx.partition.measured import MEASURED
from sardonyx.partition.profile import Profile, Sample, load_profile, save_profile
from sardonyx.provider import Body, Bound, Claims, GraphView, Partition, Program, Provider
from sardonyx.session.options import SessionOptions
from sardonyx.session.placement import profile as placement_profile
from sardonyx.session.placement import samples as placement_samples
from sardonyx.session.placement.profile import profile_placement
from sardonyx.session.providers import REFERENCE, make_providers, requested
from sardonyx.trace import Event, observe

TEXT = """graph(x: float[n, 64]) -> (y: float[n, 64]) {
    w: float[64] = ... 1
    a = Neg(x)
    b = Exp(a)
    c = Neg(b)
    d = Mul(c, w)
    y = Exp(d)
}"""
FEED = {"x": np.zeros((16, 64), np.float32)}


CLOCK = FakeClock()
"""Nothing here takes time but what says so."""


@pytest.fixture(autouse=True)
def pretended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure by a pretended clock, for a shorter time than users do."""
    monkeypatch.setattr(placement_samples, "_BUDGET_S", 0.0005)
    monkeypatch.setattr(placement_samples, "_now", CLOCK)
    monkeypatch.setattr(placement_profile, "_RUN_BUDGET_S", 0.0005)


def _device(node_us: float, copy_us: float) -> TimedDevice:
    return TimedDevice(node_us=node_us, copy_us=copy_us, wait=CLOCK.wait)


def _providers(*first: Provider) -> list[Provider]:
    return [*first, *make_providers([])]


def _profiled(device: TimedDevice, options: SessionOptions | None = None) -> Profile:
    return profile_placement(to_bytes(model(TEXT)), options or SessionOptions(), _providers(device), FEED)


def _session(profile: Profile, device: TimedDevice, folder: Path) -> ort.InferenceSession:
    save_profile(profile, folder / "profile.json")
    options = SessionOptions()
    options.placement = "measured"
    options.placement_profile = str(folder / "profile.json")
    session = ort.InferenceSession(to_bytes(model(TEXT)), options, providers=[device, REFERENCE])
    expected = ort.InferenceSession(to_bytes(model(TEXT)), providers=[REFERENCE]).run(None, FEED)[0]
    np.testing.assert_array_equal(session.run(None, FEED)[0], expected)
    return session


def test_whole_runs_are_timed_for_each_provider() -> None:
    """The slow device at least as slow as it is; and the placement that the profile leads to, where it is a mixture."""
    profile = _profiled(_device(node_us=500, copy_us=200))
    ((key, times),) = profile.models.items()
    assert len(key) == 16
    assert times["TimedDevice"] > 3 * 500 + 4 * 200 > times[REFERENCE]
    assert set(times) - {MEASURED} == {"TimedDevice", REFERENCE}


def test_what_was_measured_by_pieces_agrees_with_whole_runs() -> None:
    """On the slow device, where nearly all time is known."""
    profile = _profiled(_device(node_us=500, copy_us=200))
    (neg,) = (sample for sample in profile.samples if (sample.provider, sample.operator) == ("TimedDevice", "Neg"))
    assert neg.inside_us == pytest.approx(500, rel=0.01)
    assert profile.sizes == {"n": 16}


def test_a_slow_device_gets_nothing(tmp_path: Path) -> None:
    """Though it is asked first, which is what greedy placement goes by."""
    device = _device(node_us=500, copy_us=200)
    session = _session(_profiled(device), device, tmp_path)
    assert {placement.provider for placement in session.explain()} == {REFERENCE}


def test_a_fast_device_gets_its_part(tmp_path: Path) -> None:
    """Where the profile says that it is faster, and so does a whole run."""
    device = _device(node_us=0, copy_us=0)
    found = _profiled(device)
    faster = [
        Sample(**{field: getattr(sample, field) for field in Sample.__slots__} | {"inside_us": 500.0})
        if sample.provider == REFERENCE
        else sample
        for sample in found.samples
    ]
    session = _session(Profile(tuple(faster), found.steps_us, found.copies, found.sizes, {}), device, tmp_path)
    assert [placement.provider for placement in session.explain() if placement.op_type in ("Neg", "Mul")] == ["TimedDevice"] * 3


def test_a_profile_serves_other_sizes(tmp_path: Path) -> None:
    """Its file, read again, decides for a session of the same model."""
    device = _device(node_us=500, copy_us=200)
    save_profile(_profiled(device), tmp_path / "a.json")
    loaded = load_profile(tmp_path / "a.json")
    session = _session(loaded, device, tmp_path)
    assert session.run(None, {"x": np.zeros((3, 64), np.float32)})[0].shape == (3, 64)


def test_progress_is_told() -> None:
    """Each thing before it is measured."""
    told: list[str] = []
    profile_placement(to_bytes(model(TEXT)), SessionOptions(), _providers(), FEED, told.append)
    assert told[:2] == ["values", "copies"]
    assert f"partitions on {REFERENCE}" in told
    assert told[-1] == "runs"


def test_control_flow_is_left_to_the_order_of_the_providers() -> None:
    """Its node is not measured; those around it are."""
    text = """graph(x: float[2], c: bool[]) -> (y: float[2]) {
        a = Neg(x)
        b = If(c) {then_branch = graph() -> (t) {\nt = Exp(a)\n}, else_branch = graph() -> (e) {\ne = Abs(a)\n}}
        y = Neg(b)
    }"""
    feed: dict[str, Any] = {"x": np.zeros(2, np.float32), "c": np.array(True)}
    profile = profile_placement(to_bytes(model(text)), SessionOptions(), _providers(), feed)
    assert {sample.operator for sample in profile.samples} == {"Neg"}


def test_in_bodies_the_best_single_provider_is_asked_first(tmp_path: Path) -> None:
    """Nodes of bodies are not measured, but the slow device should not get them."""
    text = """graph(x: float[64], c: bool[]) -> (y: float[64]) {
        a = Neg(x)
        b = If(c) {then_branch = graph() -> (t) {\nt = Neg(a)\n}, else_branch = graph() -> (e) {\ne = Neg(a)\n}}
        y = Exp(b)
    }"""
    feed: dict[str, Any] = {"x": np.zeros(64, np.float32), "c": np.array(True)}
    device = _device(node_us=500, copy_us=200)
    found = profile_placement(to_bytes(model(text)), SessionOptions(), _providers(device), feed)
    save_profile(found, tmp_path / "p.json")
    options = SessionOptions()
    options.placement, options.placement_profile = "measured", str(tmp_path / "p.json")
    session = ort.InferenceSession(to_bytes(model(text)), options, providers=[device, REFERENCE])
    assert {placement.provider for placement in session.explain()} == {REFERENCE}


def test_a_session_knows_the_model_that_was_measured(tmp_path: Path) -> None:
    """Also one of half floats, whose types were widened before: every node has its own sample."""
    text = "graph(x: float16[n, 64]) -> (y: float16[n, 64]) {\na = Neg(x)\nb = Sin(a)\ny = Relu(b)\n}"
    feed = {"x": np.zeros((16, 64), np.float16)}
    found = profile_placement(to_bytes(model(text)), SessionOptions(), make_providers(requested(None, None, ())), feed)
    save_profile(found, tmp_path / "p.json")
    options = SessionOptions()
    options.placement, options.placement_profile = "measured", str(tmp_path / "p.json")
    seen: list[Event] = []
    with observe(seen.append):
        ort.InferenceSession(to_bytes(model(text)), options)
    (told,) = (event for event in seen if event.name == "placement.measured")
    assert told.details["graph_key"] in found.models


@pytest.mark.parametrize("source", [io.BytesIO(b"x"), model(TEXT)], ids=["file object", "ir"])
def test_a_source_that_is_read_once_is_refused(source: Any) -> None:
    """Each session that is timed loads it."""
    with pytest.raises(InvalidArgument, match="give a path, bytes or a ModelProto"):
        profile_placement(source, SessionOptions(), _providers(), FEED)


class _Timed:
    """A provider that takes a known time for each node that it claims: of any type, or of float32 only."""

    def __init__(self, provider: Provider, node_us: float, *, narrow: bool = True) -> None:
        self.name, self.preferred_layout, self.memory = provider.name, provider.preferred_layout, provider.memory
        self._provider, self._node_us, self._narrow = provider, node_us, narrow

    def capabilities(self, view: GraphView) -> Claims:
        found = self._provider.capabilities(view)
        fits = [item for item in found.capabilities if self._narrow or item.nodes[0].output.dtype is DataType.FLOAT]
        return Claims(fits, found.declined)

    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> Program:
        return _TimedProgram(self._provider.compile(partition, bodies), self._node_us * len(partition.nodes))


class _TimedProgram:
    makes_outputs = True

    def __init__(self, program: Program, run_us: float) -> None:
        self._program, self._run_us = program, run_us

    def bind(self, shapes: tuple[tuple[int, ...] | None, ...]) -> Bound:
        return self._program.bind(shapes)

    def run(self, bound: Bound, inputs: Sequence[Any], outputs: Sequence[Any], scratch: Any) -> Sequence[Any]:
        CLOCK.wait(self._run_us)
        return self._program.run(bound, inputs, outputs, scratch)


@pytest.mark.parametrize(("narrow_us", "wide_us", "winner"), [(500, 20, "Wide"), (20, 500, "Narrow")])
def test_narrow_floats_are_measured_narrow_and_wide(tmp_path: Path, narrow_us: float, wide_us: float, winner: str) -> None:
    """A provider that runs float16 as it is does not keep the model from one that is faster in float32."""
    source = to_bytes(model(TEXT.replace("float[", "float16[")))
    operators = {"Neg", "Exp", "Mul"}
    providers = [
        _Timed(FusingProvider(operators, "Narrow", fuse=False), narrow_us),
        _Timed(FusingProvider(operators, "Wide", fuse=False), wide_us, narrow=False),
        *(_Timed(provider, 1000) for provider in make_providers([])),
    ]
    feed = {"x": np.zeros((16, 64), np.float16)}
    save_profile(profile_placement(source, SessionOptions(), providers, feed), tmp_path / "p.json")
    options = SessionOptions()
    options.placement, options.placement_profile = "measured", str(tmp_path / "p.json")
    session = ort.InferenceSession(source, options, providers=providers)
    assert {place.provider for place in session.explain() if place.op_type != "Cast"} == {winner}
    assert session.run(None, feed)[0].dtype == np.float16


def test_a_profile_of_another_model_is_told(tmp_path: Path) -> None:
    """It decides nothing."""
    save_profile(_profiled(_device(node_us=0, copy_us=0)), tmp_path / "p.json")
    options = SessionOptions()
    options.placement, options.placement_profile = "measured", str(tmp_path / "p.json")
    text = "graph(x: float[2, 2]) -> (y: float[2, 2]) {\ny = MatMul(x, x)\n}"
    with pytest.warns(UserWarning, match="profile has no operator of model main on Reference.*: nodes go by the order"):
        ort.InferenceSession(to_bytes(model(text)), options, providers=[REFERENCE])
