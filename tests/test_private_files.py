"""Which folders and files nobody else can have changed."""

from __future__ import annotations

import grp
import os
import pwd
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from support.users import STRANGER, as_another_user, needs_root

from sardonyx.private_files import PrivateFolder, folder_problem, make_private, read_private


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A private folder two levels below one of the test's own."""
    made = tmp_path / "above" / "own"
    assert make_private(made) == ""
    return made


def test_a_folder_that_is_made_is_private_with_all_above_it(folder: Path) -> None:
    """Whatever the process lets others do with new files."""
    mask = os.umask(0)
    try:
        assert make_private(folder / "a" / "b") == ""
    finally:
        os.umask(mask)
    assert {place.stat().st_mode & 0o777 for place in (folder, folder / "a", folder / "a" / "b")} == {0o700}
    assert folder_problem(folder / "a" / "b") == ""


@pytest.mark.parametrize("mode", [0o777, 0o722, 0o720, 0o1777])
def test_a_folder_that_others_may_write_is_not_private(folder: Path, mode: int) -> None:
    """Not even a sticky one: others could put files there that are not there yet."""
    folder.chmod(mode)
    assert f"{folder} can be written by others (mode {mode:o}); set SARDONYX_CACHE_DIR to" in folder_problem(folder)


def test_a_folder_below_one_that_others_may_write_is_not_private(folder: Path) -> None:
    """They could put another one in its place; in a sticky folder, as /tmp is, they could not."""
    folder.parent.chmod(0o777)
    assert f"{folder.parent} can be written by others (mode 777)" in folder_problem(folder)
    folder.parent.chmod(0o1777)
    assert folder_problem(folder) == ""


def test_nothing_is_made_where_others_may_write(folder: Path) -> None:
    """The folder would not be used."""
    folder.chmod(0o777)
    assert "can be written by others" in make_private(folder / "a" / "b")
    assert list(folder.iterdir()) == []


def test_the_group_of_one_user_alone_may_write_above(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many systems make such a group for each user; to a group with another name, or with members, it is not private."""
    if pwd.getpwuid(os.geteuid()).pw_name != grp.getgrgid(os.getegid()).gr_name:
        pytest.skip("this user has no group of his own")
    folder.parent.chmod(0o775)
    has_members = bool(set(grp.getgrgid(os.getegid()).gr_mem) - {pwd.getpwuid(os.geteuid()).pw_name})
    assert bool(folder_problem(folder)) is has_members
    monkeypatch.setattr(os, "getegid", lambda: STRANGER)
    assert f"{folder.parent} can be written by others (mode 775)" in folder_problem(folder)


def test_a_group_with_another_member_may_not_write_above(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though it has this user's name."""
    name = pwd.getpwuid(os.geteuid()).pw_name
    if pwd.getpwuid(os.geteuid()).pw_gid != os.getegid():
        pytest.skip("this user's own group is not the one in force")
    folder.parent.chmod(0o775)
    for members, is_private in (([name], True), ([name, "somebody"], False)):
        monkeypatch.setattr(grp, "getgrgid", lambda number, given=members: grp.struct_group((name, "x", number, given)))
        assert (folder_problem(folder) == "") is is_private


@needs_root
@pytest.mark.parametrize("which", ["own", "above"])
def test_a_folder_of_another_user_is_not_private(folder: Path, which: str) -> None:
    """Nor is one below it: he could rename what he does not own."""
    place = folder if which == "own" else folder.parent
    os.chown(place, STRANGER, STRANGER)
    assert f"{place} belongs to user {STRANGER}" in folder_problem(folder)
    if which == "above":
        assert f"{place} belongs to user {STRANGER}" in make_private(place / "new")


@needs_root
def test_the_home_of_another_user_is_not_private_for_root(folder: Path) -> None:
    """As where HOME is kept by sudo: nothing is made there."""
    os.chown(folder, STRANGER, STRANGER)
    assert f"{folder} belongs to user {STRANGER}" in make_private(folder / ".cache" / "sardonyx")
    assert list(folder.iterdir()) == []


@needs_root
def test_folders_of_the_system_may_lie_above(tmp_path: Path) -> None:
    """As /home, which is root's; the last folder must be the user's own."""
    for place in (tmp_path, *tmp_path.parents):
        if place == Path(tempfile.gettempdir()):
            break
        place.chmod(place.stat().st_mode | 0o055)
    own = tmp_path / "own"
    own.mkdir(0o700)
    os.chown(own, STRANGER, STRANGER)
    assert as_another_user(lambda: (folder_problem(own), make_private(own / "a"))) == ("", "")
    assert "belongs to user 0" in as_another_user(lambda: folder_problem(tmp_path))


def test_a_link_leads_to_a_folder_that_is_private_itself(folder: Path, tmp_path: Path) -> None:
    """It is looked at step by step, relative links and .. too."""
    (tmp_path / "link").symlink_to(Path("above") / ".." / "above")
    assert folder_problem(tmp_path / "link" / "own") == ""
    folder.parent.chmod(0o777)
    assert f"{folder.parent} can be written by others" in folder_problem(tmp_path / "link" / "own")


@needs_root
def test_a_link_of_another_user_is_not_followed(folder: Path, tmp_path: Path) -> None:
    """He may have put it into a sticky folder, and could lead it elsewhere at any time."""
    link = tmp_path / "link"
    link.symlink_to(folder)
    os.chown(link, STRANGER, STRANGER, follow_symlinks=False)
    assert f"{link} belongs to user {STRANGER}" in folder_problem(link)


def test_links_that_lead_in_circles_are_an_error(tmp_path: Path) -> None:
    """As the system says it."""
    (tmp_path / "link").symlink_to(tmp_path / "link")
    with pytest.raises(OSError, match="links"):
        folder_problem(tmp_path / "link")


def test_what_is_missing_or_no_folder_is_an_error(tmp_path: Path) -> None:
    """The caller knows what it means."""
    with pytest.raises(FileNotFoundError):
        folder_problem(tmp_path / "nothing")
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        folder_problem(tmp_path / "file")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda path: path.chmod(0o602), "can be written by others"),
        (lambda path: (path.unlink(), path.mkdir()), "is no regular file"),
        (lambda path: (path.unlink(), os.mkfifo(path)), "is no regular file"),
    ],
)
def test_a_file_that_others_may_have_written_is_not_read(folder: Path, change: Callable[[Path], object], message: str) -> None:
    """The reason is returned."""
    path = folder / "file"
    path.write_bytes(b"content")
    path.chmod(0o644)
    assert read_private(path) == b"content"
    change(path)
    found = read_private(path)
    assert isinstance(found, str)
    assert f"{path} {message}" in found


def test_a_secret_that_others_may_read_is_not_read(folder: Path) -> None:
    """It is a secret no more."""
    path = folder / "file"
    path.write_bytes(b"content")
    path.chmod(0o640)
    assert "can be read or written by others (mode 640); remove it" in str(read_private(path, secret=True))
    path.chmod(0o600)
    assert read_private(path, secret=True) == b"content"


def test_a_file_that_is_a_link_is_an_error(folder: Path) -> None:
    """Whatever it leads to."""
    (folder / "file").write_bytes(b"content")
    (folder / "link").symlink_to(folder / "file")
    with pytest.raises(OSError, match="link"):
        read_private(folder / "link")


@needs_root
def test_a_file_of_another_user_is_not_read(folder: Path) -> None:
    """He may have written it when he still could."""
    path = folder / "file"
    path.write_bytes(b"content")
    os.chown(path, STRANGER, STRANGER)
    assert f"{path} belongs to user {STRANGER}" in str(read_private(path))


def test_a_folder_that_was_private_is_looked_at_again(folder: Path) -> None:
    """When who may write there, or above, has changed."""
    assert make_private(folder) == ""
    known = PrivateFolder(folder)
    assert [known.problem(), known.problem()] == ["", ""]
    folder.parent.chmod(0o777)
    assert "can be written by others" in known.problem()
    folder.parent.chmod(0o700)
    assert known.problem() == ""
    folder.rmdir()
    with pytest.raises(FileNotFoundError):
        known.problem()
