"""Tensor data in files beside the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from sardonyx.errors import InvalidArgument, InvalidGraph, NoSuchFile
from sardonyx.formats.external_data import ExternalData

CONTENT = bytes(range(100))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "model"
    (inside / "deep").mkdir(parents=True)
    for path in (inside / "w.data", inside / "deep" / "w.data", tmp_path / "secret"):
        path.write_bytes(CONTENT)
    return inside


def read(folder: Path | None, expected_bytes: int = 8, **entries: str) -> bytes:
    content, offset = ExternalData(folder).find(entries, expected_bytes, "initializer 'w'")
    return bytes(content.read(offset, expected_bytes))


def test_offset_and_length_select_the_bytes(folder: Path) -> None:
    """The tensor's bytes are those from offset on."""
    assert read(folder, location="w.data", offset="16", length="8") == CONTENT[16:24]


def test_offset_and_length_may_be_left_out(folder: Path) -> None:
    """Offset is 0 and length what the tensor needs."""
    assert read(folder, 100, location="w.data") == CONTENT


def test_a_location_may_lie_in_a_folder_below(folder: Path) -> None:
    """Relative paths downwards are fine."""
    assert read(folder, location="deep/w.data") == CONTENT[:8]
    assert read(folder, location="./deep/w.data") == CONTENT[:8]


def test_a_file_is_opened_once(folder: Path) -> None:
    """Tensors of one file share one descriptor."""
    external = ExternalData(folder)
    first, _ = external.find({"location": "w.data"}, 8, "a")
    (folder / "w.data").unlink()
    assert external.find({"location": "w.data", "offset": "8"}, 8, "b") == (first, 8)


@pytest.mark.parametrize(
    "location",
    ["../secret", "deep/../../secret", "/etc/passwd", "deep/../w.data", r"C:\data", r"\\host\share", r"..\secret"],
)
def test_a_location_outside_the_folder_is_refused(folder: Path, location: str) -> None:
    """Absolute paths and `..` are refused on every system, wherever they lead."""
    with pytest.raises(InvalidArgument, match="initializer 'w': its external data .* lies outside the model's folder"):
        read(folder, location=location)


@pytest.mark.parametrize("target", ["../secret", "/etc/passwd"])
def test_a_link_that_leads_out_is_refused(folder: Path, target: str) -> None:
    """A link in the folder to a file outside is refused, and the message says where it leads."""
    (folder / "link").symlink_to(target)
    with pytest.raises(InvalidArgument, match="leads by a link to .* outside the model's folder"):
        read(folder, location="link")


def test_a_linked_folder_that_leads_out_is_refused(folder: Path) -> None:
    """A link in the middle of a location is followed before it is judged."""
    (folder / "up").symlink_to("..", target_is_directory=True)
    with pytest.raises(InvalidArgument, match="leads by a link"):
        read(folder, location="up/secret")


def test_a_link_within_the_folder_is_followed(folder: Path) -> None:
    """A link to a file that the folder holds is no way out."""
    (folder / "link").symlink_to("deep/w.data")
    assert read(folder, location="link") == CONTENT[:8]


def test_a_linked_model_may_have_its_data_beside_its_target(folder: Path, tmp_path: Path) -> None:
    """Download caches keep files in one folder and links to them in another."""
    cache = tmp_path / "snapshot"
    cache.mkdir()
    (folder / "m.onnx").write_bytes(b"")
    (cache / "m.onnx").symlink_to(folder / "m.onnx")
    (cache / "w.data").symlink_to(folder / "w.data")
    external = ExternalData(cache, cache / "m.onnx")
    content, offset = external.find({"location": "w.data"}, 8, "w")
    assert bytes(content.read(offset, 8)) == CONTENT[:8]
    (cache / "out").symlink_to(tmp_path / "secret")
    with pytest.raises(InvalidArgument, match="leads by a link"):
        external.find({"location": "out"}, 8, "w")


@pytest.mark.parametrize("location", ["", "a\0b"])
def test_a_location_that_is_no_name_is_refused(folder: Path, location: str) -> None:
    """Empty locations and NUL characters are an invalid graph."""
    with pytest.raises(InvalidGraph, match="location"):
        read(folder, location=location)


@pytest.mark.parametrize("location", [".", "deep"])
def test_a_folder_is_no_data(folder: Path, location: str) -> None:
    """A location that is a folder is refused."""
    with pytest.raises(InvalidArgument, match="is a folder"):
        read(folder, location=location)


def test_missing_data_is_no_such_file(folder: Path) -> None:
    """The error names the tensor and the file."""
    with pytest.raises(NoSuchFile, match=r"initializer 'w': external data file '.*gone' does not exist"):
        read(folder, location="gone")


@pytest.mark.parametrize("key", ["offset", "length"])
@pytest.mark.parametrize("text", ["-1", "1.5", "0x10", "many", " 8", "1" * 30, "٣"])
def test_offsets_and_lengths_are_numbers_of_bytes(folder: Path, key: str, text: str) -> None:
    """Anything but plain digits is refused, as are numbers beyond 64 bits."""
    with pytest.raises(InvalidGraph, match=f"{key} .*; expected a number of bytes"):
        read(folder, **{"location": "w.data", key: text})


def test_a_length_that_contradicts_the_shape_is_refused(folder: Path) -> None:
    """The message gives both sizes."""
    with pytest.raises(InvalidGraph, match="length 9, but its type and shape need 8 bytes"):
        read(folder, location="w.data", length="9")


@pytest.mark.parametrize("offset", ["93", "100", "9999999999999999999"])
def test_data_beyond_the_end_of_the_file_is_refused(folder: Path, offset: str) -> None:
    """A file that is too short is found when the model is loaded."""
    with pytest.raises(InvalidGraph, match="but that file has 100 bytes"):
        read(folder, location="w.data", offset=offset)


def test_a_model_from_memory_needs_a_folder() -> None:
    """Without a folder the error says how to give one."""
    with pytest.raises(
        InvalidArgument, match="by its path, or name the folder.*session.model_external_initializers_file_folder_path"
    ):
        read(None, location="w.data")
