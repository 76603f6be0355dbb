"""What operands of products may be rounded to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from support.cpu_run import TILES
from support.models import model

import sardonyx as ort
from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.formats.onnx import save, to_bytes
from sardonyx.providers.cpu import pairs
from sardonyx.providers.cpu.precision import PRECISIONS, Precision
from sardonyx.providers.cpu.provider import CpuProvider

TEXT = """graph(x: float[n, 768]) -> (y: float[n, 512], z: float[n, 512]) {
    w: float[768, 512] = ... 1
    v: float[512, 768] = ... 2
    a = MatMul(x, w)
    y = Relu(a)
    z = Gemm(x, v) {transB = 1}
}"""
ODD = "graph(x: float[n, 767]) -> (y: float[n, 512]) { w: float[767, 512] = ... 1 y = MatMul(x, w) }"


def _session(precision: str, text: str = TEXT, **provider: str) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.share_programs", "0")
    if precision:
        options.add_session_config_entry("session.float32_precision", precision)
    return ort.InferenceSession(to_bytes(model(text)), options, providers=[("CPUExecutionProvider", provider)])


def _error(session: ort.InferenceSession, columns: int = 768) -> float:
    x = np.random.default_rng(0).standard_normal((5, columns)).astype(np.float32)
    text = TEXT if columns == 768 else ODD
    wanted = ort.InferenceSession(to_bytes(model(text)), providers=["ReferenceExecutionProvider"]).run(None, {"x": x})[0]
    found = session.run(None, {"x": x})[0]
    return float(np.sqrt(np.mean((found - wanted) ** 2) / np.mean(wanted**2)))


@pytest.mark.parametrize("precision", ["", "highest", "high"])
def test_nothing_is_rounded_unless_asked_for(precision: str) -> None:
    """`high` is computed in float32."""
    assert _error(_session(precision)) < 1e-6


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize(("text", "columns"), [(TEXT, 768), (ODD, 767)])
def test_medium_rounds_operands_to_bfloat16(text: str, columns: int, fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the processor's dot products, or widened; rows of odd length have no pairs."""
    monkeypatch.setattr(pairs, "has_fast_dot2", lambda target: fast)
    error = _error(_session("medium", text), columns)
    assert 1e-4 < error < 5e-3


def test_a_provider_option_stands_above_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the session above the environment."""
    assert _error(_session("medium", float32_precision="highest")) < 1e-6
    assert _error(_session("", float32_precision="medium")) > 1e-4
    monkeypatch.setenv("SARDONYX_FLOAT32_PRECISION", "medium")
    assert _error(_session("")) > 1e-4
    assert _error(_session("highest")) < 1e-6


def test_other_words_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """In options; in the environment they are warned of."""
    with pytest.raises(InvalidArgument, match='"highest", "high" or "medium"'):
        _session("low")
    monkeypatch.setenv("SARDONYX_FLOAT32_PRECISION", "low")
    with pytest.warns(UserWarning, match="SARDONYX_FLOAT32_PRECISION"):
        _session("")


def test_rows_have_the_same_bits_in_a_batch_as_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """In pairs too."""
    monkeypatch.setattr(pairs, "has_fast_dot2", lambda target: True)
    session = _session("medium")
    x = np.random.default_rng(0).standard_normal((9, 768)).astype(np.float32)
    whole = session.run(None, {"x": x})[0]
    np.testing.assert_array_equal(whole, np.concatenate([session.run(None, {"x": row[None]})[0] for row in x]))


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        "graph(x: float[2, 8, 9, 9]) -> (y: float[2, 20, 9, 9]) { w: float[20, 8, 3, 3] = ... 1 y = Conv(x, w) {pads = [1, 1, 1, 1]} }",
        "graph(x: float[2, 8, 9, 9]) -> (y: float[2, 20, 4, 4]) { w: float[20, 8, 3, 3] = ... 1 y = Conv(x, w) {strides = [2, 2]} }",
        "graph(x: float[2, 8, 9, 9]) -> (y: float[2, 70, 9, 9]) { w: float[70, 8, 1, 1] = ... 1 y = Conv(x, w) }",
        "graph(x: float[2, 8, 9, 9]) -> (y: float[2, 24, 9, 9]) { w: float[24, 4, 3, 3] = ... 1 y = Conv(x, w) {group = 2, pads = [1, 1, 1, 1]} }",
        "graph(x: float[2, 16, 9]) -> (y: float[2, 12, 5]) { w: float[12, 16, 3] = ... 1 y = Conv(x, w) {dilations = [2]} }",
        "graph(x: float[2, 3, 9, 9]) -> (y: float[2, 12, 7, 7]) { w: float[12, 3, 3, 3] = ... 1 y = Conv(x, w) }",
        "graph(x: float[2, 8, 5, 5]) -> (y: float[2, 12, 11, 11]) { w: float[8, 12, 3, 3] = ... 1 y = ConvTranspose(x, w) {strides = [2, 2]} }",
    ],
)
def test_convolutions_too(text: str, fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an even number of channels; with padding, strides, groups, dilations, and transposed."""
    monkeypatch.setattr(pairs, "has_fast_dot2", lambda target: fast)
    shape = [int(size) for size in text.partition("[")[2].partition("]")[0].split(",")]
    feed = {"x": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
    wanted = ort.InferenceSession(to_bytes(model(text)), providers=["ReferenceExecutionProvider"]).run(None, feed)[0]
    found = _session("medium", text).run(None, feed)[0]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-2 * np.abs(wanted).max())
    assert fast is False or shape[1] % 2 or not np.allclose(found, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("weightless", [False, True])
def test_compiled_models_keep_their_precision(weightless: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the session that loads them says."""
    monkeypatch.setattr(pairs, "has_fast_dot2", lambda target: True)
    save(model(TEXT), tmp_path / "model.onnx")
    options = ort.SessionOptions()
    options.add_session_config_entry("session.float32_precision", "medium")
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_file_path", str(tmp_path / "compiled.onnx"))
    if weightless:
        options.add_session_config_entry("ep.enable_weightless", "1")
    ort.InferenceSession(tmp_path / "model.onnx", options, providers=["CPUExecutionProvider"])
    assert 1e-4 < _error(ort.InferenceSession(tmp_path / "compiled.onnx", providers=["CPUExecutionProvider"])) < 5e-3


def _tiles(text: str, precision: Precision, threads: int = 1) -> ort.InferenceSession:
    return ort.InferenceSession(to_bytes(model(text)), providers=[CpuProvider(TILES, threads, precision=precision)])


@pytest.mark.parametrize(("text", "columns"), [(TEXT, 768), (ODD, 767)])
def test_medium_multiplies_in_matrix_tiles_where_there_are_some(text: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Emulated, between unmapped pages; rows of any length. With `high` three products are, with `highest` none."""
    monkeypatch.setenv("SARDONYX_GUARD", "1")
    assert 1e-4 < _error(_tiles(text, Precision.MEDIUM), columns) < 5e-3
    assert 1e-7 < _error(_tiles(text, Precision.HIGH), columns) < 1e-5
    assert _error(_tiles(text, Precision.HIGHEST), columns) < 1e-6


def test_rows_in_matrix_tiles_have_the_same_bits_in_a_batch_as_alone() -> None:
    """And with more threads."""
    x = np.random.default_rng(0).standard_normal((19, 768)).astype(np.float32)
    one, two = (_tiles(TEXT, Precision.MEDIUM, threads) for threads in (1, 2))
    whole = one.run(None, {"x": x})
    for found, wanted in zip(two.run(None, {"x": x}), whole, strict=True):
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(one.run(None, {"x": x[18:]})[0][0], whole[0][18])


@pytest.mark.parametrize("shape", [(768,), (2, 3, 768), (2, 0, 768)], ids=str)
def test_vectors_and_batches_are_multiplied_in_matrix_tiles(shape: tuple[int, ...]) -> None:
    """Their rows are those of one matrix."""
    text = f"graph(x: float[{','.join(map(str, shape))}]) -> (y) {{ w: float[768, 20] = ... 1\n y = MatMul(x, w) }}"
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    wanted = ort.InferenceSession(to_bytes(model(text)), providers=["ReferenceExecutionProvider"]).run(None, {"x": x})[0]
    found = _tiles(text, Precision.MEDIUM).run(None, {"x": x})[0]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-2 * np.abs(wanted).max(initial=1))
    assert not x.size or not np.array_equal(found, wanted)


@pytest.mark.parametrize("channels", [40, 330])
def test_convolutions_are_multiplied_in_matrix_tiles(channels: int) -> None:
    """Those of single places whatever their channels, with what follows in the store; others of even channels."""
    text = f"""graph(x: float[2, {channels}, 5, 7], r: float[2, 70, 5, 7]) -> (y: float[2, 70, 5, 7], z: float[2, 20, 3, 5]) {{
        w: float[70, {channels}, 1, 1] = ... 1
        b: float[70] = ... 2
        v: float[20, {channels}, 3, 3] = ... 3
        c = Conv(x, w, b)
        s = Add(c, r)
        y = Relu(s)
        z = Conv(x, v)
    }}"""
    draw = np.random.default_rng(0)
    feed = {name: draw.standard_normal((2, size, 5, 7)).astype(np.float32) for name, size in (("x", channels), ("r", 70))}
    wanted = ort.InferenceSession(to_bytes(model(text)), providers=["ReferenceExecutionProvider"]).run(None, feed)
    found = _tiles(text, Precision.MEDIUM).run(None, feed)
    errors = [np.abs(y - x).max() / np.abs(x).max() for x, y in zip(wanted, found, strict=True)]
    assert all(1e-4 < error < 1e-2 for error in errors)


@pytest.mark.parametrize("K", [1, 31, 200])
@pytest.mark.parametrize("kind", ["plain", "scaled", "cancelling"])
def test_high_is_nearer_than_rounded_operands_by_an_order(K: int, kind: str) -> None:
    """Judged by float64, relative to the sum of magnitudes: also operands of all sizes, and sums that cancel."""
    draw = np.random.default_rng(K)
    x, w = draw.standard_normal((17, K)).astype(np.float32), draw.standard_normal((K, 9)).astype(np.float32)
    if kind == "scaled":
        x = x * np.exp2(draw.integers(-30, 30, x.shape)).astype(np.float32)
        w = w * np.exp2(draw.integers(-30, 30, w.shape)).astype(np.float32)
    if kind == "cancelling":
        x, w = np.concatenate([x, -x * np.float32(1 + 2**-12)], 1), np.concatenate([w, w])
    exact, magnitude = x.astype(np.float64) @ w, np.abs(x).astype(np.float64) @ np.abs(w)
    errors = [np.abs(_product_in_tiles(x, w, precision) - exact) / magnitude for precision in (Precision.HIGH, Precision.MEDIUM)]
    assert errors[0].max() < 2.0**-15
    assert errors[0].max() < errors[1].max() / 20


def _product_in_tiles(x: Array, w: Array, precision: Precision) -> Array:
    K, N = w.shape
    proto = onnx.load_from_string(
        to_bytes(model(f"graph(x: float[n, {K}]) -> (y) {{ w: float[{K}, {N}] = ... 1\n y = MatMul(x, w) }}"))
    )
    proto.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(w, "w"))
    session = ort.InferenceSession(proto.SerializeToString(), providers=[CpuProvider(TILES, 1, precision=precision)])
    return np.asarray(session.run(None, {"x": x})[0])


def test_what_is_not_finite_or_denormal_in_three_products() -> None:
    """Infinities and NaN give what float32 gives; denormal numbers count for zeros."""
    x, w = np.ones((18, 40), np.float32), np.full((40, 9), 0.3, np.float32)
    x[0, 3], x[1, 4], x[2, 5], x[3] = np.inf, -np.inf, np.nan, 1e-40
    w[7, 2], w[8, 3] = np.inf, np.nan
    found = _product_in_tiles(x, w, Precision.HIGH)
    with np.errstate(invalid="ignore"):
        wanted = x.astype(np.float64) @ w
    np.testing.assert_allclose(found[:3], wanted[:3], rtol=1e-5)
    np.testing.assert_allclose(found[4:], wanted[4:], rtol=1e-5)
    np.testing.assert_array_equal(found[3, [0, 1, 4, 5, 6, 7, 8]], np.zeros(7))


@pytest.mark.parametrize("channels", [40, 330])
def test_high_multiplies_single_places_in_matrix_tiles(channels: int) -> None:
    """By three products; a row has the same bits in a batch as alone."""
    text = f"graph(x: float[n, {channels}, 3, 3]) -> (y) {{ w: float[70, {channels}, 1, 1] = ... 1\n y = Conv(x, w) }}"
    x = np.random.default_rng(0).standard_normal((3, channels, 3, 3)).astype(np.float32)
    wanted = ort.InferenceSession(to_bytes(model(text)), providers=["ReferenceExecutionProvider"]).run(None, {"x": x})[0]
    session = _tiles(text, Precision.HIGH)
    found = session.run(None, {"x": x})[0]
    assert 1e-7 < np.sqrt(np.mean((found - wanted) ** 2) / np.mean(wanted**2)) < 1e-5
    np.testing.assert_array_equal(session.run(None, {"x": x[2:]})[0], found[2:])
    assert _said(session) == ["three products of bfloat16, sums in float32"]


def _said(session: ort.InferenceSession) -> list[str]:
    return [place.precision for place in session.explain() if place.precision]


def test_explain_says_the_precision_of_each_product(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is computed: what is rounded depends on the processor."""
    monkeypatch.setattr(pairs, "has_fast_dot2", lambda target: False)
    assert _said(_session("highest")) == _said(_session("high")) == ["float32", "float32"]
    assert _said(_session("medium")) == ["float32, weights in bfloat16"] * 2
    assert _said(_tiles(TEXT, Precision.MEDIUM)) == ["bfloat16, sums in float32"] * 2
    assert _said(_tiles(TEXT, Precision.HIGH)) == ["three products of bfloat16, sums in float32"] * 2
    assert _said(_tiles(TEXT, Precision.HIGHEST)) == ["float32"] * 2
    monkeypatch.setattr(pairs, "has_fast_dot2", lambda target: True)
    assert _said(_session("medium")) == ["bfloat16, sums in float32"] * 2
    assert _said(_session("medium", ODD)) == ["float32, weights in bfloat16"]


def test_a_product_of_computed_values_stays_in_float32() -> None:
    """And explain says so, also of products inside bodies and in profiled sessions."""
    text = """graph(x: float[64, 64], c: bool[]) -> (y: float[64, 64]) {
        y = If(c) {
            then_branch = graph() -> (a) { w: float[64, 64] = ... 1 a: float[64, 64] = MatMul(x, w) },
            else_branch = graph() -> (b) { b: float[64, 64] = MatMul(x, x) }
        }
    }"""
    assert _said(_tiles(text, Precision.MEDIUM)) == ["bfloat16, sums in float32", "float32"]
    options = ort.SessionOptions()
    options.enable_profiling = True
    session = ort.InferenceSession(to_bytes(model(TEXT)), options, providers=["CPUExecutionProvider"])
    assert _said(session) == ["float32"] * 2
    Path(session.end_profiling()).unlink()


@pytest.mark.parametrize(
    ("text", "precision"),
    [
        ("graph(x: float[1, 8, 9, 9]) -> (y) { w: float[16, 8, 3, 3] = ... 1 y = Conv(x, w) }", "float32"),
        ("graph(x: float[1, 64, 9, 9]) -> (y) { w: float[64, 64, 3, 3] = ... 1 y = Conv(x, w) {pads = [1, 1, 1, 1]} }", "float32"),
        ("graph(x: float[1, 8, 9, 9]) -> (y) { w: float[8, 1, 3, 3] = ... 1 y = Conv(x, w) {group = 8} }", "float32"),
        ("graph(x: float[1, 8, 5, 5]) -> (y) { w: float[8, 4, 3, 3] = ... 1 y = ConvTranspose(x, w) }", "float32"),
        ("graph(x: uint8[4, 8]) -> (y) { w: uint8[8, 4] = ... 1 y = MatMulInteger(x, w) }", "8-bit integers, sums in int32"),
        (
            "graph(x: uint8[1, 8, 5, 5]) -> (y) { w: uint8[4, 8, 3, 3] = ... 1 y = ConvInteger(x, w) }",
            "8-bit integers, sums in int32",
        ),
        (
            "graph(x: float[5, 1, 4]) -> (y) { w: float[1, 12, 4] = ... 1 r: float[1, 12, 3] = ... 2 "
            "y = LSTM(x, w, r) {hidden_size = 3} }",
            "float32",
        ),
        ("graph(q: float[1, 2, 3, 4], k: float[1, 2, 5, 4], v: float[1, 2, 5, 4]) -> (y) { y = Attention(q, k, v) }", "float32"),
    ],
)
def test_each_family_says_its_precision(text: str, precision: str) -> None:
    """Once, of its own node."""
    session = ort.InferenceSession(to_bytes(model(text, opset=23)), providers=["CPUExecutionProvider"])
    assert _said(session) == [precision]


def test_models_in_bfloat16_are_multiplied_in_matrix_tiles() -> None:
    """Their weights are as they are; what comes from before is rounded, where that is asked for."""
    text = "graph(x: bfloat16[20, 40]) -> (y: bfloat16[20, 30]) { w: bfloat16[40, 30] = ... 1 y = MatMul(x, w) }"
    assert _said(_tiles(text, Precision.MEDIUM)) == ["bfloat16, sums in float32"]
    assert _said(_tiles(text.replace("bfloat16", "float16"), Precision.MEDIUM))[0].startswith("float32")
    x = np.random.default_rng(0).standard_normal((20, 40)).astype(DataType.BFLOAT16.numpy)
    wide, narrow = (_tiles(text, precision).run(None, {"x": x})[0] for precision in (Precision.HIGHEST, Precision.MEDIUM))
    np.testing.assert_allclose(narrow.astype(np.float32), wide.astype(np.float32), rtol=2**-7, atol=1e-2)


def test_words_and_precisions() -> None:
    """As PyTorch has them."""
    assert PRECISIONS == {"highest": Precision.HIGHEST, "high": Precision.HIGH, "medium": Precision.MEDIUM}
