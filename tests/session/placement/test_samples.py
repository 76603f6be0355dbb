"""Measuring nodes, partitions and copies by themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.models import model
from support.slow_device import FakeClock, TimedDevice

from sardonyx.dtypes import Array
from sardonyx.ir import Model, Value
from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.partition.claims import claims_of
from sardonyx.partition.profile import Copies, Profile, Sample
from sardonyx.providers.reference.provider import ReferenceProvider
from sardonyx.session.placement import samples as placement_samples
from sardonyx.session.placement.samples import Samples, fastest_us, in_turns_us, measure_copies

CHAIN = """graph(x: float[16, 64]) -> (y: float[16, 64]) {
    a = Neg(x)
    b = Relu(a)
    c = Exp(b)
    y = Neg(c)
}"""


CLOCK = FakeClock()
"""Nothing here takes time but what says so."""


@pytest.fixture(autouse=True)
def pretended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure by a pretended clock, for a shorter time than users do."""
    monkeypatch.setattr(placement_samples, "_BUDGET_S", 0.005)
    monkeypatch.setattr(placement_samples, "_now", CLOCK)


def _device(node_us: float, copy_us: float) -> TimedDevice:
    return TimedDevice(node_us=node_us, copy_us=copy_us, wait=CLOCK.wait)


def _model(text: str) -> tuple[Model, dict[Value, Array]]:
    """A model with shapes, and an array for each value."""
    held = model(text)
    INFER_SHAPES.run(held, Context())
    values = [*held.graph.inputs, *(value for node in held.graph for value in node.outputs)]
    return held, {value: np.zeros(value.shape, np.float32) for value in values}  # type: ignore[arg-type]  # numbers, here


def _measured(device: TimedDevice, told: list[str] | None = None) -> Samples:
    held, values = _model(CHAIN)
    providers: list[Any] = [device, ReferenceProvider()]
    samples = Samples(held, providers, values, Profile(copies={device.memory.name: measure_copies(device.memory)}))
    samples.measure(claims_of(held.graph, providers).nodes, [].append if told is None else told.append)
    return samples


def _of(samples: Samples, provider: str) -> dict[str, Sample]:
    return {sample.operator: sample for sample in samples.found.values() if sample.provider == provider}


def test_what_a_node_takes_is_found_without_copies() -> None:
    """500 us a node, 200 us a copy, which are not counted as work; one sample for two nodes of one key."""
    samples = _measured(_device(node_us=500, copy_us=200))
    device = _of(samples, "TimedDevice")
    assert set(device) == {"Neg", "Relu"}
    assert device["Neg"].alone_us == pytest.approx(500, abs=20)
    assert device["Neg"].inside_us == pytest.approx(500, abs=20)
    assert (device["Neg"].size_bytes, device["Neg"].output_bytes) == (8192, (4096,))
    assert set(_of(samples, "ReferenceExecutionProvider")) == {"Neg", "Relu", "Exp"}


def test_what_a_partition_takes_before_work_is_told_from_its_nodes() -> None:
    """A slow node does not make the step slow."""
    assert _measured(_device(node_us=500, copy_us=0)).steps_us["TimedDevice"] < 250


def test_each_operator_and_partition_is_told() -> None:
    """Before it is measured."""
    told: list[str] = []
    _measured(_device(node_us=0, copy_us=0), told)
    assert [text.split()[0] for text in told] == ["Neg", "Relu", "Exp", "partitions", "partitions"]


def test_copies_are_measured_at_rising_sizes() -> None:
    """Both ways."""
    found = measure_copies(_device(node_us=0, copy_us=200).memory)
    assert isinstance(found, Copies)
    for points in (found.to_host, found.from_host):
        assert [size for size, _ in points] == sorted(size for size, _ in points)
        assert all(time_us >= 200 for _, time_us in points)


def test_the_fastest_run_counts() -> None:
    """The first, which may have to warm up, does not; unless it is far over the budget."""
    pauses_us = iter([20_000, 1000, *[3000] * 100])
    assert fastest_us(lambda: CLOCK.wait(next(pauses_us)), 0.01) == pytest.approx(1000, abs=20)
    calls: list[float] = []
    assert fastest_us(lambda: (calls.append(0), CLOCK.wait(10_000)), 0.0001) == pytest.approx(10_000, abs=20)
    assert len(calls) == 1


def test_runs_take_turns_until_each_has_its_time() -> None:
    """The slow one runs less often."""
    counts = {"slow": 0, "fast": 0}

    def run(name: str, pause_us: float) -> None:
        counts[name] += 1
        CLOCK.wait(pause_us)

    found = in_turns_us({"slow": lambda: run("slow", 4000), "fast": lambda: run("fast", 1000)}, 0.02)
    assert found == pytest.approx({"slow": 4000, "fast": 1000}, abs=20)
    assert counts["fast"] > counts["slow"] >= 2
