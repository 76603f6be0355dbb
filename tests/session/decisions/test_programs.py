"""Programs that are kept for the next process."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.kept_decisions import folder, made, results
from support.models import model

from sardonyx import GraphOptimizationLevel, InferenceSession, SessionOptions
from sardonyx.cached_blocks import Allocate
from sardonyx.disk_cache import DiskCache, shared_cache
from sardonyx.formats.files import stamp_of
from sardonyx.formats.onnx import to_bytes
from sardonyx.formats.opened import open_model
from sardonyx.providers.cpu.library import library_for
from sardonyx.providers.cpu.provider import CpuProvider
from sardonyx.providers.reference.provider import ReferenceProvider
from sardonyx.session.decisions import known_files, sharing
from sardonyx.session.decisions.known_files import settled_file
from sardonyx.session.decisions.programs import find_programs, programs_key, sample, sample_file, store_programs
from sardonyx.session.decisions.sharing import identity_of
from sardonyx.trace import Event, observe

__all__ = ["folder"]
pytestmark = pytest.mark.usefixtures("folder", "_never_shared")

_TEXT = """graph(x: float[n, 6]) -> (y: float[n, 40]) {{
    w: float[6, 40] = ... {0}
    b: float[40] = ... {1}
    p = Gemm(x, w, b)
    y = Softmax(p)
}}"""
_MODEL = to_bytes(model(_TEXT.format(1, 2)))
_ROWS = np.arange(30, dtype=np.float32).reshape(5, 6) / 8


@pytest.fixture
def _never_shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each session is built by itself, as in a process of its own without kernels, and files count as settled at once."""
    library_for.cache_clear()
    monkeypatch.setattr("sardonyx.session.decisions.keep.find_shared", lambda identity: None)
    monkeypatch.setattr(known_files, "_DIGESTS", {})
    monkeypatch.setattr(known_files, "_SETTLED_NS", 0)
    yield
    sharing.forget_recent()


def _compiles(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The partitions that are compiled from here on, as a list that grows."""
    compiled: list[str] = []
    compile_part = CpuProvider.compile

    def noted(self: CpuProvider, partition: object, bodies: object) -> object:
        compiled.append(str(partition))
        return compile_part(self, partition, bodies)  # type: ignore[arg-type]

    monkeypatch.setattr(CpuProvider, "compile", noted)
    return compiled


def _file(folder: Path) -> Path:
    """The file of programs: the one with the other form."""
    (found,) = [path for path in folder.glob("*.sxo") if path.read_bytes()[:8] == b"SARDONYB"]
    return found


def test_the_next_session_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It computes the same bits for sizes that are known and others, and says the same of itself."""
    first, _ = made(_MODEL)
    compiled = _compiles(monkeypatch)
    second, by_kept = made(_MODEL)
    assert by_kept
    assert not compiled
    for rows in (_ROWS[:1], _ROWS, _ROWS[:2], np.zeros((0, 6), np.float32)):
        assert results(second, x=rows)[0].tobytes() == results(first, x=rows)[0].tobytes()
    assert second.explain() == first.explain()


def test_a_session_keeps_the_programs_that_were_lost(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is a record, and no programs."""
    made(_MODEL)
    _file(folder).unlink()
    compiled = _compiles(monkeypatch)
    made(_MODEL)
    assert len(compiled) == 1
    made(_MODEL)
    assert len(compiled) == 1


def test_programs_are_of_one_file_and_its_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model with other weights has programs of its own."""
    made(_MODEL)
    compiled = _compiles(monkeypatch)
    other = to_bytes(model(_TEXT.format(3, 2)))
    session, _ = made(other)
    assert compiled
    expected = InferenceSession(other, providers=["ReferenceExecutionProvider"]).run(None, {"x": _ROWS})[0]
    np.testing.assert_allclose(results(session, x=_ROWS)[0], expected, rtol=1e-5)


def test_a_large_file_is_known_by_what_nobody_changes_without_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its times, its inode, and samples of its bytes; another name is no other file."""
    monkeypatch.setattr(sharing, "_DIGESTED_BYTES", 100)
    path, copy = tmp_path / "m.onnx", tmp_path / "copy.onnx"
    path.write_bytes(_MODEL)

    def key(of: Path) -> str | None:
        opened = open_model(of, of)
        identity = identity_of(opened, "key", "message")
        return None if identity is None else programs_key(identity, opened)

    first = key(path)
    assert first is not None
    assert key(path) == first
    os.link(path, tmp_path / "link.onnx")
    moved = key(path)
    assert key(tmp_path / "link.onnx") == moved  # a link changes the entry's time, and so the key
    shutil.copy2(path, copy)
    assert key(copy) != moved
    status = path.stat()
    content = bytearray(_MODEL)
    content[-1] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert key(path) != moved


def test_samples_tell_files_of_equal_times_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a file system whose times and inodes say little."""
    monkeypatch.setattr(sharing, "_DIGESTED_BYTES", 100)
    path = tmp_path / "m.onnx"
    path.write_bytes(_MODEL)
    opened = open_model(path, path)
    identity = identity_of(opened, "key", "message")
    assert identity is not None
    first = programs_key(identity, opened)
    path.write_bytes(to_bytes(model(_TEXT.format(3, 2))))
    assert programs_key(identity, open_model(path, path)) != first


@pytest.mark.parametrize("size_bytes", [60 << 10, 100 << 10])
def test_samples_show_changes_at_the_ends(tmp_path: Path, size_bytes: int) -> None:
    """Of a file that is read whole, and of one of which pieces are."""
    path, content, found = tmp_path / "m.bin", bytearray(np.random.default_rng(0).bytes(size_bytes)), set()
    for place in (0, -1, 0):
        path.write_bytes(content)
        status = path.stat()
        one = sample_file((str(path), stamp_of(status), status.st_ctime_ns))
        assert one == sample(lambda begin, count: bytes(content[begin : begin + count]), size_bytes)
        found.add(one)
        content[place] ^= 1
    assert len(found) == 3


def _made_of_file(path: Path) -> tuple[InferenceSession, set[str]]:
    """A session of a file, and the names of the events while it was made."""
    events: list[Event] = []
    with observe(events.append):
        session = InferenceSession(path)
    return session, {event.name for event in events}


def test_a_known_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for samples; the session computes the same, and later ones of the process share with it."""
    path = tmp_path / "m.onnx"
    path.write_bytes(_MODEL)
    expected = results(InferenceSession(path), x=_ROWS)[0].tobytes()
    monkeypatch.setattr(known_files, "_DIGESTS", {})
    monkeypatch.setattr("sardonyx.session.decisions.keep.open_model", lambda *about: pytest.fail("the file was opened"))
    session, names = _made_of_file(path)
    assert "session.restore" in names
    assert results(session, x=_ROWS)[0].tobytes() == expected
    assert "m.onnx" in repr(session)
    monkeypatch.setattr("sardonyx.session.decisions.keep.find_shared", sharing.find_shared)
    assert _made_of_file(path)[0]._runner.built is session._runner.built


def test_a_known_file_that_was_written_to_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where its size and its time are what they were."""
    path = tmp_path / "m.onnx"
    path.write_bytes(_MODEL)
    first = results(InferenceSession(path), x=_ROWS)[0]
    status = path.stat()
    content = to_bytes(model(_TEXT.format(3, 2)))
    assert len(content) == len(_MODEL)
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    monkeypatch.setattr(known_files, "_DIGESTS", {})
    session, names = _made_of_file(path)
    assert "session.restore" not in names
    assert not np.array_equal(results(session, x=_ROWS)[0], first)


def test_what_is_known_of_a_file_depends_on_the_session(tmp_path: Path) -> None:
    """Other options, another way."""
    path = tmp_path / "m.onnx"
    path.write_bytes(_MODEL)
    InferenceSession(path)
    options = SessionOptions()
    options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
    events: list[Event] = []
    with observe(events.append):
        InferenceSession(path, options)
    assert "session.restore" not in {event.name for event in events}


@pytest.mark.parametrize("damage", [b"no marshal", b"N", None])
def test_damage_to_what_is_known_of_a_file_is_passed_over(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes | None
) -> None:
    """As is a file of programs that is gone."""
    path = tmp_path / "m.onnx"
    path.write_bytes(_MODEL)
    InferenceSession(path)
    if damage is None:
        for place in folder.glob("*.sxo"):
            if place.read_bytes()[:8] == b"SARDONYB":
                place.unlink()
    else:
        monkeypatch.setattr(DiskCache, "load_blocks", lambda *about: (damage, memoryview(b"")))
    monkeypatch.setattr(known_files, "_DIGESTS", {})
    assert results(_made_of_file(path)[0], x=_ROWS)[0].shape == (5, 40)


def test_a_sample_is_of_a_regular_file_that_is_still_there(tmp_path: Path) -> None:
    """A folder has none, nor has one that was replaced."""
    path = tmp_path / "m"
    for size in (0, 1, 4095, 4096, 4097, 200_000, (1 << 20) + 1):
        path.write_bytes(bytes(size))
        file = settled_file(path)
        assert file is not None
        assert sample_file(file) == sample(lambda place, count: bytes(count), size)
    path.write_bytes(b"other")
    assert sample_file(file) is None
    path.unlink()
    assert sample_file(file) is None
    of_folder = settled_file(tmp_path)
    assert of_folder is not None
    assert sample_file(of_folder) is None


@pytest.mark.parametrize("size", [1, 4096, 70_000, 200_001])
def test_a_sample_of_a_small_file_is_of_all_of_it(size: int) -> None:
    """A byte that changes anywhere shows."""
    content = bytes(size)
    whole = sample(lambda place, count: content[place : place + count], size)
    for place in {0, size // 2, size - 1}:
        changed = content[:place] + b"x" + content[place + 1 :]
        assert sample(lambda begin, count, changed=changed: changed[begin : begin + count], size) != whole


def test_small_programs_lie_with_what_is_known_of_their_file(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later process reads one file; those of a model with files beside it are found by these too, and lie apart."""
    path = tmp_path / "m.onnx"
    path.write_bytes(_MODEL)
    _made_of_file(path)
    monkeypatch.setattr("sardonyx.session.decisions.rebuild.find_programs", lambda key: pytest.fail("a second file was read"))
    monkeypatch.setattr(known_files, "_DIGESTS", {})
    _, names = _made_of_file(path)
    assert "session.restore" in names


def test_a_damaged_file_of_programs_is_left_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session is made by the record, and the file is made anew."""
    first, _ = made(_MODEL)
    expected = results(first, x=_ROWS)[0].tobytes()
    size = _file(folder).stat().st_size
    compiled = _compiles(monkeypatch)
    for number, place in enumerate((0, 50, 110, size // 2, size - 1)):
        content = bytearray(_file(folder).read_bytes())
        content[place] ^= 1
        _file(folder).write_bytes(content)
        session, by_kept = made(_MODEL)
        assert by_kept
        assert results(session, x=_ROWS)[0].tobytes() == expected
        assert len(compiled) == number + 1


def test_programs_that_cannot_be_restored_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong with them; the event says what."""
    made(_MODEL)

    def fails(self: CpuProvider, kept: object) -> object:
        raise ValueError("no")

    monkeypatch.setattr(CpuProvider, "restore", fails)
    events: list[Event] = []
    with observe(events.append):
        session, by_kept = made(_MODEL)
    assert by_kept
    assert results(session, x=_ROWS)[0].shape == (5, 40)
    assert [event.details["error"] for event in events if event.name == "decisions.failed"] == ["ValueError: no"]


def test_a_few_nodes_of_the_reference_provider_are_kept_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """With constants and attributes of texts: those that stand around a classifier."""
    content = to_bytes(
        model(
            "graph(x: float[n, 6]) -> (y) { w: float[6, 2] = ... 1\n p = MatMul(x, w) "
            's = Softmax(p) y = ai.onnx.ml.ZipMap:1(s) {classlabels_strings = ["no", "yes"]} }'
        )
    )
    first, _ = made(content)
    compiled = _compiles(monkeypatch)
    monkeypatch.setattr(ReferenceProvider, "compile", None)
    second, by_kept = made(content)
    assert by_kept
    assert not compiled
    assert second.run(None, {"x": _ROWS}) == first.run(None, {"x": _ROWS})
    assert second.explain() == first.explain()


def test_many_nodes_of_the_reference_provider_are_not_kept(folder: Path) -> None:
    """They are made of partitions."""
    nodes = "\n".join(f"x{number} = StringNormalizer(x{number - 1})" for number in range(1, 34))
    made(to_bytes(model(f"graph(x0: string[2]) -> (x33: string[2]) {{ {nodes} }}")))
    assert not [path for path in folder.glob("*.sxo") if path.read_bytes()[:8] == b"SARDONYB"]


def test_control_flow_is_kept() -> None:
    """Branches, loops of as many iterations as runs say, and scans within them."""
    content = to_bytes(
        model(
            """graph(m: int64[], c: bool[], x: float[n, 4]) -> (y: float[n, 4]) {
            go: bool[] = 1
            z: float[4] = [0, 0, 0, 0]
            y = Loop(m, go, x) {body = graph(i: int64[], d: bool[], a: float[n, 4]) -> (e, b) {
                e = Identity(d)
                s, r = Scan(z, a) {num_scan_inputs = 1, body = graph(p: float[4], q: float[4]) -> (t, u) { t = Add(p, q)
                    u = Mul(t, t) }}
                b = If(c) {then_branch = graph() -> (f) { f = Add(r, x) }, else_branch = graph() -> (g) { g = Sub(a, s) }} }} }"""
        )
    )
    first, _ = made(content)
    second, by_kept = made(content)
    assert by_kept
    for size, count, chosen in [(1, 0, True), (3, 2, True), (5, 4, False), (2, 3, True)]:
        feed = {"m": np.array(count), "c": np.array(chosen), "x": np.linspace(-1, 1, 4 * size, dtype=np.float32).reshape(size, 4)}
        expected, found = results(first, **feed)[0], results(second, **feed)[0]
        assert expected.tobytes() == found.tobytes()


def test_much_is_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than an eighth of what the cache may hold."""
    monkeypatch.setenv("SARDONYX_CACHE_BYTES", "8000")
    shared_cache.cache_clear()
    made(_MODEL)
    assert not [path for path in folder.glob("*.sxo") if path.read_bytes()[:8] == b"SARDONYB"]


def test_constants_are_read_only_and_aligned() -> None:
    """They lie in one block and begin at cache lines, as kernels like it; nobody writes to them."""
    session = InferenceSession(_MODEL)
    (step,) = session._runner.built.plans[0].steps
    provider = next(item for item in session._runner.built.providers.all if isinstance(item, CpuProvider))
    assert store_programs("ab" * 32, lambda: (1, "outline"), [("name", ("fact",))], [(provider, step.program)])  # type: ignore[union-attr]
    found = find_programs("ab" * 32)
    assert found is not None
    assert (found.outline, found.facts) == ((1, "outline"), (("name", ("fact",)),))
    ((name, kept),) = found.programs
    assert name == provider.name
    assert all(array.ctypes.data % 64 == 0 and not array.flags.writeable for array in kept.arrays)
    assert find_programs("cd" * 32) is None


def test_a_large_model_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each session of one that is too large to be kept would else try."""
    monkeypatch.setenv("SARDONYX_CACHE_BYTES", "8000")
    shared_cache.cache_clear()
    monkeypatch.setattr(CpuProvider, "keep", lambda self, program: pytest.fail("a program was taken apart"))
    assert made(_MODEL)


def test_large_programs_are_not_read_to_keep_what_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """They would take the memory of all weights once more while the first session is made."""
    path = tmp_path / "wide.onnx"
    path.write_bytes(to_bytes(model(_TEXT.replace("40", "60000").format(1, 2))))
    read: list[int] = []
    load_blocks = DiskCache.load_blocks

    def noted(self: DiskCache, key: str, allocate: Allocate) -> tuple[bytes, memoryview] | None:
        found = load_blocks(self, key, allocate)
        read.append(0 if found is None else len(found[1]))
        return found

    monkeypatch.setattr(DiskCache, "load_blocks", noted)
    InferenceSession(path)
    assert max(read) < 1 << 20
    InferenceSession(path)
    assert max(read) > 1 << 20
