"""Sessions of one model in a process."""

import gc
import os
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest
from support.models import model

import sardonyx as ort
from sardonyx.formats.onnx import save, to_bytes
from sardonyx.formats.opened import open_model
from sardonyx.ir import Tensor
from sardonyx.session.decisions import sharing
from sardonyx.session.decisions.sharing import identity_of

_RELU = to_bytes(model("graph(x: float[n, 4]) -> (y: float[n, 4]) { w: float[4] = [1, 2, 3, 4]\n a = Mul(x, w)\n y = Relu(a) }"))
_TWICE = to_bytes(model("graph(x: float[n, 4]) -> (y: float[n, 4]) { w: float[4] = [1, 2, 3, 9]\n a = Mul(x, w)\n y = Relu(a) }"))
_ROWS = np.ones((2, 4), np.float32)


@pytest.fixture(autouse=True)
def _kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SARDONYX_KEEP_DECISIONS", "1")


def _is_shared(one: ort.InferenceSession, other: ort.InferenceSession) -> bool:
    return one._runner.built is other._runner.built


def test_sessions_of_equal_bytes_share() -> None:
    """They compute the same, side by side."""
    one, other = ort.InferenceSession(_RELU), ort.InferenceSession(bytes(bytearray(_RELU)))
    assert _is_shared(one, other)
    found: list[object] = []

    def run(session: ort.InferenceSession, factor: float) -> None:
        for _ in range(200):
            (result,) = session.run(None, {"x": _ROWS * np.float32(factor)})
            found.append(result.tolist() == [[factor, 2 * factor, 3 * factor, 4 * factor]] * 2)

    threads = [threading.Thread(target=run, args=pair) for pair in ((one, 1.0), (other, 2.0), (one, 3.0), (other, 4.0))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 800


def test_sessions_of_one_file_share(tmp_path: Path) -> None:
    """Until it is written to."""
    path = tmp_path / "m.onnx"
    path.write_bytes(_RELU)
    one, other = ort.InferenceSession(path), ort.InferenceSession(path)
    assert _is_shared(one, other)
    path.write_bytes(_TWICE)
    third = ort.InferenceSession(path)
    assert not _is_shared(one, third)
    assert third.run(None, {"x": _ROWS})[0].tolist() == [[1, 2, 3, 9]] * 2
    assert one.run(None, {"x": _ROWS})[0].tolist() == [[1, 2, 3, 4]] * 2


def test_a_model_whose_data_were_replaced_is_not_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own file is what it was."""
    monkeypatch.setattr("sardonyx.session.decisions.known_files._SETTLED_NS", 0)
    path, large = (
        tmp_path / "m.onnx",
        "graph(x: float[n, 4]) -> (y: float[n, 900]) {{ w: float[4, 900] = ... {0}\n y = MatMul(x, w) }}",
    )
    save(model(large.format(1)), path, external_data=True)
    (data,) = (each for each in tmp_path.iterdir() if each != path)
    one, other = ort.InferenceSession(path), ort.InferenceSession(path)
    assert _is_shared(one, other)
    data.write_bytes(bytes(data.stat().st_size))
    third = ort.InferenceSession(path)
    assert not _is_shared(one, third)
    assert not third.run(None, {"x": _ROWS})[0].any()


def test_other_weights_or_options_are_not_shared() -> None:
    """Each is a build of its own."""
    one = ort.InferenceSession(_RELU)
    assert not _is_shared(one, ort.InferenceSession(_TWICE))
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    assert not _is_shared(one, ort.InferenceSession(_RELU, options))
    assert not _is_shared(one, ort.InferenceSession(_RELU, providers=["ReferenceExecutionProvider"]))


def test_the_entry_switches_it_off() -> None:
    """Such a session neither gives nor takes."""
    options = ort.SessionOptions()
    options.add_session_config_entry("session.share_programs", "0")
    one = ort.InferenceSession(_RELU, options)
    assert not _is_shared(one, ort.InferenceSession(_RELU, options))
    assert not _is_shared(one, ort.InferenceSession(_RELU))


def test_what_is_shared_goes_with_the_last_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else refers to what is built of a model that is not small."""
    monkeypatch.setattr("sardonyx.session.decisions.sharing._RECENT_BYTES", 0)
    one, other = ort.InferenceSession(_RELU), ort.InferenceSession(_RELU)
    built = weakref.ref(one._runner.built)
    del one
    gc.collect()
    assert built() is not None
    del other
    gc.collect()
    assert built() is None


def _program(session: ort.InferenceSession) -> object:
    return session._runner.built.executor._plan.steps[0].program


def test_programs_of_small_models_live_on() -> None:
    """The next session has the program of one that is gone, but not its executor with arenas; `trim` ends that."""
    one = ort.InferenceSession(_RELU)
    one.run(None, {"x": _ROWS})
    program, executor = weakref.ref(_program(one)), weakref.ref(one._runner.built.executor)
    del one
    gc.collect()
    assert executor() is None
    other = ort.InferenceSession(_RELU)
    assert _program(other) is program()
    assert other.run(None, {"x": _ROWS})[0].tolist() == [[1, 2, 3, 4]] * 2
    del other
    ort.trim()
    gc.collect()
    assert program() is None


def test_few_programs_live_on() -> None:
    """Those that were used last, of so many models."""
    sharing.forget_recent()
    texts = [
        f"graph(x: float[n]) -> (y) {{ c: float[1] = [{number}]\n y = Mul(x, c) }}" for number in range(sharing._MOST_RECENT + 2)
    ]
    programs = [weakref.ref(_program(ort.InferenceSession(to_bytes(model(text))))) for text in texts]
    gc.collect()
    assert [item() is not None for item in programs] == [False] * 2 + [True] * sharing._MOST_RECENT
    sharing.forget_recent()


def test_a_settled_file_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a session before was built of is found by the file's times; a file that is written anew is another model."""
    path = tmp_path / "m.onnx"
    path.write_bytes(_RELU)
    monkeypatch.setattr("sardonyx.session.decisions.known_files._SETTLED_NS", 0)
    one = ort.InferenceSession(path)
    with monkeypatch.context() as context:
        context.setattr("sardonyx.session.decisions.keep.open_model", lambda *_: pytest.fail("the file was read"))
        assert _is_shared(one, ort.InferenceSession(path))
    path.write_bytes(_TWICE)
    other = ort.InferenceSession(path)
    assert not _is_shared(one, other)
    assert other.run(None, {"x": _ROWS})[0].tolist() == [[1, 2, 3, 9]] * 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks")
def test_a_child_of_a_fork_makes_sessions() -> None:
    """The lock is free there, and what is shared is used."""
    one = ort.InferenceSession(_RELU)
    child = os.fork()
    if not child:
        same = _is_shared(one, ort.InferenceSession(_RELU))
        os._exit(0 if same and one.run(None, {"x": _ROWS})[0].tolist() == [[1, 2, 3, 4]] * 2 else 1)
    assert os.waitpid(child, 0)[1] == 0


def _large_bytes() -> bytes:
    """Return a model with a weight of 5 MiB."""
    held = model("graph(x: float[n, 4]) -> (y) { y = MatMul(x, w) }".replace("{ y", "{ w: float[4, 4] = ... 1\n y"))
    held.graph.initializers["w"].constant = Tensor.from_array(np.ones((4, 5 << 16), np.float32))
    return to_bytes(held)


def _large(path: Path) -> Path:
    path.write_bytes(_large_bytes())
    return path


def test_a_large_file_is_known_by_its_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it has been as it is for longer than two writes can look like one."""
    path = _large(tmp_path / "m.onnx")
    now = path.stat().st_ctime_ns + 1_000_000_000
    monkeypatch.setattr(time, "time_ns", lambda: now)
    assert identity_of(open_model(path, path), "key", "message") is None
    now += 3_000_000_000
    monkeypatch.setattr(time, "time_ns", lambda: now)
    found = identity_of(open_model(path, path), "key", "message")
    assert found is not None
    assert found == identity_of(open_model(path, path), "key", "message")
    assert found != identity_of(open_model(path, path), "other key", "message")
    status = path.stat()
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    now += 3_000_000_000
    assert identity_of(open_model(path, path), "key", "message") not in (None, found)


def test_a_large_file_that_was_replaced_is_not_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between opening it and asking for its times."""
    path = _large(tmp_path / "m.onnx")
    opened = open_model(path, path)
    os.replace(_large(tmp_path / "other.onnx"), path)
    monkeypatch.setattr(time, "time_ns", lambda: path.stat().st_ctime_ns + 3_000_000_000)
    assert identity_of(opened, "key", "message") is None


def test_large_bytes_and_mapped_files_are_not_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To compare them would take too long, or they may change."""
    assert identity_of(open_model(_large_bytes(), None), "key", "message") is None
    path = _large(tmp_path / "m.onnx")
    monkeypatch.setattr(time, "time_ns", lambda: path.stat().st_ctime_ns + 3_000_000_000)
    monkeypatch.setenv("SARDONYX_MAP_WEIGHTS", "1")
    assert identity_of(open_model(path, path), "key", "message") is None
