"""Arenas that runs give back, and arenas that sessions share."""

from __future__ import annotations

import numpy as np
import pytest
from support.session_models import session

import sardonyx as ort
from sardonyx.session.memory.arenas import shared_pool, shrinks_arenas
from sardonyx.values import memory_info

_KEY = "memory.enable_memory_arena_shrinkage"
_TEXT = "graph(x: float[n]) -> (y: float[n]) {\na = Softmax(x)\nb = Softmax(a)\ny = Softmax(b)\n}"
_FEED = {"x": np.zeros(100_000, np.float32)}


@pytest.fixture
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what a test registers."""
    monkeypatch.setattr(memory_info, "_REGISTERED", {})


def _register(max_mem: int) -> None:
    info = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    ort.create_and_register_allocator(info, ort.OrtArenaCfg({"max_mem": max_mem}))


def _sharing() -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.use_env_allocators", "1")
    return session(_TEXT, sess_options=options)


@pytest.mark.parametrize(
    ("text", "expected"), [("", False), ("cpu:0", True), ("cpu", True), ("cpu:0;", True), ("cpu:0;cpu:0", True)]
)
def test_the_arenas_of_the_host_are_named(text: str, expected: bool) -> None:
    """In the ways that onnxruntime takes."""
    assert shrinks_arenas(text, has_arenas=True) is expected


@pytest.mark.parametrize("text", ["gpu:0", "cpu:0;gpu:0", "cpu:1", "cpu:-1", "CPU:0", "cpu:x", "foo:0", " cpu:0"])
def test_other_devices_are_refused(text: str) -> None:
    """With onnxruntime's class, by the run."""
    options = ort.RunOptions()
    options.add_run_config_entry(_KEY, text)
    with pytest.raises(ort.InvalidArgument, match=_KEY):
        session(_TEXT).run(None, _FEED, options)


def test_a_session_without_arenas_has_none_to_give_back() -> None:
    """`enable_cpu_mem_arena` off makes it an error, as in onnxruntime."""
    with pytest.raises(ort.InvalidArgument, match="enable_cpu_mem_arena is off"):
        shrinks_arenas("cpu:0", has_arenas=False)


def test_a_run_gives_back_the_arenas_and_keeps_the_shapes() -> None:
    """When it ends, also by an error."""
    made = session(_TEXT)
    made.run(None, _FEED)
    assert made.memory_report().arena_bytes > 0
    options = ort.RunOptions()
    options.add_run_config_entry(_KEY, "cpu:0")
    made.run(None, _FEED, options)
    report = made.memory_report()
    assert report.arena_bytes == 0
    assert report.bindings == 1
    options.terminate = True
    made.run(None, _FEED)
    with pytest.raises(ort.RunTerminated):
        made.run(None, _FEED, options)
    assert made.memory_report().arena_bytes == 0


@pytest.mark.usefixtures("_registered")
def test_sessions_share_the_arenas_of_a_registered_allocator() -> None:
    """Runs one after another use one arena, which counts once for the process."""
    _register(0)
    first, second = _sharing(), _sharing()
    first.run(None, _FEED)
    alone = first.memory_report().arena_bytes
    second.run(None, _FEED)
    pool = shared_pool()
    assert pool is not None
    assert pool.held_bytes == alone > 0
    assert second.memory_report().shared_bytes >= alone
    assert second.trim() == alone
    assert first.memory_report().arena_bytes == 0


@pytest.mark.usefixtures("_registered")
def test_the_limit_of_a_registered_allocator_holds() -> None:
    """A run that needs more is a RuntimeException; a smaller one runs, and idle arenas make way."""
    _register(500_000)
    made = _sharing()
    made.run(None, {"x": np.zeros(50_000, np.float32)})
    made.run(None, {"x": np.zeros(60_000, np.float32)})
    with pytest.raises(ort.RuntimeException, match="max_mem of 500000"):
        made.run(None, {"x": np.zeros(200_000, np.float32)})
    made.run(None, {"x": np.zeros(50_000, np.float32)})


@pytest.mark.usefixtures("_registered")
def test_without_a_registered_allocator_sessions_have_their_own() -> None:
    """As in onnxruntime."""
    made = _sharing()
    made.run(None, _FEED)
    assert shared_pool() is None
    assert made.memory_report().arena_bytes > 0
