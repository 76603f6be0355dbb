"""Files of LoRA adapters."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from sardonyx.dtypes import Array
from sardonyx.errors import Fail, InvalidArgument, NoSuchFile, SardonyxError
from sardonyx.formats.adapter import AdapterFile, load, save

PARAMETERS: dict[str, Array] = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "lora_b": np.arange(5, dtype=np.int64),
    "half": np.array([1.5, -2], ml_dtypes.bfloat16),
    "scalar": np.array(7, np.uint8),
    "empty": np.zeros((0, 4), np.float16),
}


def _saved(folder: Path) -> Path:
    path = folder / "x.onnx_adapter"
    save(AdapterFile(PARAMETERS, adapter_version=3, model_version=-4), path)
    return path


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    """Names, types, shapes, elements and versions."""
    found = load(_saved(tmp_path))
    assert (found.format_version, found.adapter_version, found.model_version) == (1, 3, -4)
    assert list(found.parameters) == list(PARAMETERS)
    for name, array in PARAMETERS.items():
        assert (found.parameters[name].dtype, found.parameters[name].shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(found.parameters[name], array)


def test_data_are_aligned(tmp_path: Path) -> None:
    """To 8 bytes, as the format wants, so that they may be used where they lie."""
    path = _saved(tmp_path)
    content = path.read_bytes()
    assert content.index(PARAMETERS["lora_b"].tobytes()) % 8 == 0
    assert content.index(PARAMETERS["a"].tobytes()) % 8 == 0


def test_a_file_of_another_writer_is_loaded(tmp_path: Path) -> None:
    """Its table stands before its vtable, and holds a version only."""
    path = tmp_path / "y"
    # the root at 8 with its vtable at 20; the field of the format's version at 12, of the adapter's at 16
    table = struct.pack("<iii", 8 - 20, 1, 9)
    path.write_bytes(struct.pack("<I4s", 8, b"TORT") + table + struct.pack("<4H", 8, 12, 4, 8))
    found = load(path)
    assert (found.parameters, found.adapter_version, found.model_version) == ({}, 9, 0)


@pytest.mark.parametrize("content", [b"", b"TORT", b"\0\0\0\0NOPE" + bytes(20), b"\xff\xff\xff\x7fTORT" + bytes(20)])
def test_what_is_no_adapter_is_refused(content: bytes, tmp_path: Path) -> None:
    """With the path."""
    path = tmp_path / "bad"
    path.write_bytes(content)
    with pytest.raises(Fail, match="adapter '.*bad' does not appear to be a valid adapter"):
        load(path)


def test_another_version_of_the_format_is_refused(tmp_path: Path) -> None:
    """There is one."""
    save(AdapterFile({}, format_version=2), tmp_path / "x")
    with pytest.raises(Fail, match="version 2 of the format, and 1 is read"):
        load(tmp_path / "x")


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    """By its own error."""
    with pytest.raises(NoSuchFile, match="does not exist"):
        load(tmp_path / "none")
    with pytest.raises(Fail, match="cannot be read"):
        load(tmp_path)


@pytest.mark.parametrize("array", [np.array(["a"], object), np.array([True]), np.zeros(2, np.complex64)])
def test_other_types_are_not_saved(array: Array, tmp_path: Path) -> None:
    """No file is left."""
    with pytest.raises(InvalidArgument, match="'p' has element type (STRING|BOOL|COMPLEX64)"):
        save(AdapterFile({"p": array}), tmp_path / "x")
    assert not list(tmp_path.iterdir())


def test_broken_files_are_errors(tmp_path: Path) -> None:
    """Whatever bytes are changed, and wherever the file ends."""
    content = _saved(tmp_path).read_bytes()
    choose = random.Random(3)
    path = tmp_path / "broken"
    for _ in range(400):
        changed = bytearray(content[: choose.choice([len(content), choose.randrange(len(content))])])
        for _ in range(choose.randrange(1, 4)):
            if changed:
                changed[choose.randrange(len(changed))] = choose.choice([0, 1, 8, 127, 255])
        path.write_bytes(bytes(changed))
        try:
            load(path)
        except SardonyxError:
            continue
