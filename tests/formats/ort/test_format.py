"""ONNX Runtime's format among others."""

from pathlib import Path

from sardonyx.formats.files import MemoryContent
from sardonyx.formats.model_format import ModelFile
from sardonyx.formats.ort.format import ORT
from sardonyx.formats.registry import find_format, format_for_path


def test_files_are_recognised_by_their_identifier() -> None:
    """At byte 4."""
    file = ModelFile(None, MemoryContent(memoryview(b"\x20\0\0\0ORTM" + bytes(40))))
    assert ORT.recognizes(file)
    assert find_format(file) is ORT


def test_names_of_its_files_end_in_ort() -> None:
    """As onnxruntime has it."""
    assert format_for_path(Path("model.ort")) is ORT
