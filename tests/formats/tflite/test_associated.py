"""Files that come with a model of TensorFlow Lite."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest
from support.flat_models import one

import sardonyx
from sardonyx.formats.files import MemoryContent
from sardonyx.formats.tflite.associated import texts

MODEL = one("RELU", [((2,), "FLOAT32")], ((2,), "FLOAT32"))


def _with(files: dict[str, bytes], kind: int = zipfile.ZIP_DEFLATED) -> bytes:
    target = io.BytesIO(MODEL)
    with zipfile.ZipFile(target, "a", kind) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return target.getvalue()


def _texts(data: bytes) -> dict[str, str]:
    return texts(MemoryContent(memoryview(data)))


@pytest.mark.parametrize("kind", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_text_behind_a_model_is_metadata_of_its_session(kind: int) -> None:
    """And the model runs as it does without."""
    session = sardonyx.InferenceSession(_with({"labels.txt": "cat\nkäse\n".encode()}, kind))
    assert session.get_modelmeta().custom_metadata_map["file:labels.txt"] == "cat\nkäse\n"
    assert session.run(None, {session.get_inputs()[0].name: np.float32([-1, 2])})[0].tolist() == [0, 2]


def test_what_is_no_text_is_left_out() -> None:
    """Bytes, and folders."""
    assert _texts(_with({"image.png": b"\xff\xfe", "folder/": b"", "a.txt": b"a"})) == {"a.txt": "a"}


def test_a_text_that_grows_beyond_a_mebibyte_is_left_out() -> None:
    """Also one that few bytes are the packing of."""
    assert _texts(_with({"large.txt": b"a" * (1 << 21), "a.txt": b"a"})) == {"a.txt": "a"}


def test_a_model_without_files_has_none() -> None:
    """Nor has one whose archive is damaged."""
    assert _texts(MODEL) == {}
    data = bytearray(_with({"a.txt": b"a"}))
    data[-10:-6] = b"\xff\xff\xff\x7f"
    assert _texts(bytes(data)) == {}
    assert _texts(_with({"a.txt": b"a"})[:-5]) == {}


def test_a_file_whose_bytes_are_damaged_is_left_out() -> None:
    """The others are read."""
    data = _with({"a.txt": b"a" * 40, "b.txt": b"b"}, zipfile.ZIP_STORED)
    assert _texts(data.replace(b"a" * 40, b"a" * 39 + b"c")) == {"b.txt": "b"}
