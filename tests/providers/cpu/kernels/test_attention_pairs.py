"""Attention of models where less precision is asked for."""

import numpy as np
import pytest
from support.models import model

import sardonyx as ort
from sardonyx.codegen.target import emulated_target
from sardonyx.dtypes import Array
from sardonyx.formats.onnx import to_bytes
from sardonyx.providers.cpu.kernels.attention_pairs import AttentionPairsKernel
from sardonyx.providers.cpu.precision import Precision
from sardonyx.providers.cpu.provider import CpuProvider

FAST = emulated_target("avx512", ["avx512bf16"])


def _session(text: str, precision: Precision = Precision.MEDIUM, threads: int = 1) -> ort.InferenceSession:
    return ort.InferenceSession(to_bytes(model(text, opset=23)), providers=[CpuProvider(FAST, threads, precision=precision)])


def _draw(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def _errors(text: str, feed: dict[str, Array]) -> list[float]:
    """The error of a run in pairs, and of one in float32."""
    wanted = ort.InferenceSession(to_bytes(model(text, opset=23)), providers=["ReferenceExecutionProvider"]).run(None, feed)[0]
    found = [_session(text, precision).run(None, feed)[0] for precision in (Precision.MEDIUM, Precision.HIGHEST)]
    return [float(np.sqrt(np.mean((each - wanted) ** 2) / np.mean(wanted**2))) for each in found]


@pytest.mark.parametrize(("S", "T", "D"), [(40, 33, 16), (70, 131, 17), (33, 1, 8)])
def test_products_are_rounded_where_queries_are_many(S: int, T: int, D: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between unmapped pages; heads of an odd size, and an odd number of keys."""
    monkeypatch.setenv("SARDONYX_GUARD", "1")
    text = "graph(q: float[b, 4, s, d], k: float[b, 2, t, d], v: float[b, 2, t, d]) -> (y: float[b, 4, s, d]) { y = Attention(q, k, v) }"
    text = text.replace(" d]", f" {D}]")
    rounded, plain = _errors(text, {"q": _draw(2, 4, S, D), "k": _draw(2, 2, T, D), "v": _draw(2, 2, T, D)})
    assert 1e-4 < rounded < 1e-2
    assert plain < 1e-6


def test_few_queries_stay_in_float32() -> None:
    """The same session does both; nothing is copied for them."""
    text = "graph(q: float[1, 2, s, 16], k: float[1, 2, t, 16], v: float[1, 2, t, 16]) -> (y: float[1, 2, s, 16]) { y = Attention(q, k, v) }"
    session, reference = _session(text), _session(text, Precision.HIGHEST)
    for S, is_equal in ((1, True), (64, False), (2, True)):
        feed = {"q": _draw(1, 2, S, 16), "k": _draw(1, 2, 50, 16), "v": _draw(1, 2, 50, 16)}
        assert np.array_equal(session.run(None, feed)[0], reference.run(None, feed)[0]) is is_equal


def test_keys_of_former_runs_and_masks() -> None:
    """They are rounded with the new ones."""
    text = """graph(q: float[1, 2, 20, 16], k: float[1, 2, 20, 16], v: float[1, 2, 20, 16], m: float[20, 33], p: float[1, 2, 13, 16], r: float[1, 2, 13, 16])
        -> (y: float[1, 2, 20, 16]) { y = Attention(q, k, v, m, p, r) }"""
    feed = {name: _draw(1, 2, 20, 16) for name in "qkv"} | {"m": _draw(20, 33)} | {name: _draw(1, 2, 13, 16) for name in "pr"}
    rounded, plain = _errors(text, feed)
    assert 1e-4 < rounded < 1e-2
    assert plain < 1e-6


def test_threads_do_not_change_bits() -> None:
    """Keys and values are rounded before they are shared."""
    text = "graph(q: float[2, 2, 70, 8], k: float[2, 2, 90, 8], v: float[2, 2, 90, 8]) -> (y) { y = Attention(q, k, v) }"
    feed = {"q": _draw(2, 2, 70, 8), "k": _draw(2, 2, 90, 8), "v": _draw(2, 2, 90, 8)}
    one, two = (_session(text, threads=threads).run(None, feed)[0] for threads in (1, 2))
    assert one.tobytes() == two.tobytes()


def test_explain_says_so() -> None:
    """By the step that multiplies."""
    text = "graph(q: float[1, 2, 40, 8], k: float[1, 2, 9, 8], v: float[1, 2, 9, 8]) -> (y) { y = Attention(q, k, v) }"
    assert [place.precision for place in _session(text).explain() if place.precision] == ["bfloat16, sums in float32"]


def test_kernels_have_names_of_their_own() -> None:
    """One for keys, one for values."""
    assert AttentionPairsKernel(False).symbol(FAST) != AttentionPairsKernel(True).symbol(FAST)
