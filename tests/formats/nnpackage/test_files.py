"""Files of NN packages: nothing outside can be named, and archives are read in bounded memory."""

import struct
import zipfile
from pathlib import Path

import pytest

from sardonyx.errors import Fail, InvalidArgument, NoSuchFile
from sardonyx.formats.files import MemoryContent, open_content
from sardonyx.formats.model_format import ModelFile
from sardonyx.formats.nnpackage.files import PackageFiles, checked_name, package_files


def _folder(path: Path) -> PackageFiles:
    return package_files(ModelFile(path, MemoryContent(memoryview(b""))))


def _archive(content: bytes) -> PackageFiles:
    return package_files(ModelFile(None, MemoryContent(memoryview(content))))


def _zip(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path.read_bytes()


@pytest.mark.parametrize("name", ["..", "../a", "a/../../b", "/etc/passwd", "C:\\a", "\\\\host\\a", "a\\..\\b", "", "a\0b"])
def test_names_that_lead_out_are_refused(name: str, tmp_path: Path) -> None:
    """On any operating system, in folders and archives."""
    with pytest.raises(InvalidArgument, match="no file below it"):
        checked_name(name)
    with pytest.raises(InvalidArgument, match="no file below it"):
        _folder(tmp_path).read(name)
    with pytest.raises(InvalidArgument, match="no file below it"):
        _archive(_zip(tmp_path / "z", {"a": b""})).read(name)


def test_links_that_lead_out_are_refused(tmp_path: Path) -> None:
    """And links in archives."""
    (tmp_path / "secret").write_bytes(b"s")
    package = tmp_path / "package"
    package.mkdir()
    (package / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(InvalidArgument, match="leads by a link to"):
        _folder(package).read("link")
    member = zipfile.ZipInfo("link")
    member.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "z", "w") as archive:
        archive.writestr(member, "/etc/passwd")
    with pytest.raises(InvalidArgument, match="a link at 'link'"):
        _archive((tmp_path / "z").read_bytes()).read("link")


@pytest.mark.parametrize("name", ["../a", "/a", "a/../../b"])
def test_archives_with_names_that_lead_out_are_refused(name: str, tmp_path: Path) -> None:
    """Whether they are asked for or not."""
    with pytest.raises(InvalidArgument, match="no file below it"):
        _archive(_zip(tmp_path / "z", {name: b""}))


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_members_are_read(tmp_path: Path, compression: int) -> None:
    """Stored or deflated; the large ones of a file too."""
    large = bytes(range(256)) * (1 << 15)
    content = _zip(tmp_path / "z", {"m/a.bin": large, "m/b.data": b"beside"}, compression)
    files = _archive(content)
    assert files.read("m/a.bin") == large
    model = files.model_file("m/a.bin")
    assert bytes(model.content.read(5, 3)) == large[5:8]
    assert model.in_memory is not None
    assert {name: bytes(view) for name, view in model.in_memory.files.items()} == {"b.data": b"beside"}
    opened, stamp = open_content(tmp_path / "z", "file")
    assert package_files(ModelFile(tmp_path / "z", opened, stamp)).read("m/a.bin") == large


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    """With what is."""
    with pytest.raises(NoSuchFile, match="has no file 'b'; it has a"):
        _archive(_zip(tmp_path / "z", {"a": b""})).read("b")
    with pytest.raises(NoSuchFile):
        _folder(tmp_path).read("b")


def test_archives_that_inflate_without_end_are_refused(tmp_path: Path) -> None:
    """Before they are inflated."""
    content = bytearray(_zip(tmp_path / "z", {"a": bytes(90 << 20)}))
    with pytest.raises(Fail, match="would take .* bytes, far more than the archive"):
        _archive(bytes(content)).read("a")
    place = content.rindex(b"PK\1\2") + 24
    content[place : place + 4] = struct.pack("<I", 1000)
    with pytest.raises(Fail, match="'a' is damaged"):
        _archive(bytes(content)).read("a")


@pytest.mark.parametrize("cut", [4, 20, 60, 100])
def test_archives_that_are_cut_short_are_refused(tmp_path: Path, cut: int) -> None:
    """As damaged."""
    content = _zip(tmp_path / "z", {"a": b"text" * 100})
    with pytest.raises(Fail, match="damaged"):
        _archive(content[:cut])


def test_two_members_of_one_name_are_refused(tmp_path: Path) -> None:
    """Readers would differ about which counts."""
    with zipfile.ZipFile(tmp_path / "z", "w") as archive:
        archive.writestr("a", "1")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a", "2")
    with pytest.raises(Fail, match="two files 'a'"):
        _archive((tmp_path / "z").read_bytes())


def test_members_that_are_encrypted_are_refused(tmp_path: Path) -> None:
    """By their flag."""
    content = bytearray(_zip(tmp_path / "z", {"a": b"text"}, zipfile.ZIP_STORED))
    content[content.index(b"PK\1\2") + 8] |= 1
    with pytest.raises(Fail, match="'a' is encrypted"):
        _archive(bytes(content)).read("a")
