"""What the modules of a package consist of, as their loaders have it: in folders, in a zip, or frozen into an application.

digest_of("sardonyx.codegen")     a digest of every module of the package, or None where some cannot be read
stamp_of("sardonyx")              the same for a package in a folder, by sizes and times of its files: ten times as fast
take_stamp("sardonyx")            has `stamp_of` say what the files are now, whatever becomes of them
has_changed("sardonyx")           whether they are others by now
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from types import CodeType

from sardonyx.digests import Digest, sha256
from sardonyx.forks import without_fork

__all__ = ["digest_of", "has_changed", "stamp_of", "take_stamp"]


def digest_of(*packages: str) -> str | None:
    """Return a digest of all modules of packages, subpackages included; one that changes with any of them.

    A module counts with its file, source or bytecode, as the loader reads it, or else with its code.

    Args:
        packages: dotted names; each is imported where it is not yet.

    Returns:
        A hexadecimal SHA-256, or None where a loader does not list the modules or does not give their content.
    """
    digest = sha256()
    for package in packages:
        spec = importlib.util.find_spec(package)
        found = dict(_contents(package, spec)) if spec is not None else {}
        if not _loaded(package) <= found.keys():
            return None
        for name, content in sorted(found.items()):
            if content is None:
                return None
            digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


@functools.cache
def stamp_of(package: str) -> str | None:
    """Return a digest of the names, sizes and times of all files of a package that lies in one folder.

    Of another it is what `digest_of` returns. Besides the time of the last change of a file's content, which tools may set, that
    of its entry counts, which they may not.
    """
    folder = _folder_of(package)
    if folder is None:
        return digest_of(package)
    digest = sha256()
    try:
        _add_files(digest, folder)
    except OSError:
        return None
    return digest.hexdigest()


def take_stamp(package: str) -> None:
    """Take the stamp of a package that is being imported, where it lies in a folder.

    What a process makes later is of the modules that it has imported, not of files that took their place since.
    """
    with contextlib.suppress(ValueError):  # a module that was made by hand, without a specification
        if _folder_of(package) is not None:
            stamp_of(package)


def has_changed(package: str) -> bool:
    """Return whether the files of a package are not those any more of which `stamp_of` was taken."""
    return stamp_of.__wrapped__(package) != stamp_of(package)


def _folder_of(package: str) -> str | None:
    """Return the folder of a package; None for one that does not lie in one folder."""
    spec = importlib.util.find_spec(package)
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    return folders[0] if len(folders) == 1 and os.path.isdir(folders[0]) else None


def _add_files(digest: Digest, folder: str) -> None:
    """Add names, sizes and times of the files of a folder and those in it, but for bytecode that Python keeps beside sources."""
    folders, files = [], []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name != "__pycache__":
                    folders.append(entry.path)
            else:
                status = entry.stat()
                files.append(f"{entry.name!r} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}")
    files.sort()
    digest.update("\n".join([repr(folder), *files, ""]).encode(errors="surrogatepass"))
    for inner in sorted(folders):
        _add_files(digest, inner)


def _loaded(package: str) -> set[str]:
    """Return the modules of a package that have been imported, of which there is at least the package."""
    return {package, *(name for name in list(sys.modules) if name.startswith(f"{package}."))}


def _contents(name: str, spec: ModuleSpec) -> Iterator[tuple[str, bytes | None]]:
    """Yield the name and the content of a module and, if it is a package, of all below it."""
    with without_fork():
        import pkgutil  # which stamps do without

    yield name, _content(name, spec)
    for module in pkgutil.iter_modules(list(spec.submodule_search_locations or ())):
        below = f"{name}.{module.name}"
        found = module.module_finder.find_spec(below)  # type: ignore[call-arg]  # one for entries of a path, which takes the name only
        if found is None:
            yield below, None
        else:
            yield from _contents(below, found)


def _content(name: str, spec: ModuleSpec) -> bytes | None:
    loader = spec.loader
    for read in (_file_of, _code_of):
        try:
            content = read(loader, name)
        except (AttributeError, ImportError, OSError):  # a loader has these methods or not, and a file or not
            continue
        if content:
            return content
    return None


def _file_of(loader: object, name: str) -> bytes:
    content = loader.get_data(os.fspath(loader.get_filename(name)))  # type: ignore[attr-defined]  # the caller catches a lack
    return bytes(content)


def _code_of(loader: object, name: str) -> bytes | None:
    code = loader.get_code(name)  # type: ignore[attr-defined]  # the caller catches a lack
    return None if code is None else _shown(code).encode(errors="surrogatepass")


def _shown(value: object) -> str:
    """Return code as text that is the same in every process; marshal's bytes depend on who else refers to a constant."""
    if isinstance(value, CodeType):
        parts = (value.co_code, value.co_names, value.co_varnames, value.co_freevars, value.co_cellvars, value.co_argcount)
        return f"code({parts} {value.co_posonlyargcount} {value.co_kwonlyargcount} {value.co_flags} {_shown(value.co_consts)})"
    if isinstance(value, tuple):
        return f"({','.join(map(_shown, value))})"
    if isinstance(value, frozenset):
        return f"{{{','.join(sorted(map(_shown, value)))}}}"
    return repr(value)
