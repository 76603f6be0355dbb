"""Formats by what is in a file, and by the name of one that is written."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.toy_format import TOY, content_of

from sardonyx.errors import InvalidArgument
from sardonyx.formats import registry
from sardonyx.formats.files import MemoryContent
from sardonyx.formats.model_format import ModelFile
from sardonyx.formats.registry import (
    all_formats,
    find_format,
    format_for_path,
    register_format,
    registered_formats,
    unregister_format,
)


@pytest.fixture
def _registered() -> Iterator[None]:
    register_format(TOY)
    yield
    unregister_format(TOY)


def _file(content: bytes) -> ModelFile:
    return ModelFile(None, MemoryContent(memoryview(content)))


@pytest.mark.usefixtures("_registered")
def test_a_registered_format_recognises_its_files() -> None:
    """By their content."""
    assert find_format(_file(content_of([1]))) is TOY
    assert find_format(_file(b"something else")) is None


def test_a_format_can_be_taken_away() -> None:
    """And is registered once only."""
    register_format(TOY)
    register_format(TOY)
    assert registered_formats() == (TOY,)
    unregister_format(TOY)
    assert find_format(_file(content_of([1]))) is None
    with pytest.raises(InvalidArgument, match="'TOY' is not registered"):
        unregister_format(TOY)


@pytest.mark.usefixtures("_registered")
def test_two_formats_of_one_name_are_refused() -> None:
    """A user could not say which he means."""
    with pytest.raises(InvalidArgument, match="there is a format 'TOY' already"):
        register_format(dataclasses.replace(TOY, suffixes=(".other",)))
    with pytest.raises(InvalidArgument, match="there is a format 'ONNX' already"):
        register_format(dataclasses.replace(TOY, name="ONNX"))


def test_what_is_no_format_is_refused() -> None:
    """With what was given."""
    with pytest.raises(InvalidArgument, match="expected a sardonyx.formats.model_format.ModelFormat, got 3"):
        register_format(3)  # type: ignore[arg-type]  # wrong on purpose


def test_a_format_that_cannot_recognise_is_left_out() -> None:
    """With a warning that names it."""

    def fails(file: ModelFile) -> bool:
        raise KeyError("x")

    broken = dataclasses.replace(TOY, name="BROKEN", recognizes=fails)
    register_format(broken)
    try:
        with pytest.warns(UserWarning, match="BROKEN cannot say whether model is one of its files"):
            assert find_format(_file(content_of([1]))) is None
    finally:
        unregister_format(broken)


class _Point:
    value, name, dist = "pkg.toy:TOY", "toy", None

    def __init__(self, loaded: object) -> None:
        self._loaded = loaded

    def load(self) -> object:
        """Return what the package has, or fail as it does."""
        if isinstance(self._loaded, Exception):
            raise self._loaded
        return self._loaded


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    registry._installed.cache_clear()
    yield
    registry._installed.cache_clear()


def _install(monkeypatch: pytest.MonkeyPatch, loaded: object) -> None:
    monkeypatch.setattr(registry, "installed_points", lambda group, path: (_Point(loaded),) if group == "sardonyx.formats" else ())


@pytest.mark.parametrize("loaded", [TOY, [TOY]])
def test_a_package_brings_formats(monkeypatch: pytest.MonkeyPatch, loaded: object) -> None:
    """One, or several, by the entry point sardonyx.formats."""
    _install(monkeypatch, loaded)
    assert find_format(_file(content_of([1]))) is TOY
    assert TOY in all_formats()


@pytest.mark.parametrize(
    ("loaded", "said"), [(ImportError("no module"), "cannot be loaded: .*no module"), (3, "holds 3, which is no ModelFormat")]
)
def test_a_package_that_fails_is_left_out(monkeypatch: pytest.MonkeyPatch, loaded: object, said: str) -> None:
    """With a warning that names its entry point."""
    _install(monkeypatch, loaded)
    with pytest.warns(UserWarning, match=f"pkg.toy:TOY, which an installed package names as 'toy' of sardonyx.formats, {said}"):
        assert find_format(_file(content_of([1]))) is None


@pytest.mark.usefixtures("_registered")
def test_the_format_of_a_new_file_follows_its_suffix_or_a_name() -> None:
    """A suffix that nobody has means ONNX."""
    assert format_for_path(Path("a.toy")) is TOY
    assert format_for_path(Path("a.onnx"), "toy") is TOY
    assert format_for_path(Path("a.bin")).name == "ONNX"


@pytest.mark.usefixtures("_registered")
def test_a_format_that_is_unknown_or_only_read_is_refused() -> None:
    """With those that are there."""
    with pytest.raises(InvalidArgument, match="there is no format 'NONE'; there are ONNX, .*TOY"):
        format_for_path(Path("a"), "NONE")
    unregister_format(TOY)
    only_read = dataclasses.replace(TOY, save=None)
    register_format(only_read)
    try:
        with pytest.raises(InvalidArgument, match="models are read from TOY but not written in it; written are ONNX"):
            format_for_path(Path("a.toy"))
    finally:
        unregister_format(only_read)
        register_format(TOY)
