"""Copies at the seams between memories."""

from __future__ import annotations

from support.models import graph
from support.providers import DeviceProvider, FusingProvider

from sardonyx.partition.assign import assign
from sardonyx.partition.cut import Cut, cut
from sardonyx.partition.transfers import insert_transfers


def _stages(text: str, device_operators: set[str], host_operators: set[str]) -> list[str]:
    held = graph(text)
    units = assign(held, [DeviceProvider(device_operators), FusingProvider(host_operators, fuse=False)]).units
    parts, _ = cut(held, units)
    return [
        f"{stage.provider.name}" if isinstance(stage, Cut) else f"{stage.value.name}: {stage.source.name} -> {stage.target.name}"
        for stage in insert_transfers(held, parts)
    ]


def test_a_device_in_the_middle_is_copied_to_and_from() -> None:
    """Host, device, host: one copy each way."""
    assert _stages("graph(x: float[2]) -> (y: float[2]) {\na = Exp(x)\nb = Relu(a)\ny = Exp(b)\n}", {"Relu"}, {"Exp"}) == [
        "FusingProvider",
        "a: cpu -> pretended:0",
        "DeviceProvider",
        "b: pretended:0 -> cpu",
        "FusingProvider",
    ]


def test_a_value_is_copied_once_to_each_memory() -> None:
    """Two readers on the device share one copy; the graph's output and a host reader share the copy back."""
    text = """graph(x: float[2]) -> (b: float[2], y: float[2]) {
        b = Relu(x)
        e = Exp(b)
        f = Add(x, e)
        y = Exp(f)
    }"""
    stages = _stages(text, {"Relu", "Add"}, {"Exp"})
    assert [stage for stage in stages if "->" in stage] == [
        "x: cpu -> pretended:0",
        "b: pretended:0 -> cpu",
        "e: cpu -> pretended:0",
        "f: pretended:0 -> cpu",
    ]


def test_outputs_come_back_to_the_host() -> None:
    """A graph that a device runs whole has its output copied."""
    assert _stages("graph(x: float[2]) -> (y: float[2]) {\ny = Relu(x)\n}", {"Relu"}, set())[-1] == "y: pretended:0 -> cpu"


def test_the_host_alone_needs_no_copies() -> None:
    """Partitions of one memory hand values over as they are."""
    assert _stages("graph(x: float[2]) -> (y: float[2]) {\ny = Exp(x)\n}", set(), {"Exp"}) == ["FusingProvider"]
