"""Digests of packages, whatever their modules are loaded from."""

from __future__ import annotations

import compileall
import functools
import importlib
import os
import sys
import zipfile
from collections.abc import Callable, Iterator
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import CodeType, ModuleType

import pytest

from sardonyx.sources import digest_of, has_changed, stamp_of, take_stamp

_NAME = "packed_for_a_test"


@pytest.fixture(autouse=True)
def _imports() -> Iterator[None]:
    path, finders = list(sys.path), list(sys.meta_path)
    yield
    sys.path[:], sys.meta_path[:] = path, finders
    _forget()


def _forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == _NAME]:
        del sys.modules[name]
    importlib.invalidate_caches()


def _written(folder: Path, number: int) -> Path:
    package = folder / _NAME
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "inner" / "__init__.py").write_text("")
    (package / "inner" / "kernel.py").write_text(f"def answer():\n    return {number}\n")
    return folder


def _as_folder(folder: Path, number: int) -> Path:
    return _written(folder, number)


def _as_bytecode(folder: Path, number: int) -> Path:
    compileall.compile_dir(_written(folder, number), quiet=2, legacy=True)
    for path in folder.rglob("*.py"):
        path.unlink()
    return folder


def _zipped(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "application.zip", "w") as archive:
        for path in sorted((folder / _NAME).rglob("*.py*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder))
    return folder / "application.zip"


def _as_zip(folder: Path, number: int) -> Path:
    return _zipped(_as_folder(folder, number))


def _as_zipped_bytecode(folder: Path, number: int) -> Path:
    return _zipped(_as_bytecode(folder, number))


def _digest(path: Path) -> str | None:
    _forget()
    sys.path.insert(0, str(path))
    try:
        return digest_of(_NAME)
    finally:
        sys.path.remove(str(path))


@pytest.mark.parametrize("packed", [_as_folder, _as_bytecode, _as_zip, _as_zipped_bytecode])
def test_editions_differ_however_they_are_packed(packed: Callable[[Path, int], Path], tmp_path: Path) -> None:
    """A change of one module in a subpackage gives another digest; the same application has the same twice."""
    one, two = packed(tmp_path / "one", 1), packed(tmp_path / "two", 2)
    assert _digest(one) is not None
    assert _digest(one) == _digest(one)
    assert _digest(one) != _digest(two)


class _Frozen(Loader, MetaPathFinder):
    """Loads one package without files, as the loader of a frozen application does."""

    def __init__(self, text: str, *, readable: bool = True) -> None:
        self.text = text
        self.readable = readable

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return spec_from_loader(name, self, is_package=True) if name == _NAME else None

    def exec_module(self, module: ModuleType) -> None:
        exec(self.text, module.__dict__)

    def get_code(self, name: str) -> CodeType | None:
        return compile(self.text, name, "exec") if self.readable else None


def _digest_of_frozen(frozen: _Frozen) -> str | None:
    _forget()
    sys.meta_path.insert(0, frozen)
    try:
        return digest_of(_NAME)
    finally:
        sys.meta_path.remove(frozen)


def test_frozen_modules_count_with_their_code() -> None:
    """Where a loader has no files; the code of inner functions counts too."""
    one, again, two = (_Frozen(f"def f(x):\n    return x in {{1, 'a', {number}}}") for number in (5, 5, 6))
    assert _digest_of_frozen(one) is not None
    assert _digest_of_frozen(one) == _digest_of_frozen(again)
    assert _digest_of_frozen(one) != _digest_of_frozen(two)


def test_a_loader_that_gives_nothing_has_no_digest() -> None:
    """Neither file nor code: editions could not be told apart."""
    assert _digest_of_frozen(_Frozen("", readable=False)) is None


def test_a_loader_that_does_not_list_its_modules_has_no_digest() -> None:
    """A module was imported that the list of the package lacks, as in applications whose importer has no list."""
    frozen = _Frozen("")
    sys.meta_path.insert(0, frozen)
    importlib.import_module(_NAME)
    sys.modules[f"{_NAME}.hidden"] = ModuleType(f"{_NAME}.hidden")
    assert digest_of(_NAME) is None


def test_the_stamp_changes_with_a_file(tmp_path: Path) -> None:
    """Also where its size stays, and where tools set its time back."""
    sys.path.insert(0, str(_written(tmp_path, 1)))
    before = stamp_of.__wrapped__(_NAME)
    kernel = tmp_path / _NAME / "inner" / "kernel.py"
    status = kernel.stat()
    kernel.write_text(kernel.read_text().replace("1", "2"))
    os.utime(kernel, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert stamp_of.__wrapped__(_NAME) not in (before, None)


def test_bytecode_beside_sources_does_not_count(tmp_path: Path) -> None:
    """Python writes it when a module is first imported."""
    sys.path.insert(0, str(_written(tmp_path, 1)))
    before = stamp_of.__wrapped__(_NAME)
    compileall.compile_dir(tmp_path, quiet=2)
    assert stamp_of.__wrapped__(_NAME) == before


def test_a_stamp_that_was_taken_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that imported a package goes on with what it was then."""
    stamps = functools.cache(stamp_of.__wrapped__)
    stamps.__wrapped__ = stamp_of.__wrapped__
    monkeypatch.setattr("sardonyx.sources.stamp_of", stamps)
    sys.path.insert(0, str(_written(tmp_path, 1)))
    take_stamp(_NAME)
    assert not has_changed(_NAME)
    (tmp_path / _NAME / "more.py").write_text("")
    assert stamps(_NAME) not in (stamp_of.__wrapped__(_NAME), None)
    assert has_changed(_NAME)


def test_no_stamp_is_taken_of_what_lies_in_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take long, and who needs it asks for it."""
    monkeypatch.setattr("sardonyx.sources.stamp_of", lambda package: pytest.fail("a stamp was taken"))
    take_stamp(_NAME)
    monkeypatch.setitem(sys.modules, _NAME, ModuleType(_NAME))
    take_stamp(_NAME)


def test_the_stamp_of_a_package_in_a_zip_is_its_digest(tmp_path: Path) -> None:
    """There are no files whose times could be asked."""
    _written(tmp_path, 1)
    sys.path.insert(0, str(_zipped(tmp_path)))
    importlib.invalidate_caches()
    assert stamp_of.__wrapped__(_NAME) == digest_of(_NAME)
