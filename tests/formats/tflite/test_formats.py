"""TensorFlow Lite and Circle among the formats of models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.flat_models import Sketch

import sardonyx
from sardonyx.errors import InvalidFlatBuffer
from sardonyx.formats.files import MemoryContent
from sardonyx.formats.flat.schema_circle import CIRCLE as CIRCLE_SCHEMA
from sardonyx.formats.model_format import ModelFile
from sardonyx.formats.registry import find_format
from sardonyx.formats.tflite.formats import CIRCLE, TFLITE


def _data(sketch: Sketch) -> bytes:
    x, y = sketch.input((300,)), sketch.tensor((300,))
    sketch.operator("ADD", [x, sketch.constant(np.arange(300, dtype=np.float32))], [y])
    return sketch.model([y])


def _file(data: bytes) -> ModelFile:
    return ModelFile(None, MemoryContent(memoryview(data)))


def test_files_are_recognised_by_their_content() -> None:
    """By the four bytes at offset 4."""
    assert find_format(_file(_data(Sketch()))) is TFLITE
    assert find_format(_file(_data(Sketch(CIRCLE_SCHEMA)))) is CIRCLE


@pytest.mark.parametrize("name", ["model.tflite", "anything"])
def test_a_session_takes_a_path(tmp_path: Path, name: str) -> None:
    """Whatever its name."""
    path = tmp_path / name
    path.write_bytes(_data(Sketch()))
    found = sardonyx.InferenceSession(path).run(None, {"t0": np.ones(300, np.float32)})
    np.testing.assert_array_equal(found[0], np.arange(300) + 1)


def test_large_buffers_are_found_without_reading_them() -> None:
    """For the cache of decisions."""
    data = _data(Sketch())
    assert TFLITE.large_data is not None
    [(offset, size_bytes)] = TFLITE.large_data(_file(data))
    assert data[offset : offset + size_bytes] == np.arange(300, dtype=np.float32).tobytes()


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    """With its name."""
    path = tmp_path / "cut.tflite"
    path.write_bytes(_data(Sketch())[:700])
    with pytest.raises(InvalidFlatBuffer, match="cut.tflite"):
        sardonyx.InferenceSession(path)
