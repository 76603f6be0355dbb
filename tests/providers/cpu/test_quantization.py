"""QuantizeLinear and DequantizeLinear as expressions: the same numbers as the reference provider's, and what is declined."""

from typing import Any

import numpy as np
import pytest
from support.cpu_run import assert_same_bits, cpu_session, declined, reference, run_cpu, symbols_of

from sardonyx.providers.cpu.quantization import QUANTIZATION

_NUMBERS = np.array([-1e30, -3.0, -0.75, -0.25, 0.0, 0.25, 0.7, 0.75, 1.25, 40.0, 63.6, 1e30, np.inf, -np.inf, np.nan], np.float32)
_TYPES = ("uint8", "int8", "uint16", "int16")


def _quantize(kind: str, zero: int = 3) -> str:
    return f"graph(x: float[15]) -> (y: {kind}[15]) {{ s: float[] = 0.5 z: {kind}[] = {zero} y = QuantizeLinear(x, s, z) }}"


def _assert_same(found: list[Any], expected: list[Any]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert_same_bits(one, other)


def test_both_operators_have_an_entry() -> None:
    """The table that the element-wise operators include."""
    assert sorted(QUANTIZATION) == ["DequantizeLinear", "QuantizeLinear"]


@pytest.mark.parametrize("kind", _TYPES)
def test_quantization_is_the_references(kind: str) -> None:
    """Ties, saturation, infinities and NaN included."""
    _assert_same(run_cpu(_quantize(kind), {"x": _NUMBERS}), reference(_quantize(kind), {"x": _NUMBERS}))


def test_without_zero_point_the_type_is_uint8() -> None:
    """The default of the standard."""
    body = "graph(x: float[15]) -> (y: uint8[15]) { s: float[] = 0.5 y = QuantizeLinear(x, s) }"
    _assert_same(run_cpu(body, {"x": _NUMBERS}), reference(body, {"x": _NUMBERS}))


@pytest.mark.parametrize("kind", _TYPES)
def test_dequantization_is_the_references(kind: str) -> None:
    """Every element of 8 bits, and the ends of 16."""
    limits = np.iinfo(kind)
    numbers = np.linspace(limits.min, limits.max, 256).astype(kind)
    body = f"graph(x: {kind}[256]) -> (y: float[256]) {{ s: float[] = 0.3 z: {kind}[] = 7 y = DequantizeLinear(x, s, z) }}"
    _assert_same(run_cpu(body, {"x": numbers}), reference(body, {"x": numbers}))


def test_scales_may_be_made_by_the_model() -> None:
    """A scale of one element need not be a constant."""
    body = """graph(x: float[15], s: float[1]) -> (y: float[15]) { z: uint8[1] = [9]
        a = QuantizeLinear(x, s, z) y = DequantizeLinear(a, s, z) }"""
    feeds = {"x": _NUMBERS, "s": np.array([0.2], np.float32)}
    _assert_same(run_cpu(body, feeds), reference(body, feeds))


def test_a_pair_is_computed_in_the_store_of_what_is_before() -> None:
    """Relu, QuantizeLinear and DequantizeLinear are one step."""
    body = """graph(x: float[15]) -> (y: float[15]) { s: float[] = 0.5 z: int8[] = -3
        r = Relu(x) a = QuantizeLinear(r, s, z) y = DequantizeLinear(a, s, z) }"""
    assert len(cpu_session(body).explain()) == 3
    numbers = np.nan_to_num(_NUMBERS)
    _assert_same(run_cpu(body, {"x": numbers}), reference(body, {"x": numbers}))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("graph(x: float16[3]) -> (y) { s: float16[] = 0.5 y = QuantizeLinear(x, s) }", "not of type float"),
        ("graph(x: float16[3]) -> (y) { s: float[] = 0.5 y = QuantizeLinear(x, s) }", "quantization of float16"),
    ],
)
def test_declines(body: str, reason: str) -> None:
    """Numbers of 16 bits, which are converted first."""
    assert [reason in found for found in declined(body, opset=23)] == [True]


@pytest.mark.parametrize("operator", ["QuantizeLinear", "DequantizeLinear"])
def test_scales_and_zero_points_are_data(operator: str) -> None:
    """Two layers that differ by them alone share a kernel, which computes each by its own."""
    source, made = ("float", "uint8") if operator == "QuantizeLinear" else ("uint8", "float")
    body = (
        f"graph(x: {source}[15]) -> (y: {made}[15], z: {made}[15]) {{ s: float[] = 0.5 p: uint8[] = 3 t: float[] = 0.37 q: uint8[] = 91 "
        f"y = {operator}(x, s, p) z = {operator}(x, t, q) }}"
    )
    feeds = {"x": _NUMBERS if source == "float" else np.arange(240, 255, dtype=np.uint8)}
    assert len(set(symbols_of(body))) == 1
    _assert_same(run_cpu(body, feeds), reference(body, feeds))


def test_numbers_that_are_learned_are_data_and_plain_ones_are_code() -> None:
    """A factor of 0.5 may be free; one of 0.37 is another in each layer."""
    body = "graph(x: float[15]) -> (y: float[15], z: float[15]) {{ s: float[] = {} t: float[] = {} y = Mul(x, s) z = Mul(x, t) }}"
    assert len(set(symbols_of(body.format(0.37, 0.73)))) == 1
    assert len(set(symbols_of(body.format(0.5, 0.25)))) == 2
