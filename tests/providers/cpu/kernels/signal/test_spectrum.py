"""DFT and STFT against float64 and the reference provider."""

import time

import numpy as np
import pytest
from support.cpu_run import LEVELS, assert_same_bits, cpu_session, declined, reference, run_cpu

from sardonyx import RunOptions
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument, RunTimedOut

LENGTHS = [1, 2, 3, 5, 7, 15, 16, 17, 31, 64, 67, 100, 122, 143, 256, 1000, 1009]
"""Powers of 2, products, primes that stages transform, and primes that need a chirp."""


def _signal(*shape: int, dtype: type = np.float32) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def _assert_near(found: Array, exact: Array, length: int, epsilon: float) -> None:
    """Errors grow as the logarithm of the length does, against the size of all bins of a line."""
    assert found.shape == exact.shape
    typical = np.sqrt(np.mean(np.square(exact), axis=(1, 2), keepdims=True)) + 1e-30
    assert np.max(np.abs(found - exact) / typical, initial=0) <= 4 * (2 + np.log2(length)) * epsilon


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("attributes", ["", "inverse = 1", "onesided = 1", "inverse = 1, onesided = 1"])
def test_every_length(kind: str, attributes: str, isa: str) -> None:
    """Against float64; sizes are symbols."""
    onesided_forward = attributes == "onesided = 1"
    dtype = np.float32 if kind == "float" else np.float64
    for parts in (1,) if onesided_forward else (1, 2):
        body = f"graph(x: {kind}[A, B, {parts}]) -> (y) {{ y = DFT(x) {{{attributes}}} }}"
        session = cpu_session(body, opset=20, isa=isa)
        for length in LENGTHS[1:]:
            x = _signal(3, length, parts, dtype=dtype)
            wanted = reference(body, {"x": x.astype(np.float64)}, opset=20, double=True)[0]
            _assert_near(session.run(None, {"x": x})[0], wanted, length, float(np.finfo(dtype).eps))


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("attributes", ["", "inverse = 1", "inverse = 1, onesided = 1"])
@pytest.mark.parametrize("axis", [0, 1, 2, -2, -4])
def test_every_axis(axis: int, attributes: str, isa: str) -> None:
    """As the attribute of opset 17 and as the input of opset 20."""
    shape = (21, 5, 18, 2)
    x = _signal(*shape)
    for opset, call in ((17, f"DFT(x) {{axis = {axis}, {attributes}}}"), (20, f"DFT(x, _, a) {{{attributes}}}")):
        body = f"graph(x: float[21, 5, 18, 2]) -> (y) {{ a: int64[] = {axis} y = {call} }}"
        found, wanted = run_cpu(body, {"x": x}, opset=opset, isa=isa)[0], reference(body, {"x": x}, opset=opset, double=True)[0]
        np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=3e-6 * np.abs(wanted).max())


@pytest.mark.parametrize("length", [1, 2, 9, 20, 33, 134])
@pytest.mark.parametrize("attributes", ["", "inverse = 1", "onesided = 1", "inverse = 1, onesided = 1"])
def test_signals_are_cut_and_filled_to_a_length(length: int, attributes: str) -> None:
    """Of 20 elements."""
    parts = 1 if attributes == "onesided = 1" else 2
    body = f"graph(x: float[A, 20, {parts}]) -> (y) {{ n: int64[] = {length} y = DFT(x, n) {{{attributes}}} }}"
    x = _signal(2, 20, parts)
    found, wanted = run_cpu(body, {"x": x}, opset=20)[0], reference(body, {"x": x}, opset=20, double=True)[0]
    _assert_near(found, wanted, length, 2.0**-23)


def test_a_length_that_is_made_of_sizes() -> None:
    """It is the output's."""
    body = "graph(x: float[A, B, 1], z: float[C]) -> (y) { n = Shape(z) k = Squeeze(n) y = DFT(x, k) }"
    feeds = {"x": _signal(2, 9, 1), "z": np.zeros(12, np.float32)}
    np.testing.assert_allclose(run_cpu(body, feeds, opset=20)[0], reference(body, feeds, opset=20)[0], atol=1e-5)


def test_threads_and_batches_do_not_change_bits() -> None:
    """Each line is transformed as it is alone, side by side with others or not."""
    body = "graph(x: float[A, B, C, 2]) -> (y) { a: int64[] = 1 y = DFT(x, _, a) }"
    for length in (12, 49, 67, 240, 1009):
        x = _signal(2, length, 70, 2)
        whole = run_cpu(body, {"x": x}, opset=20, threads=2)[0]
        session = cpu_session(body, opset=20)
        for column in (0, 33, 69):
            alone = session.run(None, {"x": np.ascontiguousarray(x[1:, :, column : column + 1])})[0]
            assert_same_bits(alone[0, :, 0], np.ascontiguousarray(whole[1, :, column]))


@pytest.mark.parametrize("attributes", ["", "inverse = 1", "onesided = 1"])
@pytest.mark.parametrize("length", [10, 134])
def test_the_middle_bin_of_a_real_signal_is_real(attributes: str, length: int) -> None:
    """So is the first one, to the last bit."""
    body = f"graph(x: float[A, B, 1]) -> (y) {{ y = DFT(x) {{{attributes}}} }}"
    found = run_cpu(body, {"x": _signal(2, length, 1)}, opset=20)[0]
    assert not found[:, [0, length // 2], 1].any()


def test_empty_batches() -> None:
    """Nothing is transformed."""
    body = "graph(x: float[A, 6, 1]) -> (y) { y = DFT(x) }"
    assert run_cpu(body, {"x": np.zeros((0, 6, 1), np.float32)}, opset=20)[0].shape == (0, 6, 2)


def test_a_transform_of_nothing() -> None:
    """There is none."""
    with pytest.raises(InvalidArgument, match="dft_length = 0"):
        run_cpu("graph(x: float[A, B, 1]) -> (y) { y = DFT(x) }", {"x": np.zeros((1, 0, 1), np.float32)}, opset=20)


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize(
    ("call", "length"), [("STFT(x, s, w)", 16), ("STFT(x, s, w, n) {onesided = 0}", 16), ("STFT(x, s, _, n)", 37)]
)
def test_frames(call: str, length: int, parts: int, isa: str) -> None:
    """With windows and without."""
    body = (
        f"graph(x: float[A, B, {parts}], w: float[16]) -> (y) {{ s: int64[] = 5 n: int64[] = {length} y = {call} z = Identity(w) }}"
    )
    feeds = {"x": _signal(2, 83, parts), "w": _signal(16)}
    session = cpu_session(body, opset=17, isa=isa)
    found, wanted = session.run(None, feeds)[0], reference(body, feeds, opset=17, double=True)[0]
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_frames_that_do_not_fit() -> None:
    """The signal is too short, or the window has another length."""
    session = cpu_session("graph(x: float[A, B, 1], w: float[C]) -> (y) { s: int64[] = 5 y = STFT(x, s, w) }", opset=17)
    with pytest.raises(InvalidArgument, match="frame_length = 9; expected 1 to 8"):
        session.run(None, {"x": _signal(2, 8, 1), "w": _signal(9)})
    body = "graph(x: float[A, B, 1], w: float[C]) -> (y) { s: int64[] = 5 n: int64[] = 4 y = STFT(x, s, w, n) }"
    with pytest.raises(InvalidArgument, match="expected one length"):
        cpu_session(body, opset=17).run(None, {"x": _signal(2, 8, 1), "w": _signal(5)})


def test_what_is_left_to_others() -> None:
    """Axes, lengths and steps that only the run shows; half of what has no halves."""
    head = "graph(x: float[A, B, 2], r: float[A, B, 1], n: int64[]) -> (y) { "
    assert declined(head + "y = DFT(x, _, n) }", opset=20) == ["its axis is computed"]
    assert declined(head + "y = DFT(r, n) {onesided = 1} }", opset=20) == ["its length is computed, and half of the bins stored"]
    assert declined(head + "y = DFT(x) {onesided = 1} }", opset=20) == ["half of the bins of a complex signal"]
    assert "frame_step" in declined(head + "y = STFT(x, n) }", opset=17)[0]


@pytest.mark.parametrize(("lines", "length"), [(1, 1 << 18), (1, 131101), (3, 131101), (10, 1 << 18)])
@pytest.mark.parametrize("sizes", ["known", "symbols"])
def test_long_lines_are_transformed_piece_by_piece(lines: int, length: int, sizes: str) -> None:
    """Powers of 2 and primes, fewer lines than tasks that run at a time and more, with the same bits for any number of threads."""
    shape = f"{lines}, {length}, 2" if sizes == "known" else "A, B, 2"
    body, x = f"graph(x: float[{shape}]) -> (y) {{ y = DFT(x) }}", _signal(lines, length, 2)
    found = run_cpu(body, {"x": x}, opset=20)[0]
    exact = np.fft.fft(x[..., 0].astype(np.float64) + 1j * x[..., 1], axis=1)
    _assert_near(found, np.stack([exact.real, exact.imag], axis=-1), length, float(np.finfo(np.float32).eps))
    assert_same_bits(run_cpu(body, {"x": x}, opset=20, threads=3)[0], found)


def test_a_run_over_a_long_line_ends_within_100_ms() -> None:
    """A line of a prime length is many steps, between which a run may be ended."""
    length = 2000003
    session = cpu_session(f"graph(x: float[1, {length}, 1]) -> (y) {{ y = DFT(x) }}", opset=20)
    x, options = np.zeros((1, length, 1), np.float32), RunOptions()
    session.run(None, {"x": x})
    options.timeout_ms = 20
    begin = time.thread_time()
    with pytest.raises(RunTimedOut):
        session.run(None, {"x": x}, options)
    assert time.thread_time() - begin < 0.12
