"""Chains from 8 bits to 8 bits as tables: the same integers as the chain computed for each element."""

import itertools

import numpy as np
import pytest
from support.cpu_run import LEVELS, assert_same_bits, cpu_session, steps_of, symbols_of

from sardonyx.dtypes import Array
from sardonyx.providers.cpu.kernels.quantized.table import LEAST_ELEMENTS

_SIZE = LEAST_ELEMENTS + 3
_KINDS = ("int8", "uint8")


def _chain(size: int | str, kind: str, made: str, function: str = "Gelu(a)", fed: str = "") -> str:
    scales = fed or f"s: float[] = 0.05 z: {kind}[] = 100 t: float[] = 0.02 o: {made}[] = 12"
    more = f", s: float[], z: {kind}[], t: float[1], o: {made}[1]" if fed else ""
    return f"""graph(x: {kind}[{size}]{more}) -> (y: {made}[{size}]) {{ {"" if fed else scales}
        a = DequantizeLinear(x, s, z) b = {function} y = QuantizeLinear(b, t, o) }}"""


def _every(kind: str, size: int) -> Array:
    return np.resize(np.arange(256).astype(np.uint8), size).view(kind)


@pytest.mark.parametrize(("kind", "made"), list(itertools.product(_KINDS, _KINDS)))
@pytest.mark.parametrize("isa", LEVELS)
def test_a_table_gives_what_the_chain_gives(kind: str, made: str, isa: str) -> None:
    """Of every byte: few elements, which are computed, have the same results."""
    for function in ("Gelu(a)", "Tanh(a)", "Relu(a)"):
        small = cpu_session(_chain(256, kind, made, function), isa=isa).run(None, {"x": _every(kind, 256)})[0]
        found = cpu_session(_chain(_SIZE, kind, made, function), isa=isa).run(None, {"x": _every(kind, _SIZE)})[0]
        assert_same_bits(found, np.resize(small, _SIZE))


def test_many_elements_are_looked_up() -> None:
    """Two steps: the table, and the look-up; of few elements one."""
    assert [symbol.partition("_")[0] for symbol in symbols_of(_chain(_SIZE, "int8", "uint8"))] == ["map", "byte"]
    assert [symbol.partition("_")[0] for symbol in symbols_of(_chain(LEAST_ELEMENTS - 1, "int8", "uint8"))] == ["map"]


@pytest.mark.parametrize("size", [0, 1, LEAST_ELEMENTS - 1, LEAST_ELEMENTS, 70000])
@pytest.mark.parametrize("threads", [1, 2])
def test_sizes_that_only_the_run_shows(size: int, threads: int) -> None:
    """With scales and zero points that are fed, computed or looked up as the size asks."""
    body = _chain("n", "int8", "uint8", fed="yes")
    feeds = {"s": np.float32(0.1), "z": np.int8(-7), "t": np.array([0.03], np.float32), "o": np.array([9], np.uint8)}
    session = cpu_session(body, threads=threads)
    whole = session.run(None, {"x": _every("int8", 256), **feeds})[0]
    found = session.run(None, {"x": _every("int8", size), **feeds})[0]
    assert_same_bits(found, np.resize(whole, size))


@pytest.mark.parametrize("operator", ["QLinearSigmoid", "QLinearLeakyRelu"])
def test_operators_of_8_bits(operator: str) -> None:
    """Those of com.microsoft, and what is made of one tensor that is read twice."""
    body = f"""graph(x: uint8[{_SIZE}]) -> (y: uint8[{_SIZE}], w: uint8[{_SIZE}]) {{ s: float[] = 0.05 z: uint8[] = 100 t: float[] = 0.02
        o: uint8[] = 12 y = com.microsoft.{operator}(x, s, z, t, o) a = com.microsoft.{operator}(x, t, z, s, o)
        w = com.microsoft.QLinearMul(x, s, z, a, t, o, s, z) }}"""
    small = cpu_session(body.replace(str(_SIZE), "256")).run(None, {"x": _every("uint8", 256)})
    for found, wanted in zip(cpu_session(body).run(None, {"x": _every("uint8", _SIZE)}), small, strict=True):
        assert_same_bits(found, np.resize(wanted, _SIZE))


def _product(tail: str) -> str:
    return f"""graph(x: uint8[64,16]) -> (y: uint8[64,64]) {{ w: int8[16,64] = ones s: float[] = 0.05 z: uint8[] = 100 v: int8[] = 0
        t: float[] = 0.1 o: uint8[] = 12 a = QLinearMatMul(x, s, z, w, s, v, t, o) {tail} }}"""


def test_a_costly_chain_behind_a_product_is_a_table() -> None:
    """A cheap one stays in the store of the product, and so does one that reads another tensor."""
    costly = _product("b = DequantizeLinear(a, t, o) c = Tanh(b) y = QuantizeLinear(c, s, o)").replace(
        "= ones", f"= {[[1] * 64] * 16}"
    )
    assert steps_of(costly)[-2:] == ["DequantizeLinear+Tanh+QuantizeLinear"] * 2
    cheap = costly.replace("Tanh(b)", "Relu(b)")
    assert steps_of(cheap)[-1] == "QLinearMatMul+DequantizeLinear+Relu+QuantizeLinear"
    sigmoid = _product("y = com.microsoft.QLinearSigmoid(a, t, o, s, z)").replace("= ones", f"= {[[1] * 64] * 16}")
    assert steps_of(sigmoid)[-2:] == ["QLinearSigmoid"] * 2
    added = costly.replace("Tanh(b)", "Add(e, f)").replace("c =", "e = Tanh(b) f = DequantizeLinear(x2, s, z) c =")
    added = added.replace("x: uint8[64,16]", "x: uint8[64,16], x2: uint8[64,64]")
    assert "QLinearMatMul+DequantizeLinear+Tanh" in steps_of(added)[-1]
