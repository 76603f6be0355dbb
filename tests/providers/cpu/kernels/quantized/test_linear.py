"""QuantizeLinear and DequantizeLinear by axis, by block and of a few bits: the reference provider's numbers, bit for bit."""

from typing import Any

import numpy as np
import pytest
from support.cpu_run import LEVELS, assert_same_bits, cpu_session, declined, reference, steps_of

from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument

_KINDS = ("int2", "uint2", "int4", "uint4", "int8", "uint8", "int16", "uint16")
_FLOATS = ("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float4e2m1")
_SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e30, 0.5, 1.5, -2.5)


def _floats(*shape: int, seed: int = 0) -> Array:
    numbers = np.random.default_rng(seed).normal(0, 3, shape).astype(np.float32)
    numbers.reshape(-1)[: len(_SPECIAL)] = _SPECIAL[: numbers.size]
    return numbers


def _scales(*shape: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).uniform(0.01, 2, shape).astype(np.float32)


def _integers(kind: str, *shape: int, seed: int = 2) -> Array:
    dtype = DataType[kind.upper()].numpy
    bits = int(kind.removeprefix("u").removeprefix("int"))
    low = 0 if kind.startswith("u") else -(1 << (bits - 1))
    return np.random.default_rng(seed).integers(low, low + (1 << bits), shape).astype(dtype)


def _assert_same(body: str, feeds: dict[str, Any], opset: int = 25, **settings: Any) -> None:
    found = cpu_session(body, opset=opset, **settings).run(None, feeds)
    for one, other in zip(found, reference(body, feeds, opset=opset), strict=True):
        assert_same_bits(one, other)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("isa", LEVELS)
def test_scales_go_along_any_axis(axis: int, isa: str) -> None:
    """Of a size that is no vector's, and known only when the model runs."""
    shape = (3, 5, 17)
    n = shape[axis]
    body = f"""graph(x: float[a,b,c], s: float[{n}], z: int8[{n}]) -> (q: int8[a,b,c], y: float[a,b,c]) {{
        q = QuantizeLinear(x, s, z) {{axis = {axis}}} y = DequantizeLinear(q, s, z) {{axis = {axis}}} }}"""
    fixed = body.replace("a,b,c", "3,5,17")
    feeds = {"x": _floats(*shape), "s": _scales(n), "z": _integers("int8", n)}
    _assert_same(fixed, feeds, isa=isa)
    _assert_same(fixed, feeds, isa=isa, threads=2)
    open_body = body.replace(f"[{n}]", f"[{'abc'[axis]}]")
    _assert_same(open_body, feeds, isa=isa)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(("length", "block"), [(6, 2), (7, 3), (7, 7), (5, 8), (1, 4), (0, 2)])
def test_scales_go_by_block(axis: int, length: int, block: int) -> None:
    """A last block may be shorter; sizes may be known only when the model runs."""
    shape = [3, 4, 5]
    shape[axis] = length
    blocks = [-(-size // block) if place == axis else size for place, size in enumerate(shape)]
    body = f"""graph(x: float[X], s: float[S], z: uint8[S]) -> (q: uint8[X], y: float[X]) {{
        q = QuantizeLinear(x, s, z) {{axis = {axis}, block_size = {block}}}
        y = DequantizeLinear(q, s, z) {{axis = {axis}, block_size = {block}}} }}"""
    feeds = {"x": _floats(*shape), "s": _scales(*blocks), "z": _integers("uint8", *blocks)}
    if length:
        texts = [",".join(map(str, sizes)) for sizes in (shape, blocks)]
        _assert_same(body.replace("[X]", f"[{texts[0]}]").replace("[S]", f"[{texts[1]}]"), feeds)
    _assert_same(body.replace("[X]", "[a,b,c]").replace("[S]", "[d,e,f]"), feeds)


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("isa", LEVELS)
def test_every_type_of_integers(kind: str, isa: str) -> None:
    """By one scale, by axis and by block, with ties, infinities and NaN."""
    for shape, more in ((), ""), ((4,), "{axis = 1}"), ((3, 2), "{axis = 1, block_size = 2}"):
        text = ",".join(map(str, shape))
        body = f"""graph(x: float[3,4], i: {kind}[3,4], s: float[{text}], z: {kind}[{text}]) -> (q: {kind}[3,4], y: float[3,4]) {{
            q = QuantizeLinear(x, s, z) {more} y = DequantizeLinear(i, s, z) {more} }}"""
        feeds = {"x": _floats(3, 4), "i": _integers(kind, 3, 4), "s": _scales(*shape), "z": _integers(kind, *shape, seed=3)}
        _assert_same(body, feeds, isa=isa)


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("kind", _FLOATS)
@pytest.mark.parametrize("isa", LEVELS)
def test_every_type_of_small_floats(kind: str, isa: str, saturate: int) -> None:
    """By one scale, by axis and by block, with zero points, infinities and NaN, saturating or not."""
    dtype, codes = DataType[kind.upper()].numpy, np.arange(16 if "4e" in kind else 256, dtype=np.uint8)
    for shape, more in ((), ""), ((4,), "{axis = 1}"), ((32, 2), "{axis = 1, block_size = 2}"):
        text, saturating = ",".join(map(str, shape)), f"saturate = {saturate}"
        also = f"{{{saturating}}}" if not more else more.replace("{", f"{{{saturating}, ")
        body = f"""graph(x: float[32,4], i: {kind}[32,4], s: float[{text}], z: {kind}[{text}]) -> (q: {kind}[32,4], y: float[32,4]) {{
            q = QuantizeLinear(x, s, z) {also} y = DequantizeLinear(i, s, z) {more} }}"""
        points = np.random.default_rng(4).choice(codes[: 8 if "4e" in kind else 64], shape).view(dtype)
        feeds = {
            "x": _floats(32, 4) * np.float32(20),
            "i": np.resize(codes, (32, 4)).view(dtype),
            "s": _scales(*shape),
            "z": points,
        }
        with np.errstate(all="ignore"):
            found = cpu_session(body, opset=25, isa=isa).run(None, feeds)
            expected = reference(body, feeds, opset=25)
        np.testing.assert_array_equal(found[0].view(np.uint8), expected[0].view(np.uint8))
        assert_same_bits(found[1], expected[1])


@pytest.mark.parametrize("kind", ["int4", "uint4", "int2", "uint2"])
def test_upper_bits_of_a_byte_do_not_count(kind: str) -> None:
    """Whatever a feed's memory holds there."""
    dtype = DataType[kind.upper()].numpy
    dirty = np.arange(256, dtype=np.uint8).view(dtype)
    body = f"graph(x: {kind}[256], s: float[], z: {kind}[]) -> (y: float[256]) {{ y = DequantizeLinear(x, s, z) }}"
    feeds = {"x": dirty, "s": np.float32(0.5), "z": np.zeros((), dtype)}
    found = cpu_session(body, opset=25).run(None, feeds)[0]
    assert_same_bits(found, dirty.astype(np.float32) * np.float32(0.5))


def test_sums_of_int32_are_dequantized() -> None:
    """By one scale and by axis, without zero points or with zeros."""
    numbers = np.array([[1 << 30, -(1 << 31), 7], [(1 << 24) + 1, -3, 0]], np.int32)
    for shape in ((), (3,)):
        text = ",".join(map(str, shape))
        body = f"""graph(x: int32[2,3], s: float[{text}], z: int32[{text}]) -> (y: float[2,3], w: float[2,3]) {{
            y = DequantizeLinear(x, s) w = DequantizeLinear(x, s, z) }}"""
        _assert_same(body, {"x": numbers, "s": _scales(*shape), "z": np.zeros(shape, np.int32)})


def test_what_follows_is_computed_in_the_store() -> None:
    """A DequantizeLinear by axis or by block, and the element-wise nodes behind it, are one step."""
    body = """graph(x: int8[4,6], s: float[6], w: float[4,6]) -> (y: float[4,6]) {
        a = DequantizeLinear(x, s) {axis = 1} b = Mul(a, s) c = Add(b, w) y = Relu(c) }"""
    feeds = {"x": _integers("int8", 4, 6), "s": _scales(6), "w": _scales(4, 6)}
    assert steps_of(body) == ["DequantizeLinear+Mul+Add+Relu"]
    _assert_same(body, feeds)
    blocks = (
        body.replace("s: float[6]", "s: float[4,3]")
        .replace("axis = 1}", "axis = 1, block_size = 2}")
        .replace("Mul(a, s)", "Neg(a)")
    )
    assert steps_of(blocks) == ["DequantizeLinear+Neg+Add+Relu"]
    _assert_same(blocks, {**feeds, "s": _scales(4, 3)})


def test_constant_scales_and_zero_points() -> None:
    """As models have them, a zero point for all beside scales by axis too."""
    body = """graph(x: float[2,3]) -> (y: uint8[2,3]) { s: float[3] = [0.1, 0.2, 0.3] z: uint8[3] = [1, 2, 3]
        y = QuantizeLinear(x, s, z) {axis = 1} }"""
    _assert_same(body, {"x": _floats(2, 3)})
    one = "graph(x: int8[2,3], s: float[3], z: int8[1]) -> (y: float[2,3]) { y = DequantizeLinear(x, s, z) {axis = 1} }"
    _assert_same(one, {"x": _integers("int8", 2, 3), "s": _scales(3), "z": np.array([5], np.int8)})


@pytest.mark.parametrize("scale", [0.0, np.inf, np.nan, 1e-42, -0.5])
def test_scales_that_are_no_steps(scale: float) -> None:
    """Zero, infinite, NaN, denormal and negative scales give what the definition gives."""
    body = """graph(x: float[2,4], s: float[4], z: int8[4]) -> (q: int8[2,4], y: float[2,4]) {
        q = QuantizeLinear(x, s, z) {axis = 1} y = DequantizeLinear(q, s, z) {axis = 1} }"""
    scales = np.array([scale, 1, scale, 0.5], np.float32)
    with np.errstate(all="ignore"):
        _assert_same(body, {"x": _floats(2, 4), "s": scales, "z": _integers("int8", 4)})


@pytest.mark.parametrize("shape", [(3, 4, 4), (3, 3, 5), (2, 3, 4)])
def test_a_scale_of_another_shape_is_an_error(shape: tuple[int, ...]) -> None:
    """Of sizes that only the run shows: what was found and what was expected."""
    body = """graph(x: float[a,b,c], s: float[d,e,f]) -> (y: uint8[a,b,c]) {
        y = QuantizeLinear(x, s) {axis = 1, block_size = 2} }"""
    with pytest.raises(InvalidArgument, match=r"expected \(3, 3, 4\) for blocks of 2"):
        cpu_session(body).run(None, {"x": _floats(3, 6, 4), "s": _scales(*shape)})


def test_a_vector_of_another_length_is_an_error() -> None:
    """Of sizes that only the run shows."""
    body = "graph(x: float[a,b], s: float[c]) -> (y: uint8[a,b]) { y = QuantizeLinear(x, s) {axis = 0} }"
    with pytest.raises(InvalidArgument, match="cannot be broadcast"):
        cpu_session(body).run(None, {"x": _floats(3, 6), "s": _scales(4)})


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("graph(x: float[2,3], s: float[4]) -> (y) { y = QuantizeLinear(x, s) {axis = 1} }", "expected 3 along axis 1"),
        ("graph(x: float[2,3], s: float[2,3]) -> (y) { y = QuantizeLinear(x, s) {axis = 1} }", "one number or a vector"),
        ("graph(x: float[2,4], s: float[2,3]) -> (y) { y = QuantizeLinear(x, s) {axis = 1, block_size = 2} }", "for blocks of 2"),
        ("graph(x: float16[2,3], s: float[3]) -> (y) { y = QuantizeLinear(x, s) {axis = 1} }", "quantization of float16"),
        ("graph(x: int8[3], s: float16[3]) -> (y) { y = DequantizeLinear(x, s) {axis = 0} }", "a scale of type float16"),
    ],
)
def test_declines(body: str, reason: str) -> None:
    """Shapes that do not fit, and types that kernels do not compute with."""
    assert [reason in found for found in declined(body, opset=23)] == [True]
