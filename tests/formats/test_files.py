"""Files as memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sardonyx.errors import Fail, InvalidArgument, NoSuchFile
from sardonyx.formats.files import FileContent, MemoryContent, map_file, open_content, read_file, stamp_of

BIG = 5 << 20


@pytest.mark.parametrize("size_bytes", [0, 1, BIG])
def test_the_view_holds_the_bytes(tmp_path: Path, size_bytes: int) -> None:
    """An empty, a small and a mapped file give their content, read-only."""
    path = tmp_path / "file"
    content = os.urandom(size_bytes)
    path.write_bytes(content)
    view = map_file(path, "file")
    assert view == content
    assert view.readonly


def test_a_mapping_outlives_the_name_of_its_file(tmp_path: Path) -> None:
    """Deleting the file leaves the bytes readable."""
    path = tmp_path / "file"
    path.write_bytes(b"a" * BIG)
    view = map_file(path, "file")
    path.unlink()
    assert bytes(view[-3:]) == b"aaa"


def test_a_missing_file_is_no_such_file(tmp_path: Path) -> None:
    """The error names the path and is a FileNotFoundError too."""
    with pytest.raises(FileNotFoundError, match=r"model file '.*gone\.onnx' does not exist") as caught:
        map_file(tmp_path / "gone.onnx", "model file")
    assert isinstance(caught.value, NoSuchFile)


def test_a_url_is_no_file(tmp_path: Path) -> None:
    """The error says that nothing is fetched."""
    with pytest.raises(NoSuchFile, match="does not exist; nothing is fetched by URL, download it"):
        map_file(Path("https://example.com/model.onnx"), "model file")


def test_a_file_used_as_a_folder_is_no_such_file(tmp_path: Path) -> None:
    """A path through a file leads nowhere."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NoSuchFile):
        map_file(tmp_path / "file" / "inner", "file")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    """The message says what was found."""
    with pytest.raises(InvalidArgument, match="is a folder; expected a regular file"):
        map_file(tmp_path, "model file")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_neither_blocks_nor_opens(tmp_path: Path) -> None:
    """A named pipe without a writer is refused at once."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidArgument, match="is a pipe"):
        map_file(tmp_path / "pipe", "file")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs /dev/zero")
def test_a_device_is_refused() -> None:
    """An endless device is not read."""
    with pytest.raises(InvalidArgument, match="is a device"):
        map_file(Path("/dev/zero"), "file")


def test_a_name_with_a_null_character_is_refused() -> None:
    """What can be no file name is an invalid argument."""
    with pytest.raises(InvalidArgument, match="is no file name"):
        map_file(Path("a\0b"), "file")


def test_a_link_is_followed_only_where_allowed(tmp_path: Path) -> None:
    """`follow_links=False` refuses a path that is itself a link."""
    (tmp_path / "file").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("file")
    assert map_file(tmp_path / "link", "file") == b"abc"
    with pytest.raises(InvalidArgument, match="symbolic link"):
        map_file(tmp_path / "link", "file", follow_links=False)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_forbidden_file_says_so(tmp_path: Path) -> None:
    """Without permission the error asks for it."""
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    path.chmod(0)
    with pytest.raises(Fail, match="grant read permission"):
        map_file(path, "file")


def test_a_name_that_is_too_long_fails(tmp_path: Path) -> None:
    """What the system refuses for another reason is passed on with its words."""
    with pytest.raises(Fail, match="cannot be read"):
        map_file(tmp_path / ("n" * 5000), "file")


def test_descriptors_are_closed(tmp_path: Path) -> None:
    """Neither success nor refusal leaves a file open."""
    folder = Path("/proc/self/fd")
    if not folder.exists():
        pytest.skip("needs /proc")
    (tmp_path / "file").write_bytes(b"abc")
    before = len(list(folder.iterdir()))
    for _ in range(20):
        map_file(tmp_path / "file", "file")
        with pytest.raises(InvalidArgument):
            map_file(tmp_path, "file")
    assert len(list(folder.iterdir())) == before


@pytest.mark.parametrize("size_bytes", [0, 1, BIG])
def test_content_is_had_by_pieces(tmp_path: Path, size_bytes: int) -> None:
    """An empty, a small and a large file give any of their bytes, read-only."""
    path = tmp_path / "file"
    whole = os.urandom(size_bytes)
    path.write_bytes(whole)
    content, stamp = open_content(path, "file")
    assert len(content) == size_bytes
    assert stamp == stamp_of(path.stat())
    for offset, count in ((0, size_bytes), (size_bytes // 3, size_bytes // 2), (size_bytes, 0)):
        piece = content.read(offset, count)
        assert piece == whole[offset : offset + count]
        assert piece.readonly


def test_small_files_are_read_at_once(tmp_path: Path) -> None:
    """What happens to a small file afterwards changes nothing."""
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    content, _ = open_content(path, "file")
    path.write_bytes(b"")
    assert isinstance(content, MemoryContent)
    assert content.read(1, 2) == b"bc"


@pytest.mark.parametrize("size_bytes", [BIG - 1, BIG, BIG + 1, 0])
def test_a_file_that_is_written_to_is_an_error(tmp_path: Path, size_bytes: int) -> None:
    """Whether it is shorter, as long as before or longer: no piece of it is read any more."""
    path = tmp_path / "file"
    path.write_bytes(b"a" * BIG)
    content, _ = open_content(path, "data file")
    assert content.read(0, 10) == b"a" * 10
    os.utime(path, ns=(0, 0))
    path.write_bytes(b"b" * size_bytes)
    with pytest.raises(Fail, match=rf"data file '.*file' was written to .* had {BIG} bytes .* has {size_bytes} now; .*os\.replace"):
        content.read(0, 10)


def test_a_file_that_is_replaced_is_read_on(tmp_path: Path) -> None:
    """Another file under its name, or none, is not the file that is open."""
    path = tmp_path / "file"
    path.write_bytes(b"a" * BIG)
    content, stamp = open_content(path, "file")
    (tmp_path / "other").write_bytes(b"b" * BIG)
    (tmp_path / "other").replace(path)
    assert content.read(BIG - 2, 2) == b"aa"
    assert stamp_of(path.stat()) != stamp
    path.unlink()
    assert content.read(0, 2) == b"aa"


def test_what_was_read_outlives_file_and_content(tmp_path: Path) -> None:
    """A piece is memory of the process's own."""
    path = tmp_path / "file"
    path.write_bytes(b"a" * BIG)
    piece = open_content(path, "file")[0].read(0, BIG)
    path.write_bytes(b"")
    assert piece == b"a" * BIG


def test_a_system_that_reads_at_no_place_reads_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `os.preadv` the file is sought and read."""
    path = tmp_path / "file"
    whole = os.urandom(BIG)
    path.write_bytes(whole)
    monkeypatch.delattr(os, "preadv", raising=False)
    assert open_content(path, "file")[0].read(3, BIG - 5) == whole[3:-2]


def test_large_files_are_mapped_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SARDONYX_MAP_WEIGHTS=1 has the pages of the file shared."""
    path = tmp_path / "file"
    path.write_bytes(b"a" * BIG)
    assert isinstance(open_content(path, "file")[0], FileContent)
    monkeypatch.setenv("SARDONYX_MAP_WEIGHTS", "1")
    content, _ = open_content(path, "file")
    assert isinstance(content, MemoryContent)
    assert content.read(BIG - 1, 1) == b"a"


def test_a_file_is_read_as_it_was_though_it_grows(tmp_path: Path) -> None:
    """What is behind its end when it is opened belongs to others."""
    path = tmp_path / "file"
    path.write_bytes(bytes(5 << 20))
    view = read_file(path, "file")
    with path.open("ab") as stream:
        stream.write(b"more")
    os.truncate(path, 0)
    assert view == bytes(5 << 20)


def test_a_growing_file_that_is_cut_short_is_an_error(tmp_path: Path) -> None:
    """Between its opening and a read of it."""
    path = tmp_path / "file"
    path.write_bytes(bytes(100))
    content = FileContent(os.open(path, os.O_RDONLY), stamp_of(path.stat()), "file", may_grow=True)
    with path.open("ab") as stream:
        stream.write(b"more")
    assert content.read(0, 100) == bytes(100)
    os.truncate(path, 50)
    with pytest.raises(Fail, match="written to while it was being loaded"):
        content.read(0, 100)
