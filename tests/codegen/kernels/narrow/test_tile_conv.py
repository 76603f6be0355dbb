"""Convolutions of bfloat16 in matrix tiles, emulated where there are none."""

from __future__ import annotations

import numpy as np
import pytest
from support.cpu_run import TILES
from support.models import model

import sardonyx as ort
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.narrow.pairs import pack_filter_pairs, pack_filter_tiles
from sardonyx.codegen.kernels.narrow.tile_conv import write_tile_conv
from sardonyx.codegen.llvm import binding, make_machine
from sardonyx.codegen.target import machine_target
from sardonyx.dtypes import Array, DataType
from sardonyx.formats.onnx import to_bytes
from sardonyx.providers.cpu.precision import Precision
from sardonyx.providers.cpu.provider import CpuProvider

_AMX = ["avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "amx-tile", "amx-int8", "amx-bf16"]
_BFLOAT = DataType.BFLOAT16.numpy
_CONVOLUTIONS = {
    "padded": "graph(x: float[n, 8, 9, 9]) -> (y) { w: float[20, 8, 3, 3] = ... 1 y = Conv(x, w) {pads = [1, 1, 1, 1]} }",
    "strided": "graph(x: float[n, 8, 9, 9]) -> (y) { w: float[20, 8, 3, 3] = ... 1 y = Conv(x, w) {strides = [2, 2]} }",
    "merged": "graph(x: float[n, 6, 5, 11]) -> (y) { w: float[130, 6, 2, 7] = ... 1 y = Conv(x, w) }",
    "long runs": "graph(x: float[n, 70, 6, 5]) -> (y) { w: float[33, 70, 3, 3] = ... 1 y = Conv(x, w) {pads = [0, 1, 2, 1]} }",
    "groups": "graph(x: float[n, 8, 9, 9]) -> (y) { w: float[48, 4, 3, 3] = ... 1 y = Conv(x, w) {group = 2, pads = [1, 1, 1, 1]} }",
    "dilated": "graph(x: float[n, 16, 12]) -> (y) { w: float[12, 16, 3] = ... 1 y = Conv(x, w) {dilations = [2]} }",
    "volume": "graph(x: float[n, 4, 3, 4, 5]) -> (y) { w: float[24, 4, 2, 2, 2] = ... 1 y = Conv(x, w) {pads = [1, 0, 1, 0, 1, 0]} }",
    "transposed": "graph(x: float[n, 8, 5, 5]) -> (y) { w: float[8, 12, 3, 3] = ... 1 y = ConvTranspose(x, w) {strides = [2, 2]} }",
}


def _session(text: str, threads: int = 1) -> ort.InferenceSession:
    return ort.InferenceSession(to_bytes(model(text)), providers=[CpuProvider(TILES, threads, precision=Precision.MEDIUM)])


def _input(text: str, batch: int) -> Array:
    shape = [batch, *(int(size) for size in text.partition("n, ")[2].partition("]")[0].split(","))]
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("text", _CONVOLUTIONS.values(), ids=_CONVOLUTIONS)
def test_operands_are_rounded_and_nothing_else(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference provider, given the rounded ones, computes the same to float32's rounding; between unmapped pages."""
    monkeypatch.setenv("SARDONYX_GUARD", "1")
    x = _input(text, 3)
    session = _session(text)
    kernels = [place.precision for place in session.explain() if place.precision]
    found = session.run(None, {"x": x})[0]
    rounded = text.replace("= ... 1 y", "= ... 1 h = Cast(w) {to = 16} v = Cast(h) {to = 1} y").replace("(x, w)", "(x, v)")
    reference = ort.InferenceSession(to_bytes(model(rounded)), providers=["ReferenceExecutionProvider"])
    wanted = reference.run(None, {"x": x.astype(_BFLOAT).astype(np.float32)})[0]
    assert kernels == ["bfloat16, sums in float32"]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-6 * np.abs(wanted).max())


@pytest.mark.parametrize("text", [_CONVOLUTIONS["padded"], _CONVOLUTIONS["merged"]], ids=["padded", "merged"])
def test_an_image_has_the_same_bits_in_a_batch_as_alone_and_on_two_threads(text: str) -> None:
    """Whichever places share a tile."""
    x = _input(text, 3)
    found = _session(text).run(None, {"x": x})[0]
    np.testing.assert_array_equal(_session(text).run(None, {"x": x[1:2]})[0], found[1:2])
    np.testing.assert_array_equal(_session(text, 2).run(None, {"x": x})[0], found)


def test_what_follows_is_computed_in_the_store() -> None:
    """A bias by channel, a residual and an activation."""
    text = """graph(x: float[n, 8, 6, 7], r: float[n, 20, 6, 7]) -> (y) { w: float[20, 8, 3, 3] = ... 1 b: float[20] = ... 2
        c = Conv(x, w, b) {pads = [1, 1, 1, 1]} s = Add(c, r) y = Relu(s) }"""
    draw = np.random.default_rng(1)
    feed = {name: draw.standard_normal((2, size, 6, 7)).astype(np.float32) for name, size in (("x", 8), ("r", 20))}
    wanted = ort.InferenceSession(to_bytes(model(text)), providers=["ReferenceExecutionProvider"]).run(None, feed)[0]
    found = _session(text).run(None, feed)[0]
    assert 1e-5 < np.abs(found - wanted).max() / np.abs(wanted).max() < 1e-2


def test_runs_of_filters_are_filled_up_with_zeros() -> None:
    """To whole tiles of words."""
    filters = np.random.default_rng(0).standard_normal((5, 6, 2, 2)).astype(np.float32)
    plain, whole = pack_filter_pairs(filters, 1, 16), pack_filter_tiles(filters, 1, 16, 3, 16)
    assert whole.shape == (1, 1, 4, 16, 16)
    np.testing.assert_array_equal(whole[:, :, :, :3].reshape(plain.shape), plain)
    assert not whole[:, :, :, 3:].any()


def test_llvm_multiplies_four_tiles_of_filters_by_one_of_rows() -> None:
    """Of whole panels; tiles are configured once, and released."""
    target = machine_target("x86_64", _AMX)
    llvm, module = binding(), Module(target)
    write_tile_conv(module, "conv", 2, padded=True, widths=(4,))
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = make_machine(target.triple, target.features)
    parsed = llvm.parse_assembly(f'target datalayout = "{machine.target_data}"\n{module}', llvm.create_context())
    words = [line.split()[0] for line in machine.emit_assembly(parsed).splitlines() if line.startswith("\t")]
    counts = {word: words.count(word) for word in ("ldtilecfg", "tilerelease", "tdpbf16ps", "tileloadd", "tilestored", "tilezero")}
    assert counts == {"ldtilecfg": 1, "tilerelease": 1, "tdpbf16ps": 4, "tileloadd": 5, "tilestored": 4, "tilezero": 4}
