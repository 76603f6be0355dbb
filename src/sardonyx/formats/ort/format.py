"""ONNX Runtime's own format as one format among others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sardonyx.forks import without_fork
from sardonyx.formats.model_format import Loss, ModelFormat
from sardonyx.formats.ort.read import large_data, read
from sardonyx.ir import Model

__all__ = ["ORT"]


def _write(model: Model, path: Path) -> Sequence[Loss]:
    with without_fork():
        from sardonyx.formats.ort.write import write  # which sessions do not need

    return write(model, path)


ORT = ModelFormat("ORT", (".ort",), lambda file: file.start[4:8] == b"ORTM", read, _write, large_data)
"""Files that ONNX Runtime saves with `session.save_model_format`."""
