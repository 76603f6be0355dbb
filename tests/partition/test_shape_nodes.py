"""Shape computations that stay on the host."""

from __future__ import annotations

import numpy as np
from support.models import graph, model
from support.providers import DeviceProvider

import sardonyx as ort
from sardonyx.formats.onnx import to_bytes
from sardonyx.partition.shape_nodes import shape_nodes

TEXT = """graph(x: float[n, 4], m: int64[1]) -> (y: float[k]) {
    two: int64[1] = [2]
    s: int64[2] = Shape(x)
    i: int64[1] = [0]
    a: int64[1] = Gather(s, i)
    b: int64[1] = Mul(a, two)
    c: int64[1] = Add(b, m)
    r: float[n, 4] = Relu(x)
    t: int64[2] = Shape(r)
    u: int64[1] = Gather(t, i)
    f: float[2] = Cast(t) {to = 1}
    y: float[k] = Expand(f, c)
}"""


def test_what_is_computed_of_host_sizes_stays() -> None:
    """Sizes of an input, and integers made of them and of a small input; not the sizes of what the device makes."""
    held = graph(TEXT)
    names = {value.name for node in shape_nodes(held, set(held)) for value in node.outputs}
    assert names == {"s", "a", "b", "c"}


def test_nodes_that_are_not_claimed_are_no_concern() -> None:
    """Their results are on the host: what is computed of them stays there too."""
    held = graph(TEXT)
    claimed = {node for node in held if node.op_type in ("Gather", "Mul")}
    names = {value.name for node in shape_nodes(held, claimed) for value in node.outputs}
    assert names == {"a", "b", "u"}


def test_a_device_is_not_given_shape_computations() -> None:
    """The session says why, and copies no sizes."""
    text = """graph(x: float[n, 4]) -> (y: float[n, 4], z: int64[2]) {
        two: int64[2] = [2, 2]
        s = Shape(x)
        z = Mul(s, two)
        y = Mul(x, x)
    }"""
    provider = DeviceProvider(("Mul",))
    session = ort.InferenceSession(to_bytes(model(text)), providers=[provider, "ReferenceExecutionProvider"])
    place = next(place for place in session.explain() if place.node == "z" or "z" in place.node)
    assert place.provider == "ReferenceExecutionProvider"
    assert place.declined["DeviceProvider"] == "a shape computation, which stays on the host"
    assert session.run(["z"], {"x": np.ones((3, 4), np.float32)})[0].tolist() == [6, 8]
    assert (provider.memory.from_host_count, provider.memory.to_host_count) == (1, 1)


def test_what_follows_a_node_placed_on_the_host_stays_too() -> None:
    """Its result is there; one that is placed on the device goes there, and what follows it."""
    text = """graph(x: float[n, 4]) -> (z: int64[2]) {
        two: int64[2] = [2, 2]
        s = Shape(x) @sizes
        z = Mul(s, two) @last
    }"""
    for placed, expected in (("Reference", "Reference"), ("Device", "Device")):
        options = ort.SessionOptions()
        options.place("node:sizes", f"{placed}ExecutionProvider")
        device = DeviceProvider(("Shape", "Mul"), "DeviceExecutionProvider")
        (last,) = (
            place.provider
            for place in ort.InferenceSession(
                to_bytes(model(text)), options, providers=[device, "ReferenceExecutionProvider"]
            ).explain()
            if place.node == "last"
        )
        assert last == f"{expected}ExecutionProvider"
