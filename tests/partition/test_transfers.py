"""Copies at the seams between memories."""

from __future__ import annotations

import numpy as np
from support.models import graph, model
from support.providers import DeviceProvider, FusingProvider

import sardonyx as ort
from sardonyx.formats.onnx import to_bytes
from sardonyx.partition.assign import assign
from sardonyx.partition.cut import cut
from sardonyx.partition.part import Cut
from sardonyx.partition.transfers import entering_transfers, insert_transfers


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


class _Other(DeviceProvider):
    """A second device."""

    def __init__(self, operators: set[str]) -> None:
        super().__init__(operators, "OtherProvider")
        self.memory.name = "pretended:1"


def _devices(text: str, first: set[str], second: set[str], host: set[str]) -> list[str]:
    held = graph(text)
    units = assign(held, [DeviceProvider(first), _Other(second), FusingProvider(host, fuse=False)]).units
    parts, _ = cut(held, units)
    return [
        f"{stage.value.name}: {stage.source.name} -> {stage.target.name}"
        for stage in insert_transfers(held, parts)
        if not isinstance(stage, Cut)
    ]


def test_a_value_comes_down_once_for_the_host_and_another_device() -> None:
    """From one device to the other by way of the host, where it stays for who reads it there."""
    text = """graph(x: float[2]) -> (y: float[2], z: float[2]) {
        a = Relu(x)
        b = Neg(a)
        c = Exp(a)
        y = Add(b, b)
        z = Exp(c)
    }"""
    copies = _devices(text, {"Relu"}, {"Neg", "Add"}, {"Exp"})
    assert sorted(copies) == [
        "a: cpu -> pretended:1",
        "a: pretended:0 -> cpu",
        "x: cpu -> pretended:0",
        "y: pretended:1 -> cpu",
    ]


def test_a_value_that_several_parts_of_a_device_read_goes_up_once() -> None:
    """A device's part, the host's and the device's again: x is there already."""
    text = """graph(x: float[2]) -> (y: float[2]) {
        a = Relu(x)
        b = Exp(a)
        y = Add(b, x)
    }"""
    copies = _stages(text, {"Relu", "Add"}, {"Exp"})
    assert copies.count("x: cpu -> pretended:0") == 1


def test_a_run_copies_as_often_as_the_plan_says() -> None:
    """One value up and one down, whatever reads them."""
    text = """graph(x: float[2]) -> (y: float[2], z: float[2]) {
        a = Relu(x)
        b = Neg(x)
        c = Add(a, b)
        y = Exp(c)
        z = Sin(c)
    }"""
    device = DeviceProvider()
    session = ort.InferenceSession(to_bytes(model(text)), providers=[device])
    session.run(None, {"x": np.ones(2, np.float32)})
    assert (device.memory.from_host_count, device.memory.to_host_count) == (1, 1)


def test_what_entered_before_is_not_copied_again() -> None:
    """A captured value enters each device that reads it once, before the stages; the host's part needs no copy."""
    held = graph("graph(x: float[2], k: float[2]) -> (y: float[2]) {\na = Relu(k)\nb = Exp(k)\nc = Add(a, b)\ny = Add(c, k)\n}")
    parts, _ = cut(held, assign(held, [DeviceProvider({"Relu", "Add"}), FusingProvider({"Exp"}, fuse=False)]).units)
    (entered,) = entering_transfers(parts, held.inputs)
    assert (entered.value.name, entered.target.name, entered.provider) == ("k", "pretended:0", "DeviceProvider")
    copied = [stage.value.name for stage in insert_transfers(held, parts, [entered]) if not isinstance(stage, Cut)]
    assert copied == ["b", "y"]
