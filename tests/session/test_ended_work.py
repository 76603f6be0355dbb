"""Runs and loads that are ended in their middle: by a flag, a time or a signal; what comes after is as ever."""

from __future__ import annotations

import functools
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import pytest
from support.cancelling import after, handler, interrupt
from support.models import model
from support.session_models import MLP, rows

import sardonyx as ort
from sardonyx.config import Limits
from sardonyx.formats.onnx import to_bytes
from sardonyx.providers.cpu.kernels import control_flow

LAYERS = 40
SOON = 10.0
"""Seconds within which the work is to end that would take much longer."""

PRODUCTS = "".join(f"h{number} = MatMul(h{number - 1}, w)\n" for number in range(1, LAYERS))
DEEP = f"""graph(x: float[n, 1024], w: float[1024, 1024]) -> (y: float[n, 1024]) {{
h0 = MatMul(x, w)
{PRODUCTS}y = Relu(h{LAYERS - 1})
}}"""
SUMS = "".join(f"h{number} = Softmax(h{number - 1})\n" for number in range(1, 3000))
MANY = f"""graph(x: float[n, 512]) -> (y: float[n, 512]) {{
h0 = Softmax(x)
{SUMS}y = Softmax(h2999)
}}"""
ENDLESS = """graph(x: float[2]) -> (y: float[2]) {{
    n: int64[] = 1000000000000
    t: bool[] = true
    y = Loop(n, t, x) {{body = graph(i: int64[], c: bool[], v: float[2]) -> (c, {out}) {{
        {body}
    }}}}
}}"""


def _session(text: str, threads: int = 1, providers: list[str] | None = None) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    return ort.InferenceSession(to_bytes(model(text)), options, providers)


def _deep_feed(n: int) -> dict[str, Any]:
    rng = np.random.default_rng(n)
    return {name: (0.03 * rng.standard_normal((size, 1024))).astype(np.float32) for name, size in (("x", n), ("w", 1024))}


class _StoppedError(ValueError):
    """What a user's handler raises, of a class that kernels raise too."""


def _stop(number: int, frame: object) -> None:
    raise _StoppedError("by the user")


Run = Callable[[ort.RunOptions | None], object]


def _terminate(run: Run) -> None:
    options = ort.RunOptions()
    with after(0.3, lambda: setattr(options, "terminate", True)), pytest.raises(ort.RunTerminated, match="RunOptions.terminate"):
        run(options)


def _time_out(run: Run) -> None:
    options = ort.RunOptions()
    options.timeout_ms = 300
    with pytest.raises(ort.RunTimedOut, match="300 ms"):
        run(options)


def _interrupt(run: Run) -> None:
    with handler(signal.default_int_handler), after(0.3, interrupt), pytest.raises(KeyboardInterrupt):
        run(None)


def _handle(run: Run) -> None:
    with handler(_stop), after(0.3, interrupt), pytest.raises(_StoppedError, match="^by the user$"):
        run(None)


ENDS = [_terminate, _time_out, _interrupt, _handle]


@pytest.fixture(scope="module")
def deep() -> dict[int, tuple[ort.InferenceSession, Any]]:
    """For one and two threads, a session with what it makes of a small feed."""
    made = {threads: _session(DEEP, threads) for threads in (1, 2)}
    return {threads: (held, held.run(None, _deep_feed(3))[0]) for threads, held in made.items()}


def _ends_soon(end: Callable[[Run], None], run: Run) -> None:
    start = time.monotonic()
    end(run)
    assert time.monotonic() - start < SOON


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("end", ENDS)
def test_a_run_of_compiled_kernels_is_ended(deep: Any, end: Callable[[Run], None], threads: int) -> None:
    """It takes ten seconds and more in one native call; the next run of the session is right."""
    held, expected = deep[threads]
    feed = _deep_feed(1 << 14)
    _ends_soon(end, lambda options: held.run(None, feed, options))
    np.testing.assert_array_equal(held.run(None, _deep_feed(3))[0], expected)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("end", [_interrupt, _handle])
def test_a_run_that_is_one_call_of_machine_code_is_ended(end: Callable[[Run], None], threads: int) -> None:
    """Sessions learn to run without Python; signals are heard there too, and runs that pause are right."""
    held, feed = _session(MANY, threads), {"x": np.linspace(0, 1, 32 * 512, dtype=np.float32).reshape(32, 512)}
    expected = [held.run(None, feed)[0] for _ in range(4)]
    end(lambda options: _again(held, feed, options))
    found = held.run(None, feed)[0]
    assert all((found == other).all() for other in expected)


@pytest.mark.parametrize("end", ENDS)
def test_a_run_between_unmapped_pages_is_ended(end: Callable[[Run], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Guard mode runs on copies of what is fed."""
    monkeypatch.setenv("SARDONYX_GUARD", "1")
    held = _session(DEEP)
    expected = held.run(None, _deep_feed(3))[0]
    feed = _deep_feed(1 << 11)
    _ends_soon(end, lambda options: held.run(None, feed, options))
    np.testing.assert_array_equal(held.run(None, _deep_feed(3))[0], expected)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(("out", "body"), [("w", "w = Neg(v)"), ("v", "")])
def test_a_loop_without_an_end_is_ended(end: Callable[[Run], None], out: str, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one whose body has no node that would ask."""
    monkeypatch.setattr(control_flow, "LIMITS", Limits(iterations=1 << 40))
    held = _session(ENDLESS.format(out=out, body=body))
    _ends_soon(end, lambda options: held.run(None, {"x": np.zeros(2, np.float32)}, options))


@pytest.mark.parametrize("end", ENDS)
def test_a_recurrent_kernel_is_ended(end: Callable[[Run], None]) -> None:
    """The reference provider asks in each step of the sequence."""
    inputs = "x: float[t, 1, 4], w: float[1, 256, 4], r: float[1, 256, 64]"
    held = _session(f"graph({inputs}) -> (y) {{\ny = LSTM(x, w, r) {{hidden_size = 64}}\n}}", 1, ["ReferenceExecutionProvider"])

    def feed(t: int) -> dict[str, Any]:
        return {
            name: np.full(shape, 0.1, np.float32) for name, shape in (("x", (t, 1, 4)), ("w", (1, 256, 4)), ("r", (1, 256, 64)))
        }

    long = feed(100_000)
    _ends_soon(end, lambda options: held.run(None, long, options))
    assert np.isfinite(held.run(None, feed(2))[0]).all()


@pytest.mark.parametrize("end", ENDS)
def test_a_run_of_the_reference_provider_is_ended(end: Callable[[Run], None]) -> None:
    """Between two nodes."""
    lines = "a0 = Sin(x)\n" + "".join(f"a{number} = Sin(a{number - 1})\n" for number in range(1, 4000))
    held = _session(f"graph(x: float[n]) -> (y: float[n]) {{\n{lines}y = Neg(a3999)\n}}", 1, ["ReferenceExecutionProvider"])
    x = np.zeros(1 << 18, np.float32)
    _ends_soon(end, lambda options: held.run(None, {"x": x}, options))


def test_a_handler_that_returns_lets_the_run_go_on(deep: Any) -> None:
    """It is called in the middle of the run, whose result is as ever."""
    held, _ = deep[2]
    feed, heard = _deep_feed(1 << 10), list[float]()
    with handler(lambda *_: heard.append(time.monotonic())):
        expected = held.run(None, feed)[0]
        with after(0.1, interrupt):
            (found,) = held.run(None, feed)
            end = time.monotonic()
    np.testing.assert_array_equal(found, expected)
    assert heard[0] < end


def test_other_runs_of_the_session_go_on(deep: Any) -> None:
    """Only runs that were given the options end."""
    held, _ = deep[2]
    feed, results = _deep_feed(1 << 10), list[Any]()
    expected = held.run(None, feed)[0]
    thread = threading.Thread(target=lambda: results.append(held.run(None, feed, ort.RunOptions())[0]))
    thread.start()
    _terminate(functools.partial(_again, held, feed))
    thread.join()
    np.testing.assert_array_equal(results[0], expected)


def _again(held: ort.InferenceSession, feed: dict[str, Any], options: ort.RunOptions | None) -> None:
    while True:
        held.run(None, feed, options)


CHAIN = "a0 = Sin(x)\n" + "".join(f"a{number} = {'Neg' if number % 3 else 'Sin'}(a{number - 1})\n" for number in range(1, 12_000))
LONG = f"graph(x: float[2]) -> (y: float[2]) {{\n{CHAIN}y = Neg(a11999)\n}}"


@pytest.fixture(scope="module")
def long_model() -> bytes:
    """A model that takes some seconds to load."""
    return to_bytes(model(LONG))


@contextmanager
def _load_canceled() -> Iterator[Any]:
    options = ort.SessionOptions()
    with after(0.3, lambda: options.set_load_cancellation_flag(True)), pytest.raises(ort.ModelLoadCanceled):
        yield options


@contextmanager
def _load_timed_out() -> Iterator[Any]:
    options = ort.SessionOptions()
    options.load_timeout_ms = 300
    with pytest.raises(ort.ModelLoadTimedOut, match="300 ms"):
        yield options


@contextmanager
def _load_interrupted() -> Iterator[Any]:
    with handler(signal.default_int_handler), after(0.3, interrupt), pytest.raises(KeyboardInterrupt):
        yield None


class _StoppedLoadError(Exception):
    """What a user's handler raises; reading files and packages' records hears of a ValueError as of a wrong number in one."""


def _stop_load(number: int, frame: object) -> None:
    raise _StoppedLoadError("by the user")


@contextmanager
def _load_stopped_by_a_handler() -> Iterator[Any]:
    with handler(_stop_load), after(0.3, interrupt), pytest.raises(_StoppedLoadError, match="^by the user$"):
        yield None


@pytest.mark.parametrize("end", [_load_canceled, _load_timed_out, _load_interrupted, _load_stopped_by_a_handler])
def test_a_load_is_ended(end: Callable[[], AbstractContextManager[Any]], long_model: bytes) -> None:
    """Another session can be made at once."""
    start = time.monotonic()
    with end() as options:
        ort.InferenceSession(long_model, options)
    assert time.monotonic() - start < SOON
    (y,) = ort.InferenceSession(to_bytes(model(MLP))).run(None, rows(3))
    np.testing.assert_allclose(y.sum(axis=1), 1, rtol=1e-6)


def test_a_flag_that_is_set_lets_no_load_begin() -> None:
    """Until it is taken back."""
    options = ort.SessionOptions()
    options.set_load_cancellation_flag(True)
    with pytest.raises(ort.ModelLoadCanceled):
        ort.InferenceSession(to_bytes(model(MLP)), options)
    options.set_load_cancellation_flag(False)
    assert ort.InferenceSession(to_bytes(model(MLP)), options).get_inputs()
