"""Measuring nodes, partitions and copies by themselves."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from support.models import model
from support.slow_device import TimedDevice

from sardonyx.dtypes import Array
from sardonyx.ir import Model, Value
from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.partition.measured import claimed_by
from sardonyx.partition.profile import Copies, Profile, Sample
from sardonyx.providers.reference.provider import ReferenceProvider
from sardonyx.session import placement_samples
from sardonyx.session.placement_samples import Samples, fastest_us, in_turns_us, measure_copies

CHAIN = """graph(x: float[16, 64]) -> (y: float[16, 64]) {
    a = Neg(x)
    b = Relu(a)
    c = Exp(b)
    y = Neg(c)
}"""


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure for a shorter time than users do."""
    monkeypatch.setattr(placement_samples, "_BUDGET_S", 0.005)


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
    samples.measure(claimed_by(held.graph, providers), [].append if told is None else told.append)
    return samples


def _of(samples: Samples, provider: str) -> dict[str, Sample]:
    return {sample.operator: sample for sample in samples.found.values() if sample.provider == provider}


def test_what_a_node_takes_is_found_without_copies() -> None:
    """500 us a node, 200 us a copy, which are not counted as work; one sample for two nodes of one key."""
    samples = _measured(TimedDevice(node_us=500, copy_us=200))
    device = _of(samples, "TimedDevice")
    assert set(device) == {"Neg", "Relu"}
    assert 450 < device["Neg"].alone_us < 900
    assert 450 < device["Neg"].inside_us < 900
    assert (device["Neg"].size_bytes, device["Neg"].output_bytes) == (8192, (4096,))
    assert set(_of(samples, "ReferenceExecutionProvider")) == {"Neg", "Relu", "Exp"}


def test_what_a_partition_takes_before_work_is_told_from_its_nodes() -> None:
    """A slow node does not make the step slow."""
    assert _measured(TimedDevice(node_us=500, copy_us=0)).steps_us["TimedDevice"] < 250


def test_each_operator_and_partition_is_told() -> None:
    """Before it is measured."""
    told: list[str] = []
    _measured(TimedDevice(node_us=0, copy_us=0), told)
    assert [text.split()[0] for text in told] == ["Neg", "Relu", "Exp", "partitions", "partitions"]


def test_copies_are_measured_at_rising_sizes() -> None:
    """Both ways."""
    found = measure_copies(TimedDevice(node_us=0, copy_us=200).memory)
    assert isinstance(found, Copies)
    for points in (found.to_host, found.from_host):
        assert [size for size, _ in points] == sorted(size for size, _ in points)
        assert all(time_us >= 200 for _, time_us in points)


def test_the_fastest_run_counts() -> None:
    """The first, which may have to warm up, does not; unless it is far over the budget."""
    pauses = iter([0.02, 0.001, *[0.003] * 100])
    assert 1000 <= fastest_us(lambda: time.sleep(next(pauses)), 0.01) < 2900
    calls: list[float] = []
    assert fastest_us(lambda: (calls.append(0), time.sleep(0.01)), 0.0001) >= 10_000
    assert len(calls) == 1


def test_runs_take_turns_until_each_has_its_time() -> None:
    """The slow one runs less often."""
    counts = {"slow": 0, "fast": 0}

    def run(name: str, pause_s: float) -> None:
        counts[name] += 1
        time.sleep(pause_s)

    found = in_turns_us({"slow": lambda: run("slow", 0.004), "fast": lambda: run("fast", 0.001)}, 0.02)
    assert found["slow"] >= 4000 > found["fast"] >= 1000
    assert counts["fast"] > counts["slow"] >= 2
