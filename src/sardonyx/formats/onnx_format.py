"""ONNX as one format among others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sardonyx.formats import onnx
from sardonyx.formats.model_format import Loss, ModelFile, ModelFormat
from sardonyx.formats.opened import open_model
from sardonyx.ir import Model

__all__ = ["ONNX"]


def _load(file: ModelFile) -> Model:
    source = file.content.read(0, len(file.content)) if file.path is None else file.path
    return onnx.load(source, external_dir=file.folder, in_memory=file.in_memory, opened=open_model(source, file.path))


def _save(model: Model, path: Path) -> Sequence[Loss]:
    onnx.save(model, path)
    return ()


ONNX = ModelFormat("ONNX", (".onnx",), lambda file: not file.is_folder, _load, _save)
"""The format that everything is taken for that no other format recognises."""
