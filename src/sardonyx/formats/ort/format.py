"""ONNX Runtime's own format as one format among others."""

from __future__ import annotations

from sardonyx.formats.model_format import ModelFormat
from sardonyx.formats.ort.read import large_data, read
from sardonyx.formats.ort.write import write

__all__ = ["ORT"]

ORT = ModelFormat("ORT", (".ort",), lambda file: file.start[4:8] == b"ORTM", read, write, large_data)
"""Files that ONNX Runtime saves with `session.save_model_format`."""
