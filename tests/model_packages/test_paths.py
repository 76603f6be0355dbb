"""Tests of paths in model packages, and of the URIs of folders."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from sardonyx.errors import InvalidArgument, NoSuchFile
from sardonyx.model_packages.paths import Place, asset_folder, directory_uri, is_asset_uri, uri_of_folder

URI = "sha256:" + "a" * 64


def _place(tmp_path: Path, *, is_free: bool = False) -> Place:
    (tmp_path / "root" / "asset").mkdir(parents=True)
    return Place(tmp_path / "root", is_free, {URI: tmp_path / "root" / "asset"})


@pytest.mark.parametrize(
    ("text", "found"), [("a/b", "a/b"), ("a//b/.", "a/b"), (URI, "asset"), (f"{URI}/c", "asset/c"), ("sha256:zz", "sha256:zz")]
)
def test_what_texts_refer_to(tmp_path: Path, text: str, found: str) -> None:
    """A path from the package's folder, or an asset with what lies in it."""
    assert _place(tmp_path).resolve(text) == tmp_path / "root" / found


def test_a_path_begins_in_the_folder_that_it_is_read_in(tmp_path: Path) -> None:
    """Where one is given."""
    assert _place(tmp_path).resolve("b", tmp_path / "root" / "a") == tmp_path / "root" / "a" / "b"


@pytest.mark.parametrize("text", ["", "..", "a/../b", "/etc/passwd", f"{URI}/../x", f"{URI}//etc"])
def test_a_portable_package_is_not_left(tmp_path: Path, text: str) -> None:
    """By no path, nor is an asset."""
    with pytest.raises(InvalidArgument):
        _place(tmp_path).resolve(text)


def test_links_that_lead_out_are_refused(tmp_path: Path) -> None:
    """What a link leads to is what counts."""
    place = _place(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "root" / "link").symlink_to(tmp_path / "out")
    (tmp_path / "root" / "inner").symlink_to(tmp_path / "root" / "asset")
    with pytest.raises(InvalidArgument, match="leads out of"):
        place.resolve("link/x")
    assert place.resolve("inner/x") == tmp_path / "root" / "asset" / "x"


def test_a_folder_beside_the_package_is_outside(tmp_path: Path) -> None:
    """Also where a path is read in it."""
    with pytest.raises(InvalidArgument, match="leads out of"):
        _place(tmp_path).resolve("x", tmp_path)


def test_an_installed_package_may_be_left(tmp_path: Path) -> None:
    """By absolute paths and by dots; an asset may not."""
    place = _place(tmp_path, is_free=True)
    assert place.resolve("../x") == tmp_path / "x"
    assert place.resolve("/x") == Path("/x")
    with pytest.raises(InvalidArgument):
        place.resolve(f"{URI}/../x")


def test_what_has_to_be_there(tmp_path: Path) -> None:
    """Is looked for, as assets always are."""
    place = _place(tmp_path)
    with pytest.raises(NoSuchFile, match="does not exist"):
        place.resolve("a", must_exist=True)
    with pytest.raises(NoSuchFile, match="has no asset"):
        place.resolve("sha256:" + "b" * 64)


def test_a_folders_uri_is_a_hash_of_names_and_contents(tmp_path: Path) -> None:
    """Lines of hash and name, sorted by name; empty folders do not count."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "b").write_bytes(b"1")
    (tmp_path / "sub" / "a").write_bytes(b"2")
    lines = f"{hashlib.sha256(b'1').hexdigest()}  b\n{hashlib.sha256(b'2').hexdigest()}  sub/a\n"
    assert directory_uri(tmp_path) == f"sha256:{hashlib.sha256(lines.encode()).hexdigest()}"


def test_a_folder_with_a_link_has_no_uri(tmp_path: Path) -> None:
    """And what is no folder has none."""
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(NoSuchFile):
        directory_uri(tmp_path / "a")
    (tmp_path / "l").symlink_to("a")
    with pytest.raises(InvalidArgument, match="is a link"):
        directory_uri(tmp_path)


def test_names_of_assets() -> None:
    """The URI and the folder's name say the same."""
    assert is_asset_uri(URI)
    assert not is_asset_uri("sha256:" + "A" * 64)
    assert asset_folder(Path("p"), URI) == Path("p/shared_assets") / ("sha256-" + "a" * 64)
    assert uri_of_folder("sha256-" + "a" * 64) == URI
    assert uri_of_folder("sha256:" + "a" * 64) is None
    assert uri_of_folder("other") is None
