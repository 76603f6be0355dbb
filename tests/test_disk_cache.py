"""What can happen to a folder of compiled objects, and that none of it is an error."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from support.models import model
from support.users import STRANGER, needs_root

from sardonyx.disk_cache import DiskCache, Survey
from sardonyx.formats.onnx import to_bytes

KEY = "ab" * 32
OTHER = "cd" * 32


@pytest.fixture
def events() -> list[str]:
    """The names of the events that the cache reports."""
    return []


@pytest.fixture
def cache(tmp_path: Path, events: list[str]) -> DiskCache:
    """An empty cache of at most 10,000 bytes."""
    return DiskCache(tmp_path / "objects", limit_bytes=10_000, report=lambda event, _: events.append(event))


def _file(cache: DiskCache) -> Path:
    return cache.folder / f"{KEY}.sxo"


def test_what_was_stored_is_loaded(cache: DiskCache, events: list[str]) -> None:
    """A second cache on the same folder finds the object."""
    assert cache.load(KEY) is None
    cache.store(KEY, b"code")
    assert DiskCache(cache.folder).load(KEY) == b"code"
    assert events == ["disk_cache.miss"]


def test_the_size_of_a_file_is_known_without_reading_it(cache: DiskCache) -> None:
    """It is 0 where there is none."""
    assert cache.size_bytes(KEY) == 0
    cache.store(KEY, b"code")
    assert cache.size_bytes(KEY) == _file(cache).stat().st_size > 4


def test_the_folder_is_private(cache: DiskCache) -> None:
    """Only its owner may enter the folder."""
    cache.store(KEY, b"code")
    assert cache.folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("damage", [b"", b"SARDONYX", b"foreign file", None])
def test_a_damaged_file_is_a_miss_and_goes(cache: DiskCache, events: list[str], damage: bytes | None) -> None:
    """A truncated, foreign or altered file is reported, deleted and never loaded."""
    cache.store(KEY, b"code" * 100)
    content = _file(cache).read_bytes()
    _file(cache).write_bytes(content[:-1] + b"!" if damage is None else damage)
    assert cache.load(KEY) is None
    assert events[-1] == "disk_cache.corrupt"
    assert not _file(cache).exists()


def test_a_file_under_another_name_is_not_trusted(cache: DiskCache, events: list[str]) -> None:
    """The key is part of what the checksum covers."""
    cache.store(OTHER, b"code")
    (cache.folder / f"{OTHER}.sxo").rename(_file(cache))
    assert cache.load(KEY) is None
    assert events[-1] == "disk_cache.corrupt"


def test_a_folder_that_others_can_write_is_not_used(cache: DiskCache, events: list[str]) -> None:
    """Nobody else can make us run his code."""
    cache.store(KEY, b"code")
    cache.folder.chmod(0o777)
    assert cache.load(KEY) is None
    cache.store(OTHER, b"code")
    assert events == ["disk_cache.not_private"]
    assert not list(cache.folder.glob(f"{OTHER}*"))


def test_a_folder_that_others_can_write_is_not_cleared(cache: DiskCache) -> None:
    """What lies there may be anybody's."""
    cache.store(KEY, b"code")
    cache.folder.chmod(0o777)
    assert cache.clear() == (0, 0)
    assert len(list(cache.folder.iterdir())) == 1


def test_a_path_that_cannot_be_written_is_reported(tmp_path: Path, events: list[str]) -> None:
    """A read-only or full disk costs the cache, not the session; of what holds for every object one event says so."""
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    cache = DiskCache(blocked / "objects", report=lambda event, _: events.append(event))
    for key in (KEY, OTHER):
        cache.store(key, b"code")
        assert cache.load(KEY) is None
    assert events == ["disk_cache.unwritable", "disk_cache.unreadable"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is always full")
def test_a_full_disk_leaves_no_file(cache: DiskCache, events: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that fails in the middle is undone and reported."""
    full = os.open("/dev/full", os.O_WRONLY)
    opened = os.fdopen
    monkeypatch.setattr(os, "fdopen", lambda handle, mode: opened(os.dup2(full, handle), mode))
    cache.store(KEY, b"code" * 1000)
    assert events == ["disk_cache.unwritable"]
    assert list(cache.folder.iterdir()) == []
    os.close(full)


def test_the_objects_used_longest_ago_go_first(cache: DiskCache) -> None:
    """A load counts as use; the bound holds after every write."""
    keys = [f"{number:064x}" for number in range(4)]
    for age, key in enumerate(keys[:3]):
        cache.store(key, bytes(2700))
        os.utime(cache.folder / f"{key}.sxo", (age, age))
    assert cache.load(keys[0]) is not None
    cache.store(keys[3], bytes(2700))
    assert [cache.load(key) is not None for key in keys] == [True, False, True, True]


def _allocate(size_bytes: int) -> memoryview:
    return memoryview(bytearray(size_bytes))


def test_data_beside_an_object_is_loaded(cache: DiskCache, events: list[str]) -> None:
    """One piece behind the other, in memory of the caller's."""
    assert cache.load_blocks(KEY, _allocate) is None
    cache.store_blocks(KEY, b"head", [memoryview(b"ab"), memoryview(b"c")])
    assert DiskCache(cache.folder).load_blocks(KEY, _allocate) == (b"head", b"abc")
    assert events == ["disk_cache.miss"]


def test_damaged_data_beside_an_object_is_a_miss_and_goes(cache: DiskCache, events: list[str]) -> None:
    """So is an object of the other form."""
    for damage in (b"!", b""):
        cache.store_blocks(KEY, b"head", [memoryview(b"abc")])
        _file(cache).write_bytes(_file(cache).read_bytes()[:-1] + damage)
        assert cache.load_blocks(KEY, _allocate) is None
        assert events[-1] == "disk_cache.corrupt"
        assert not _file(cache).exists()
    cache.store(KEY, b"code")
    assert cache.load_blocks(KEY, _allocate) is None
    cache.store_blocks(KEY, b"head", [])
    assert cache.load(KEY) is None


def test_an_object_with_much_beside_it_is_not_kept(cache: DiskCache, events: list[str]) -> None:
    """It may take an eighth of what all may."""
    assert cache.keeps_blocks(1250)
    assert not cache.keeps_blocks(1251)
    cache.store_blocks(KEY, b"", [memoryview(bytes(1251))])
    assert events == ["disk_cache.too_large"]
    assert not cache.folder.exists()


def test_a_survey_knows_both_forms(cache: DiskCache) -> None:
    """What is whole, and what is not."""
    cache.store(KEY, b"code")
    cache.store_blocks(OTHER, b"head", [memoryview(b"abc")])
    assert cache.survey(check=True).damaged == 0
    path = cache.folder / f"{OTHER}.sxo"
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    assert cache.survey(check=True).damaged == 1


def test_large_objects_go_before_small_ones(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were used longest ago first, but never the one that was just written."""
    monkeypatch.setattr("sardonyx.disk_cache._LARGE_BYTES", 2000)
    keys = [f"{number:064x}" for number in range(5)]
    for age, (key, size) in enumerate(zip(keys, (900, 3000, 900, 3000, 3000), strict=True)):
        cache.store(key, bytes(size))
        if age < 4:
            os.utime(cache.folder / f"{key}.sxo", (age, age))
    assert [cache.load(key) is not None for key in keys] == [True, False, True, True, True]


def test_what_was_just_written_stays(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it is the only large object."""
    monkeypatch.setattr("sardonyx.disk_cache._LARGE_BYTES", 2000)
    for number in range(9):
        cache.store(f"{number:064x}", bytes(900))
        os.utime(cache.folder / f"{number:064x}.sxo", (number, number))
    cache.store(KEY, bytes(3000))
    assert cache.load(KEY) is not None


def test_a_full_folder_is_made_emptier_than_it_must_be(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the writes that follow need not read it again; of many small files as of few large ones."""
    for number in range(12):
        cache.store(f"{number:064x}", bytes(900))
    assert sum(path.stat().st_size for path in cache.folder.glob("*")) <= 8_750
    monkeypatch.setattr("sardonyx.disk_cache._MOST_FILES", 8)
    DiskCache(cache.folder, limit_bytes=10_000).store("f" * 64, b"new")
    assert len(list(cache.folder.glob("*"))) == 7
    assert cache.load("f" * 64) == b"new"


def test_an_object_beyond_the_bound_is_not_kept(cache: DiskCache, events: list[str]) -> None:
    """One object never evicts all others."""
    cache.store(KEY, bytes(20_000))
    assert events == ["disk_cache.too_large"]
    assert not cache.folder.exists()


def test_many_writers_of_one_key_leave_a_whole_file(cache: DiskCache) -> None:
    """A reader among concurrent writers sees one whole object or none."""
    seen: list[bytes | None] = []

    def work(letter: bytes) -> None:
        for _ in range(30):
            cache.store(KEY, letter * 5000)
            seen.append(cache.load(KEY))

    threads = [threading.Thread(target=work, args=(letter,)) for letter in (b"a", b"b", b"c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    whole = [letter * 5000 for letter in (b"a", b"b", b"c")]
    assert all(content in whole for content in seen if content is not None)
    assert cache.load(KEY) in whole


def test_what_is_not_the_caches_own_is_never_deleted(cache: DiskCache) -> None:
    """However old it is, and however full the folder."""
    cache.store(KEY, b"code")
    other = cache.folder / "context.key"
    other.write_bytes(b"k" * 20_000)
    os.utime(other, (0, 0))
    DiskCache(cache.folder, limit_bytes=400).store(OTHER, b"code" * 60)
    assert other.exists()
    assert not _file(cache).exists()


@needs_root
def test_an_object_of_another_user_is_not_loaded(cache: DiskCache, events: list[str]) -> None:
    """Nor one in a folder below one of his: he could have put code there."""
    cache.store(KEY, b"code")
    os.chown(_file(cache), STRANGER, STRANGER)
    assert cache.load(KEY) is None
    os.chown(_file(cache), 0, 0)
    assert cache.load(KEY) == b"code"
    os.chown(cache.folder.parent, STRANGER, STRANGER)
    assert cache.load(KEY) is None
    cache.store(OTHER, b"code")
    assert events == ["disk_cache.not_private", "disk_cache.hit", "disk_cache.not_private"]


_STRANGER_WITHOUT_HOME = """
import sys
import numpy as np
import sardonyx
from sardonyx.trace import observe

events = []
with observe(lambda event: events.append(event.name)):
    for _ in range(2):
        session = sardonyx.InferenceSession(sys.argv[1])
        assert session.run(None, {"x": np.float32([-1, 2])})[0].tolist() == [0, 3]
assert [name for name in events if name.startswith("disk_cache")] == ["disk_cache.off"], events
"""


@needs_root
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="util-linux is not installed")
@pytest.mark.parametrize("stdin", ["open", "closed"])
def test_a_user_without_a_home_runs_models_without_a_cache(stdin: str) -> None:
    """Nobody that the system knows, with an empty environment; one event says that there is no cache."""
    small = model("graph(x: float[2]) -> (y: float[2]) {\nk: float[2] = [0, 1]\na = Relu(x)\ny = Add(a, k)\n}")
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        file.write(to_bytes(small))
        file.flush()
        os.chmod(file.name, 0o644)
        # the interpreter may lie where this user alone may read; the stranger may read all, and write nothing
        user = [
            "setpriv",
            f"--reuid={STRANGER}",
            "--clear-groups",
            "--inh-caps=+dac_read_search",
            "--ambient-caps=+dac_read_search",
        ]
        path = os.pathsep.join(path for path in sys.path if path)
        command = [
            *user,
            "env",
            "-i",
            "PATH=/usr/bin:/bin",
            f"PYTHONPATH={path}",
            sys.executable,
            "-c",
            _STRANGER_WITHOUT_HOME,
            file.name,
        ]
        closing = "exec 0<&-; " if stdin == "closed" else ""
        done = subprocess.run(["sh", "-c", f'{closing}exec "$@"', "sh", *command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_survey_counts_objects(tmp_path: Path) -> None:
    """Their bytes too; with a check also those that are damaged."""
    cache = DiskCache(tmp_path / "c")
    assert cache.survey() == Survey("", 0, 0, 0)
    for number in range(3):
        cache.store(f"{number:064}", b"object")
    path = tmp_path / "c" / f"{1:064}.sxo"
    assert cache.survey() == Survey("", 3, 3 * path.stat().st_size, None)
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert cache.survey(check=True).damaged == 1
    assert len(list((tmp_path / "c").iterdir())) == 3


def test_a_survey_says_why_a_folder_is_not_used(tmp_path: Path) -> None:
    """Others can write into it, or it is no folder."""
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    assert "can be written by others" in DiskCache(tmp_path / "open").survey().problem
    (tmp_path / "file").write_text("")
    assert DiskCache(tmp_path / "file").survey().problem


def test_clearing_deletes_objects_only(tmp_path: Path) -> None:
    """Whatever else lies there stays, and the cache goes on."""
    cache = DiskCache(tmp_path / "c")
    cache.store("a" * 64, b"object")
    (tmp_path / "c" / "key").write_text("secret")
    size = (tmp_path / "c" / f"{'a' * 64}.sxo").stat().st_size
    assert cache.clear() == (1, size)
    assert [path.name for path in (tmp_path / "c").iterdir()] == ["key"]
    cache.store("a" * 64, b"object")
    assert cache.load("a" * 64) == b"object"
    assert DiskCache(tmp_path / "none").clear() == (0, 0)


def test_no_byte_of_a_file_can_change_what_is_loaded(cache: DiskCache) -> None:
    """Each one in turn, and each length that it can be cut to."""
    cache.store(KEY, b"code" * 16)
    path = _file(cache)
    whole = path.read_bytes()
    damaged = [whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :] for place in range(len(whole))]
    for content in (*damaged, *(whole[:length] for length in range(len(whole))), whole + b"\0"):
        path.write_bytes(content)
        path.chmod(0o600)
        assert cache.load(KEY) is None
    path.write_bytes(whole)
    path.chmod(0o600)
    assert cache.load(KEY) == b"code" * 16
