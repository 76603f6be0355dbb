"""Paths of a model package, and folders that are named by what is in them.

    sha256:<64 digits>              a shared folder: shared_assets/sha256-<64 digits>, or where the manifest says
    sha256:<64 digits>/sub/path     what lies in it
    sub/path                        from the folder that it is read in

In a portable package nothing leads out of it: no absolute path, no "..", no link to another place.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.errors import InvalidArgument, NoSuchFile

__all__ = ["Place", "asset_folder", "directory_uri", "is_asset_uri", "uri_of_folder"]

_URI = re.compile("sha256:[0-9a-f]{64}")
_PIECE = 1 << 20


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """Where a package lies, and what its paths may lead to."""

    root: Path | None
    """Its folder; None while it has none."""
    is_free: bool
    """Whether paths may leave it."""
    assets: Mapping[str, Path]
    """Asset URI -> its folder."""

    def resolve(self, text: str, base: Path | None = None, *, must_exist: bool = False) -> Path:
        """Return what a text in the package refers to.

        Args:
            text: a path, or an asset's URI with or without a path in it.
            base: the folder that a path begins in; the package's own where None.
            must_exist: refuse what is not there.

        Raises:
            InvalidArgument: the text is empty, or leads out of the package or the asset.
            NoSuchFile: there is no such asset, or `must_exist` and there is no such file.
        """
        uri, _, inner = text.partition("/")
        if is_asset_uri(uri):
            if uri not in self.assets:
                raise NoSuchFile(f"the package has no asset {uri!r}")
            found = self.assets[uri]
            return self._checked(found / _inside(inner, text), found, must_exist) if inner else found
        if not text:
            raise InvalidArgument("a path in a model package is empty")
        start = base or self.root or Path()
        if self.is_free:
            return self._checked(start / text, None, must_exist)
        return self._checked(start / _inside(text, text), self.root, must_exist)

    def _checked(self, path: Path, top: Path | None, must_exist: bool) -> Path:
        """Return a path with links followed; raises as `resolve` does where it leads out of `top`."""
        found = Path(os.path.realpath(path))
        if top is not None and not found.is_relative_to(os.path.realpath(top)):
            raise InvalidArgument(f"{str(path)!r} leads out of {str(top)!r}, which a portable model package does not allow")
        if must_exist and not found.exists():
            raise NoSuchFile(f"{str(found)!r} does not exist")
        return found


def is_asset_uri(text: str) -> bool:
    """Return whether a text is the URI of a shared folder."""
    return _URI.fullmatch(text) is not None


def asset_folder(root: Path, uri: str) -> Path:
    """Return where a package keeps a shared folder that its manifest says nothing of."""
    return root / "shared_assets" / uri.replace(":", "-")


def uri_of_folder(name: str) -> str | None:
    """Return the URI that a folder in `shared_assets` is named by; None for another."""
    uri = name.replace("-", ":", 1)
    return uri if is_asset_uri(uri) and name.startswith("sha256-") else None


def directory_uri(folder: Path) -> str:
    """Return the URI of a folder: a hash over its files' names and contents.

    Raises:
        NoSuchFile: there is no such folder.
        InvalidArgument: a link lies in it.
    """
    if not folder.is_dir():
        raise NoSuchFile(f"{str(folder)!r} is no folder")
    files = {path.relative_to(folder).as_posix(): path for path in _files(folder)}
    lines = [f"{_digest(files[name])}  {name}\n" for name in sorted(files, key=os.fsencode)]
    return f"sha256:{hashlib.sha256(''.join(lines).encode()).hexdigest()}"


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_symlink():
            raise InvalidArgument(f"{str(path)!r} is a link, which a shared folder of a model package cannot hold")
        if path.is_dir():
            yield from _files(path)
        else:
            yield path


def _digest(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        for piece in iter(lambda: file.read(_PIECE), b""):
            found.update(piece)
    return found.hexdigest()


def _inside(text: str, whole: str) -> str:
    """Return a relative path; raises InvalidArgument for one that may lead elsewhere."""
    parts = text.replace("\\", "/").split("/")
    if ".." in parts:
        raise InvalidArgument(f"'..' is not allowed in paths of a portable model package: {whole!r}")
    if os.path.isabs(text) or os.path.splitdrive(text)[0]:
        raise InvalidArgument(f"an absolute path is not allowed in a portable model package: {whole!r}")
    return text
