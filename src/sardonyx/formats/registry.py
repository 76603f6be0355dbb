"""The formats that models are read from: the built-in ones, those that packages bring, and those registered by a call.

    [project.entry-points."sardonyx.formats"]
    toy = "our_package.toy:FORMAT"

A file is recognised by its content. Built-in formats that begin with a mark of their own come first, then those of packages and of
the user; what nobody recognises is taken for ONNX, whose files have no mark.
"""

from __future__ import annotations

import functools
import importlib
import warnings
from pathlib import Path

from sardonyx.cancellation import raise_interrupt
from sardonyx.errors import InvalidArgument, describe
from sardonyx.forks import new_lock, without_fork
from sardonyx.formats.model_format import ModelFile, ModelFormat
from sardonyx.installed import installed_points, search_path

__all__ = ["GROUP", "all_formats", "find_format", "format_for_path", "register_format", "registered_formats", "unregister_format"]

GROUP = "sardonyx.formats"
"""The group of entry points."""
_ONNX = "sardonyx.formats.onnx_format:ONNX"
_PACKAGE = "sardonyx.formats.nnpackage.format:NN_PACKAGE"
_MARKED: tuple[tuple[int, bytes, str], ...] = (
    (4, b"ORTM", "sardonyx.formats.ort.format:ORT"),
    (0, b"PK\x03\x04", _PACKAGE),
    (4, b"TFL3", "sardonyx.formats.tflite.formats:TFLITE"),
    (4, b"CIR0", "sardonyx.formats.tflite.formats:CIRCLE"),
)
"""Where a built-in format has its mark, the mark, and the format; imported when a file has it."""
_FIELDS_OF_ONNX = b"\x12\x1a\x22\x28\x2a\x32\x3a\x42"
"""The first bytes of the fields that follow ir_version, which writers of ONNX put first, as the field 1 with its number."""
_LOCK = new_lock()
_REGISTERED: list[ModelFormat] = []


def register_format(added: ModelFormat) -> None:
    """Let models of a format be read by every session made from now on; registering it again changes nothing.

    Raises:
        InvalidArgument: it is no ModelFormat, or another format has its name.
    """
    if not isinstance(added, ModelFormat):
        raise InvalidArgument(f"expected a sardonyx.formats.model_format.ModelFormat, got {added!r}")
    with _LOCK:
        if added in _REGISTERED:
            return
        if added.name in [known.name for known in (*_built_in(), *_REGISTERED)]:
            raise InvalidArgument(f"there is a format {added.name!r} already; give this one a name of its own")
        _REGISTERED.append(added)


def unregister_format(added: ModelFormat) -> None:
    """Let sessions made from now on not know a format; raises InvalidArgument where it is not registered."""
    with _LOCK:
        if added not in _REGISTERED:
            raise InvalidArgument(f"the format {getattr(added, 'name', added)!r} is not registered")
        _REGISTERED.remove(added)


def registered_formats() -> tuple[ModelFormat, ...]:
    """Return the formats that were registered by a call, in order."""
    return tuple(_REGISTERED)


def all_formats() -> tuple[ModelFormat, ...]:
    """Return every format there is, built-in ones first."""
    return (*_built_in(), *_installed(search_path()), *_REGISTERED)


def find_format(file: ModelFile) -> ModelFormat | None:
    """Return the format of a file; None for one that is ONNX, or nothing that anybody recognises."""
    if file.is_folder:
        package = _imported(_PACKAGE)
        if package.recognizes(file):
            return package
    start = b"" if file.is_folder else file.start
    for offset, mark, place in _MARKED:
        if start[offset:].startswith(mark):
            found = _imported(place)
            if found.recognizes(file):
                return found
    is_onnx = start[:1] == b"\x08" and start[1:2] < b"\x80" and start[2:3] in _FIELDS_OF_ONNX and len(start) > 2
    for known in (*_REGISTERED, *(() if is_onnx else _installed(search_path()))):
        if _recognizes(known, file):
            return known
    return None


def format_for_path(path: Path, name: str = "") -> ModelFormat:
    """Return the format in which a file is to be written.

    Args:
        path: of the file; its suffix decides, and ONNX is taken for one that no format has.
        name: the format's name, where that was given.

    Raises:
        InvalidArgument: no format has that name, or it is one that can only be read.
    """
    known = all_formats()
    if name:
        chosen = next((item for item in known if item.name.lower() == name.lower()), None)
        if chosen is None:
            raise InvalidArgument(f"there is no format {name!r}; there are {', '.join(item.name for item in known)}")
    else:
        chosen = next((item for item in known if path.suffix.lower() in item.suffixes), _imported(_ONNX))
    if chosen.save is None:
        writable = ", ".join(item.name for item in known if item.save is not None)
        raise InvalidArgument(f"{str(path)!r}: models are read from {chosen.name} but not written in it; written are {writable}")
    return chosen


def _built_in() -> tuple[ModelFormat, ...]:
    return tuple(_imported(place) for place in dict.fromkeys((_ONNX, *(place for _, _, place in _MARKED))))


def _imported(place: str) -> ModelFormat:
    module, _, name = place.partition(":")
    with without_fork():
        found: ModelFormat = getattr(importlib.import_module(module), name)
    return found


def _recognizes(known: ModelFormat, file: ModelFile) -> bool:
    try:
        return bool(known.recognizes(file))
    except Exception as error:  # noqa: BLE001  a plug-in's function may do anything
        raise_interrupt(error)
        _warn(f"the format {known.name} cannot say whether {file.label} is one of its files: {describe(error)}")
        return False


@functools.lru_cache(maxsize=8)
def _installed(path: tuple[str, ...]) -> tuple[ModelFormat, ...]:
    """Return the formats of the packages on `path`, the `search_path`; a change of it is a new search."""
    found: list[ModelFormat] = []
    for point in installed_points(GROUP, path):
        package = point.dist.name if point.dist is not None else "an installed package"
        named = f"{point.value}, which {package} names as {point.name!r} of {GROUP}"
        try:
            with without_fork():
                loaded = point.load()
        except Exception as error:  # noqa: BLE001  importing a package may do anything
            raise_interrupt(error)
            _warn(f"{named}, cannot be loaded: {describe(error)}; repair or uninstall the package")
            continue
        for item in loaded if isinstance(loaded, (list, tuple)) else (loaded,):
            if isinstance(item, ModelFormat):
                found.append(item)
            else:
                _warn(f"{named}, holds {item!r:.200}, which is no ModelFormat; repair or uninstall the package")
    return tuple(found)


def _warn(message: str) -> None:
    warnings.warn(f"{message}; models are read without it", UserWarning, stacklevel=3)
