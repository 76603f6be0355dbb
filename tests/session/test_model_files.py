"""Sessions and the files of their models, which change, or go, at any time."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.models import model

import sardonyx as ort
from sardonyx.dtypes import Array, DataType
from sardonyx.errors import Fail
from sardonyx.formats.files import stamp_of
from sardonyx.formats.onnx import save
from sardonyx.ir import KeptSource, SparseTensor, Tensor
from sardonyx.session.model_files import check_unchanged, read_attributes
from sardonyx.trace import Event, observe

LARGE = """graph(i: int64[n], x: float[n, 512]) -> (picked: float[n, 256], y: float[n, 4096], z: float[n, 512]) {{
    table: float[5000, 256] = ... {seed}
    w: float[512, 4096] = ... {seed}
    scale: float[512] = ... {seed}
    picked = Gather(table, i)
    y = MatMul(x, w)
    z = Mul(x, scale)
}}"""
"""12 MiB: a table that is read in each run, a matrix that is packed, and a vector."""
FEED: dict[str, Any] = {"i": np.int64([4999, 0, 2500]), "x": np.random.default_rng(1).standard_normal((3, 512)).astype(np.float32)}


def _truncate(path: Path, other: Path) -> None:
    os.truncate(path, 100)


def _empty(path: Path, other: Path) -> None:
    path.write_bytes(b"")


def _overwrite(path: Path, other: Path) -> None:
    with path.open("r+b") as file, other.open("rb") as source:
        shutil.copyfileobj(source, file)


def _rename(path: Path, other: Path) -> None:
    other.replace(path)


def _delete(path: Path, other: Path) -> None:
    path.unlink()


CHANGES = [_truncate, _empty, _overwrite, _rename, _delete]


@pytest.fixture(params=[False, True], ids=["inside", "external"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path, Path]:
    """A model, and the file of its data with another of the same size."""
    path, other = tmp_path / "m.onnx", tmp_path / "other.onnx"
    for target, seed in ((path, 1), (other, 2)):
        save(model(LARGE.format(seed=seed)), target, external_data=request.param)
    suffix = ".data" if request.param else ""
    return path, tmp_path / f"m.onnx{suffix}", tmp_path / f"other.onnx{suffix}"


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("provider", ["CPUExecutionProvider", "ReferenceExecutionProvider"])
def test_a_session_runs_on_whatever_happens_to_its_files(
    files: tuple[Path, Path, Path], change: Callable[[Path, Path], None], provider: str
) -> None:
    """Results stay the same after the file was cut short, overwritten, replaced or deleted, also for shapes not seen before."""
    path, data, other = files
    held = ort.InferenceSession(path, providers=[provider])
    before = held.run(None, FEED)
    one = held.run(None, {name: array[:1] for name, array in FEED.items()})
    held = ort.InferenceSession(path, providers=[provider])
    change(data, other)
    assert all(np.array_equal(*pair) for pair in zip(before, held.run(None, FEED), strict=True))
    after = held.run(None, {name: array[:1] for name, array in FEED.items()})
    assert all(np.array_equal(*pair) for pair in zip(one, after, strict=True))


@pytest.mark.parametrize("change", [_truncate, _empty, _overwrite])
def test_a_file_that_is_written_to_while_a_session_is_made_is_an_error(
    files: tuple[Path, Path, Path], change: Callable[[Path, Path], None]
) -> None:
    """The error names the file and the remedy; the process lives."""
    path, data, other = files

    def meddle(event: Event) -> None:
        if event.name == "session.load":
            change(data, other)

    with observe(meddle), pytest.raises(Fail, match=rf"{data.name}' was written to while it was being loaded: .*os\.replace"):
        ort.InferenceSession(path)


@pytest.mark.parametrize("change", [_rename, _delete])
def test_a_file_that_is_replaced_while_a_session_is_made_is_read_to_its_end(
    files: tuple[Path, Path, Path], change: Callable[[Path, Path], None]
) -> None:
    """A new file under the old name, or none, does not disturb: the session is of the old file."""
    path, data, other = files
    expected = ort.InferenceSession(path).run(None, FEED)

    def meddle(event: Event) -> None:
        if event.name == "session.load":
            change(data, other)

    with observe(meddle):
        held = ort.InferenceSession(path)
    assert all(np.array_equal(*pair) for pair in zip(expected, held.run(None, FEED), strict=True))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux's list of open files")
def test_a_session_keeps_no_file_open(files: tuple[Path, Path, Path]) -> None:
    """Neither a descriptor nor a mapping of the model's files is left when the session is made."""
    path, data, _ = files
    held = ort.InferenceSession(path)
    links = [os.readlink(link) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    assert not {str(path), str(data)} & set(links)
    assert str(data) not in Path("/proc/self/maps").read_text(encoding="utf-8")
    assert held.run(None, FEED)


def test_mapped_weights_are_asked_for_by_the_environment(files: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """SARDONYX_MAP_WEIGHTS=1 shares the pages of the file, and computes the same."""
    path, data, _ = files
    expected = ort.InferenceSession(path).run(None, FEED)
    monkeypatch.setenv("SARDONYX_MAP_WEIGHTS", "1")
    held = ort.InferenceSession(path)
    if Path("/proc/self/maps").exists():
        assert str(data) in Path("/proc/self/maps").read_text(encoding="utf-8")
    assert all(np.array_equal(*pair) for pair in zip(expected, held.run(None, FEED), strict=True))


@pytest.mark.parametrize("change", CHANGES)
def test_a_session_that_needs_its_model_again_never_mixes_two(tmp_path: Path, change: Callable[[Path, Path], None]) -> None:
    """A run that needs the model built anew says that its file is another one now, or gone."""
    path, other = tmp_path / "m.onnx", tmp_path / "other.onnx"
    for target, operator in ((path, "Add"), (other, "Sub")):
        save(model(f"graph(x: float[n], y: float[n]) -> (z: float[m]) {{\nz = {operator}(x, y)\n}}"), target)
    held = ort.InferenceSession(path)
    feed = {"x": np.float32([1, 2, 3]), "y": np.float32([1])}
    change(path, other)
    with pytest.raises(Fail, match=r"has to read its model again .*m\.onnx' (is gone|was replaced or written to) since"):
        held.run(None, feed)
    assert held.run(None, {"x": feed["x"], "y": feed["x"]})[0].tolist() == [2, 4, 6]


def test_a_model_that_is_as_it_was_is_read_again(tmp_path: Path) -> None:
    """A run that needs the model built anew has it."""
    path = tmp_path / "m.onnx"
    save(model("graph(x: float[n], y: float[n]) -> (z: float[m]) {\nz = Add(x, y)\n}"), path)
    held = ort.InferenceSession(path)
    assert held.run(None, {"x": np.float32([1, 2, 3]), "y": np.float32([1])})[0].tolist() == [2, 3, 4]


def test_unchanged_files_pass(tmp_path: Path) -> None:
    """A stamp that still holds raises nothing; one of a file that is gone does."""
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    stamps = {path: stamp_of(path.stat())}
    check_unchanged(stamps)
    path.unlink()
    with pytest.raises(Fail, match="is gone since"):
        check_unchanged(stamps)


def test_tensors_of_attributes_are_read() -> None:
    """Of all kinds, at every depth: afterwards nothing asks their source."""
    asked: list[int] = []

    class Source(KeptSource):
        def __call__(self) -> Array:
            asked.append(1)
            return np.zeros(2, np.float32)

    def stored() -> Tensor:
        return Tensor(DataType.FLOAT, (2,), Source())

    held = model("""graph(c: bool[]) -> (y: float[2]) {
        y = If(c) {then_branch = graph() -> (t) {
            t = Constant() {value: float[2] = [0, 0]}
        }, else_branch = graph() -> (e) {
            e = Constant() {value: float[2] = [0, 0]}
        }}
    }""")
    tensors = [stored() for _ in range(4)]
    (branch,) = held.graph
    first, second = (next(iter(graph)) for graph in branch.subgraphs)
    first.attributes["value"].value = tensors[0]
    second.attributes["value"].value = (SparseTensor(tensors[1], tensors[2], (4,)), tensors[3])
    read_attributes(held.graph)
    assert len(asked) == 4
    for tensor in tensors:
        tensor.release()
        tensor.numpy()
    assert len(asked) == 4
