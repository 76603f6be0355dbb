"""Models whose weights lie in other files: what is kept of them, and that weights are those of the files at hand."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from support.kept_decisions import folder, results
from support.models import model

from sardonyx import InferenceSession, SessionOptions
from sardonyx.errors import InvalidGraph
from sardonyx.formats.onnx import save
from sardonyx.session.decisions import known_files, sharing
from sardonyx.session.decisions.data_files import are_as_before, data_files, data_files_again, data_paths, locations_of
from sardonyx.trace import Event, observe

__all__ = ["folder"]

_TEXT = """graph(x: float[n, 6]) -> (y: float[n, 900]) {{
    w: float[6, 900] = ... {0}
    a: float[900] = ... {1}
    c: float[900] = ... 3
    b = Add(a, c)
    p = MatMul(x, w)
    q = Add(p, b)
    y = Relu(q)
}}"""
_ROWS = np.arange(30, dtype=np.float32).reshape(5, 6) / 8
_LONG_NS = 3_600_000_000_000


@pytest.fixture(params=["programs", "decisions"])
def _kept(request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Sessions as in processes of their own; files count as settled at once, so that programs are kept, or never."""
    monkeypatch.setattr("sardonyx.session.decisions.keep.find_shared", lambda identity: None)
    monkeypatch.setattr(known_files, "_DIGESTS", {})
    monkeypatch.setattr(known_files, "_SETTLED_NS", 0 if request.param == "programs" else _LONG_NS)
    yield
    sharing.forget_recent()


def _model(path: Path, weight: int, added: int = 2, data: str = "m.data") -> Path:
    path.parent.mkdir(exist_ok=True)
    save(model(_TEXT.format(weight, added)), path, external_data=True, data_name=data, least_bytes=1024)
    return path


def _made(path: Path, options: SessionOptions | None = None) -> tuple[InferenceSession, bool]:
    """A session of a file, and whether it was made by what was kept."""
    events: list[Event] = []
    with observe(events.append):
        session = InferenceSession(path, options)
    return session, "session.load" not in {event.name for event in events}


def _expected(weight: int, added: int = 2) -> bytes:
    options = SessionOptions()
    options.add_session_config_entry("session.keep_decisions", "0")
    from sardonyx.formats.onnx import to_bytes

    return results(InferenceSession(to_bytes(model(_TEXT.format(weight, added))), options), x=_ROWS)[0].tobytes()


def _overwrite(data: Path, other: Path) -> None:
    data.write_bytes(other.read_bytes())


def _replace(data: Path, other: Path) -> None:
    os.replace(other, data)


def _link(data: Path, other: Path) -> None:
    kept = other.with_name("kept.data")
    os.replace(other, kept)
    data.unlink()
    data.symlink_to(kept.name)


@pytest.mark.usefixtures("_kept")
def test_a_second_session_is_made_by_what_was_kept(tmp_path: Path) -> None:
    """It computes the same bits."""
    path = _model(tmp_path / "m.onnx", 1)
    first, by_kept = _made(path)
    assert not by_kept
    second, by_kept = _made(path)
    assert by_kept
    assert results(second, x=_ROWS)[0].tobytes() == results(first, x=_ROWS)[0].tobytes() == _expected(1)
    assert second.explain() == first.explain()


@pytest.mark.parametrize("change", [_overwrite, _replace, _link])
@pytest.mark.parametrize(("weight", "added"), [(5, 2), (1, 7)])
@pytest.mark.usefixtures("_kept")
def test_weights_are_those_of_the_file_at_hand(
    tmp_path: Path, change: Callable[[Path, Path], None], weight: int, added: int
) -> None:
    """Also where its size and its time are what they were, and whether something was computed of the old weights or not."""
    path, data = _model(tmp_path / "m.onnx", 1), tmp_path / "m.data"
    for _ in range(2):
        _made(path)
    status = data.stat()
    other = _model(tmp_path / "new" / "m.onnx", weight, added).with_name("m.data")
    assert other.stat().st_size == status.st_size
    shutil.move(other, tmp_path / "other.data")
    change(data, tmp_path / "other.data")
    os.utime(data, ns=(status.st_atime_ns, status.st_mtime_ns))
    for _ in range(2):
        assert results(_made(path)[0], x=_ROWS)[0].tobytes() == _expected(weight, added)


@pytest.mark.usefixtures("_kept")
def test_data_that_was_cut_short_is_an_error(tmp_path: Path) -> None:
    """As without what is kept; also where the time is what it was."""
    path, data = _model(tmp_path / "m.onnx", 1), tmp_path / "m.data"
    for _ in range(2):
        _made(path)
    status = data.stat()
    data.write_bytes(data.read_bytes()[:-1])
    os.utime(data, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(InvalidGraph, match="cut short"):
        _made(path)


@pytest.mark.usefixtures("_kept")
def test_a_model_that_was_moved_has_its_own_data(tmp_path: Path) -> None:
    """Found again where nothing else changed; another model of the same message in its place has other data."""
    path = _model(tmp_path / "one" / "m.onnx", 1)
    for _ in range(2):
        _made(path)
    (tmp_path / "one").rename(tmp_path / "two")
    _model(path, 4)
    moved, by_kept = _made(tmp_path / "two" / "m.onnx")
    assert by_kept
    assert results(moved, x=_ROWS)[0].tobytes() == _expected(1)
    assert results(_made(path)[0], x=_ROWS)[0].tobytes() == _expected(4)


@pytest.mark.usefixtures("_kept")
def test_data_of_another_folder_are_found_there(tmp_path: Path) -> None:
    """The folder is an option, and a file there that was replaced is another one."""
    path = _model(tmp_path / "m.onnx", 1)
    (tmp_path / "data").mkdir()
    shutil.move(tmp_path / "m.data", tmp_path / "data" / "m.data")
    options = SessionOptions()
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(tmp_path / "data"))
    _made(path, options)
    second, by_kept = _made(path, options)
    assert by_kept
    assert results(second, x=_ROWS)[0].tobytes() == _expected(1)
    os.replace(_model(tmp_path / "new" / "m.onnx", 6).with_name("m.data"), tmp_path / "data" / "m.data")
    assert results(_made(path, options)[0], x=_ROWS)[0].tobytes() == _expected(6)


@pytest.mark.parametrize("change", [_overwrite, _replace, _link])
def test_sessions_of_a_process_do_not_share_what_has_changed(
    tmp_path: Path, change: Callable[[Path, Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where size and time of the data are what they were."""
    monkeypatch.setattr(known_files, "_SETTLED_NS", 0)
    monkeypatch.setenv("SARDONYX_KEEP_DECISIONS", "1")
    path, data = _model(tmp_path / "m.onnx", 1), tmp_path / "m.data"
    other = _model(tmp_path / "new" / "m.onnx", 8).with_name("m.data")
    first, second = InferenceSession(path), InferenceSession(path)
    assert first._runner.built is second._runner.built
    status = data.stat()
    shutil.move(other, tmp_path / "other.data")
    change(data, tmp_path / "other.data")
    os.utime(data, ns=(status.st_atime_ns, status.st_mtime_ns))
    third = InferenceSession(path)
    assert results(third, x=_ROWS)[0].tobytes() == _expected(8)
    assert results(first, x=_ROWS)[0].tobytes() == _expected(1)


def test_files_that_changed_since_the_load_began_are_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read may have been what was there before."""
    monkeypatch.setattr(known_files, "_SETTLED_NS", 0)
    path, data = _model(tmp_path / "m.onnx", 1), tmp_path / "m.data"
    status = data.stat()
    stamp = (status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev)
    stamps = {path: (0, 0, 0, 0), Path(os.path.realpath(data)): stamp}
    assert data_files(["m.data"], path, None, stamps, status.st_ctime_ns - 1) is None
    found = data_files(["m.data"], path, None, stamps, status.st_ctime_ns)
    assert found is not None
    assert [item.location for item in found] == ["m.data"]
    assert are_as_before(found)
    assert data_files_again(["m.data"], path, None) == found
    data.unlink()
    assert not are_as_before(found)
    assert data_files_again(["m.data"], path, None) is None


def test_files_that_no_tensor_names_are_not_known(tmp_path: Path) -> None:
    """Nor are those that a model may not have."""
    path = tmp_path / "m.onnx"
    assert data_files([], path, None, {path: (0, 0, 0, 0)}, 0) == ()
    assert data_files([], path, None, {path: (0, 0, 0, 0), tmp_path / "other": (0, 0, 0, 0)}, 0) is None
    assert data_paths(["../other", "m.data"], path, None) == [Path(os.path.realpath(tmp_path / "m.data"))]
    assert data_files_again(["../other"], path, None) is None


def test_locations_are_those_of_places_in_other_files() -> None:
    """Each once."""
    assert locations_of([3, ("b", 0, 4), ("a", 0, 4), ("b", 4, 4)]) == ["a", "b"]
