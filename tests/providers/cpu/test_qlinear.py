"""The element-wise operators of com.microsoft on 8 bits: the same integers as the reference provider's, and what is declined."""

from typing import Any

import numpy as np
import pytest
from support.cpu_run import LEVELS, assert_same_bits, cpu_session, declined, steps_of, symbols_of
from support.models import model

from sardonyx import GraphOptimizationLevel, InferenceSession, SessionOptions
from sardonyx.dtypes import Array
from sardonyx.formats.onnx import to_bytes
from sardonyx.providers.cpu.qlinear import QLINEAR

_PAIR = (
    "s: float[] = {a} p: {kind}[] = {a0} t: float[] = {b} q: {kind}[] = {b0} u: float[] = {y} r: {kind}[] = {y0} "
    "y = com.microsoft.{name}(a, s, p, b, t, q, u, r)"
)
_ZEROS = {"uint8": (3, 128, 255), "int8": (-128, 5, 127)}


def _every_pair(kind: str) -> tuple[Array, Array]:
    every = np.arange(256, dtype=np.uint8).view(kind)
    return np.repeat(every, 256).reshape(256, 256), np.tile(every, 256).reshape(256, 256)


def _pair(name: str, kind: str, scales: tuple[float, float, float]) -> str:
    zeros = _ZEROS[kind]
    numbers = dict(zip(("a", "b", "y", "a0", "b0", "y0"), (*scales, *zeros), strict=True))
    body = _PAIR.format(name=name, kind=kind, **numbers)
    return f"graph(a: {kind}[256, 256], b: {kind}[256, 256]) -> (y: {kind}[256, 256]) {{ {body} }}"


def _expected(body: str, feeds: dict[str, Any]) -> Array:
    """Return what the reference provider's own kernels give."""
    options = SessionOptions()
    options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
    session = InferenceSession(to_bytes(model(body, opset=21)), options, providers=["ReferenceExecutionProvider"])
    (found,) = session.run(None, feeds)
    return np.asarray(found)


def _assert_same(body: str, feeds: dict[str, Any], isa: str | None = None) -> None:
    expected = _expected(body, feeds)
    (found,) = cpu_session(body, isa=isa).run(None, feeds)
    assert_same_bits(found, expected)


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("scales", [(0.037, 0.0211, 0.043), (0.25, 0.5, 0.5), (1e-3, 3.0, 0.02)])
@pytest.mark.parametrize("name", ["QLinearAdd", "QLinearMul"])
def test_every_pair_of_integers_is_the_references(name: str, kind: str, scales: tuple[float, float, float]) -> None:
    """Sums and products, ties and saturation included."""
    a, b = _every_pair(kind)
    _assert_same(_pair(name, kind, scales), {"a": a, "b": b})


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_rounds_alike_away_from_ties(level: str) -> None:
    """Without fused multiply-adds the last bit of a sum differs, which decides only where it is next to half-way."""
    a, b = _every_pair("uint8")
    body = _pair("QLinearAdd", "uint8", (0.037, 0.0211, 0.043))
    feeds = {"a": a, "b": b}
    expected, (found,) = _expected(body, feeds), cpu_session(body, isa=level).run(None, feeds)
    different = np.flatnonzero(found != expected)
    assert np.abs(found.astype(int) - expected).max() <= 1
    exact = a.astype(float) * 0.037 / 0.043 + b * 0.0211 / 0.043 + (255 - 0.037 / 0.043 * 3 - 0.0211 / 0.043 * 128)
    assert np.all(np.abs(np.abs(exact.reshape(-1)[different] % 1) - 0.5) < 1e-4)


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("name", ["QLinearLeakyRelu", "QLinearSigmoid"])
def test_every_integer_is_the_references(name: str, kind: str) -> None:
    """Of activations, which the reference provider computes by table."""
    body = (
        f"graph(x: {kind}[256]) -> (y: {kind}[256]) {{ s: float[] = 0.07 p: {kind}[] = 17 t: float[] = 0.00390625 q: {kind}[] = 3 "
        f"y = com.microsoft.{name}(x, s, p, t, q) }}"
    )
    _assert_same(body, {"x": np.arange(256, dtype=np.uint8).view(kind)})


def test_a_choice_is_brought_to_the_scale_of_the_result() -> None:
    """Either side by its own scale."""
    body = (
        "graph(c: bool[2, 256], x: uint8[256], z: uint8[2, 1]) -> (y: uint8[2, 256]) {"
        "s: float[] = 0.07 p: uint8[] = 17 t: float[] = 0.3 q: uint8[] = 3 u: float[] = 0.11 r: uint8[] = 30 "
        "y = com.microsoft.QLinearWhere(c, x, s, p, z, t, q, u, r) }"
    )
    rng = np.random.default_rng(3)
    feeds = {"c": rng.random((2, 256)) < 0.5, "x": np.arange(256, dtype=np.uint8), "z": np.uint8([[9], [200]])}
    _assert_same(body, feeds)


def test_operands_are_broadcast() -> None:
    """A row, and zero points that are left out."""
    body = (
        "graph(a: uint8[5, 33], b: uint8[33]) -> (y: uint8[5, 33]) { s: float[] = 0.07 t: float[] = 0.3 u: float[] = 0.4 "
        "y = com.microsoft.QLinearAdd(a, s, _, b, t, _, u) }"
    )
    rng = np.random.default_rng(4)
    _assert_same(body, {"a": rng.integers(0, 256, (5, 33), np.uint8), "b": rng.integers(0, 256, 33, np.uint8)})


def test_scales_may_be_computed() -> None:
    """Where the model feeds them, the kernel reads them once for each row."""
    body = (
        "graph(a: uint8[7], s: float[1], p: uint8[1], b: uint8[7], t: float[], u: float[]) -> (y: uint8[7]) {"
        "y = com.microsoft.QLinearAdd(a, s, p, b, t, p, u, p) }"
    )
    feeds = {"a": np.arange(7, dtype=np.uint8), "b": np.arange(7, dtype=np.uint8) * 9, "p": np.uint8([7])}
    _assert_same(body, {**feeds, "s": np.float32([0.3]), "t": np.float32(0.1), "u": np.float32(0.2)})


def test_layers_share_a_kernel() -> None:
    """Which gets their scales with each call."""
    first, second = (_pair("QLinearAdd", "uint8", scales) for scales in ((0.037, 0.0211, 0.043), (0.1, 0.2, 0.3)))
    assert symbols_of(first) == symbols_of(second)


def test_a_chain_is_one_step() -> None:
    """A sum, its activation and its float form, without memory in between."""
    body = (
        "graph(a: uint8[64], b: uint8[64]) -> (y: float[64]) { s: float[] = 0.07 t: float[] = 0.3 p: uint8[] = 9 "
        "c = com.microsoft.QLinearAdd(a, s, p, b, t, p, t, p) d = com.microsoft.QLinearLeakyRelu(c, t, p, s, p) "
        "y = DequantizeLinear(d, s, p) }"
    )
    assert len(steps_of(body)) == 1


@pytest.mark.parametrize("name", ["QuantizeLinear", "DequantizeLinear"])
def test_microsofts_quantization_is_that_of_the_standard(name: str) -> None:
    """With one scale; older models of 16 bits write it so."""
    source, made = ("float", "uint16") if name == "QuantizeLinear" else ("uint16", "float")
    body = f"graph(x: {source}[9]) -> (y: {made}[9]) {{ s: float[] = 0.5 z: uint16[] = 300 y = com.microsoft.{name}(x, s, z) }}"
    x = np.float32([-1e9, -1, 0, 0.25, 0.75, 1, 3e4, 1e9, np.nan]) if source == "float" else np.arange(296, 305, dtype=np.uint16)
    _assert_same(body, {"x": x})


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("(a: uint8[4], s: float[4]) -> (y: uint8[4]) { y = com.microsoft.QLinearAdd(a, s, _, a, s, _, s) }", "are not one scale"),
        ("(a: int8[4], s: float[n]) -> (y: int8[4]) { y = com.microsoft.QLinearSigmoid(a, s, _, s) }", "are not one scale"),
    ],
)
def test_what_is_declined(body: str, reason: str) -> None:
    """Each with its reason."""
    (found,) = declined(f"graph{body}")
    assert reason in found


def test_the_operators() -> None:
    """Those whose elements do not depend on one another."""
    assert sorted(QLINEAR) == ["QLinearAdd", "QLinearLeakyRelu", "QLinearMul", "QLinearSigmoid", "QLinearWhere"]
