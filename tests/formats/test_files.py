"""Files as memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sardonyx.errors import Fail, InvalidArgument, NoSuchFile
from sardonyx.formats.files import map_file

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
