"""TensorFlow Lite and Circle among the formats of models."""

from __future__ import annotations

import functools

from sardonyx.forks import without_fork
from sardonyx.formats.flat.blocks import in_blocks
from sardonyx.formats.flat.reader import read_root
from sardonyx.formats.flat.schema import Schema
from sardonyx.formats.flat.schema_circle import CIRCLE as CIRCLE_SCHEMA
from sardonyx.formats.flat.schema_tflite import TFLITE as TFLITE_SCHEMA
from sardonyx.formats.model_format import LARGE_BYTES, ModelFile, ModelFormat
from sardonyx.ir import Model

__all__ = ["CIRCLE", "TFLITE"]


def _recognizes(schema: Schema, file: ModelFile) -> bool:
    return not file.is_folder and file.start[4:8] == schema.identifier


def _load(schema: Schema, file: ModelFile) -> Model:
    with without_fork():
        from sardonyx.formats.tflite.load import load  # which a model that is known does not need

    return load(file, schema)


def _large_data(schema: Schema, file: ModelFile) -> list[tuple[int, int]]:
    """Return where buffers lie, those that overlap left out."""
    model = read_root(in_blocks(file.content), schema, file.label)
    places = []
    for buffer in model.tables("buffers"):
        offset, size_bytes = buffer.integer("offset"), buffer.integer("size")
        places.append((offset, size_bytes) if offset > 1 else buffer.blob("data"))
    apart: list[tuple[int, int]] = []
    end = 0
    for offset, size_bytes in sorted(places):
        if size_bytes >= LARGE_BYTES and offset >= end:
            apart.append((offset, size_bytes))
            end = offset + size_bytes
    return apart


def _format(schema: Schema, suffix: str) -> ModelFormat:
    return ModelFormat(
        schema.name,
        (suffix,),
        functools.partial(_recognizes, schema),
        functools.partial(_load, schema),
        large_data=functools.partial(_large_data, schema),
    )


TFLITE = _format(TFLITE_SCHEMA, ".tflite")
"""TensorFlow Lite models, which LiteRT runs."""
CIRCLE = _format(CIRCLE_SCHEMA, ".circle")
"""Circle models, which onert runs."""
