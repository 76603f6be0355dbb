"""Bodies of control flow are optimized, converted, assigned and compiled like the main graph, once for all iterations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from support.models import model
from support.providers import DeviceProvider, NhwcProvider

import sardonyx as ort
from sardonyx.dtypes import Array
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir import Graph
from sardonyx.provider import Body, Bound, Partition, Program
from sardonyx.session.providers import get_available_providers

LOOP = """graph(x: float[2, 3], n: int64[]) -> (y: float[2, 3]) {
    go: bool[] = 1
    y = Loop(n, go, x) {body = graph body(i: int64[], c: bool[], s: float[2, 3]) -> (d: bool[], t: float[2, 3]) {
        one: float[] = 1.0
        half: float[] = 0.5
        d = Identity(c)
        a = Mul(s, half)
        k = Add(one, one)
        b = Add(a, k)
        e = Identity(b)
        t = Relu(e)
    }}
}"""

GROWING = """graph(x: float[1, 2], n: int64[]) -> (y: float) {
    go: bool[] = 1
    y = Loop(n, go, x) {body = graph body(i: int64[], c: bool[], s: float[r, 2]) -> (d: bool[], t: float[q, 2]) {
        d = Identity(c)
        a = Relu(s)
        t = Concat(a, a) {axis = 0}
    }}
}"""

IMAGE = """graph(x: float[1, 3, 6, 5], n: int64[]) -> (y: float[1, 3, 6, 5]) {
    go: bool[] = 1
    w: float[3, 3, 3, 3] = ... 1
    y = Loop(n, go, x) {body = graph body(i: int64[], c: bool[], s: float[1, 3, 6, 5]) -> (d: bool[], t: float[1, 3, 6, 5]) {
        d = Identity(c)
        a = Conv(s, w) {pads = [1, 1, 1, 1]}
        b = Relu(a)
        e = Conv(b, w) {pads = [1, 1, 1, 1]}
        t = Sigmoid(e)
    }}
}"""


class _Counting(DeviceProvider):
    """Counts how often its programs are bound and run."""

    def __init__(self) -> None:
        super().__init__()
        self.binds = self.runs = 0

    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> Program:
        return _Counted(super().compile(partition, bodies), self)


class _Counted:
    makes_outputs = False

    def __init__(self, program: Program, counts: _Counting) -> None:
        self._program, self._counts = program, counts

    def bind(self, shapes: tuple[tuple[int, ...] | None, ...]) -> Bound:
        self._counts.binds += 1
        return self._program.bind(shapes)

    def run(self, bound: Bound, inputs: Sequence[Any], outputs: Sequence[Any], scratch: Any) -> Sequence[Any]:
        self._counts.runs += 1
        return self._program.run(bound, inputs, outputs, scratch)


def _feed(shape: tuple[int, ...], count: int) -> dict[str, Array]:
    return {"x": np.random.default_rng(0).standard_normal(shape).astype(np.float32), "n": np.array(count, np.int64)}


def _reference(text: str, feed: dict[str, Array]) -> Array:
    result: Array = ort.InferenceSession(to_bytes(model(text)), providers=["ReferenceExecutionProvider"]).run(None, feed)[0]
    return result


def test_a_body_of_fixed_shapes_is_bound_once() -> None:
    """Fifty iterations run one program fifty times; it is compiled once, and bound to its shapes once."""
    provider = _Counting()
    session = ort.InferenceSession(to_bytes(model(LOOP)), providers=[provider])
    feed = _feed((2, 3), 50)
    np.testing.assert_allclose(session.run(None, feed)[0], _reference(LOOP, feed), rtol=1e-6)
    assert (len(provider.compiled), provider.binds, provider.runs) == (1, 1, 50)
    session.run(None, feed)
    assert (len(provider.compiled), provider.binds, provider.runs) == (1, 1, 100)


def test_a_body_whose_shapes_grow_is_bound_to_each_once() -> None:
    """Five shapes, whatever the number of runs; nothing is compiled again."""
    provider = _Counting()
    session = ort.InferenceSession(to_bytes(model(GROWING)), providers=[provider])
    feed = _feed((1, 2), 5)
    for _ in range(3):
        np.testing.assert_allclose(session.run(None, feed)[0], _reference(GROWING, feed))
    assert (len(provider.compiled), provider.binds, provider.runs) == (1, 5, 15)


def test_a_body_is_optimized() -> None:
    """Constants are folded and identities go: three nodes are left, in one partition, and the condition."""
    session = ort.InferenceSession(to_bytes(model(LOOP)), providers=[_Counting()])
    inner = [place.op_type for place in session.explain() if "/" in place.graph]
    assert sorted(inner) in (["Add", "Mul", "Relu"], ["Add", "Identity", "Mul", "Relu"])


def test_a_body_is_converted_to_nhwc() -> None:
    """Its transposes meet like those of the main graph: one in front of the first convolution, one behind the last node."""
    provider = NhwcProvider("Sigmoid")
    session = ort.InferenceSession(to_bytes(model(IMAGE)), providers=[provider])
    (part,) = provider.compiled
    assert [node.op_type for node in part.nodes] == ["Transpose", "Conv", "Relu", "Conv", "Sigmoid", "Transpose"]
    feed = _feed((1, 3, 6, 5), 3)
    np.testing.assert_allclose(session.run(None, feed)[0], _reference(IMAGE, feed), rtol=1e-5, atol=1e-6)


@pytest.mark.skipif("CPUExecutionProvider" not in get_available_providers(), reason="the CPU provider is not here")
def test_a_body_runs_compiled() -> None:
    """The CPU provider takes a body's nodes, weights of the outer graph included."""
    session = ort.InferenceSession(to_bytes(model(IMAGE)), providers=["CPUExecutionProvider"])
    inner = {place.provider for place in session.explain() if "/" in place.graph and place.op_type != "Identity"}
    assert inner == {"CPUExecutionProvider"}
    feed = _feed((1, 3, 6, 5), 3)
    np.testing.assert_allclose(session.run(None, feed)[0], _reference(IMAGE, feed), rtol=1e-5, atol=1e-6)


CAPTURING = """graph(x: float[2, 3], n: int64[]) -> (y: float[2, 3]) {
    go: bool[] = 1
    k = Neg(x)
    y = Loop(n, go, x) {body = graph body(i: int64[], c: bool[], s: float[2, 3]) -> (d: bool[], t: float[2, 3]) {
        d = Identity(c)
        a = Mul(s, k)
        b = Add(a, k)
        t = Relu(b)
    }}
}"""


@pytest.mark.parametrize("executor", ["sequential", "dataflow", "parallel"])
def test_what_a_body_captures_is_copied_once(executor: str) -> None:
    """To the device one copy of x, one of k for all iterations, and the state of each iteration."""
    options, provider = ort.SessionOptions(), DeviceProvider()
    options.add_session_config_entry("session.executor", executor)
    session = ort.InferenceSession(to_bytes(model(CAPTURING)), options, providers=[provider])
    feed = _feed((2, 3), 10)
    np.testing.assert_allclose(session.run(None, feed)[0], _reference(CAPTURING, feed), rtol=1e-6)
    assert (provider.memory.from_host_count, provider.memory.to_host_count) == (1 + 1 + 10, 1 + 10)
    provider.memory.from_host_count = 0
    session.run(None, _feed((2, 3), 0))
    assert provider.memory.from_host_count == 1
