"""A format of a user's: "TOY1", a number of floats, and the floats, of which the model is x + floats."""

import struct
from pathlib import Path

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph
from sardonyx.formats.model_format import Loss, ModelFile, ModelFormat
from sardonyx.ir import Model
from sardonyx.ir.text import parse_model

MARK = b"TOY1"


def count_in(file: ModelFile) -> int:
    """Return how many floats a file has."""
    (count,) = struct.unpack("<I", bytes(file.content.read(4, 4)))
    if 8 + 4 * count > len(file.content):
        raise InvalidGraph(f"{count} floats do not fit the file")
    return int(count)


def load(file: ModelFile) -> Model:
    """Return the model of a file."""
    count = count_in(file)
    model = parse_model(
        f"opset 21\ngraph toy(x: float[{count}]) -> (y: float[{count}]) {{\nw: float[{count}] = ...\ny = Add(x, w)\n}}"
    )
    model.graph.initializers["w"].constant = file.tensor(DataType.FLOAT, (count,), 8, 4 * count, "w")
    return model


def save(model: Model, path: Path) -> list[Loss]:
    """Write the only initializer of a model."""
    (value,) = model.graph.initializers.values()
    assert value.constant is not None
    path.write_bytes(content_of(value.constant.numpy()))
    return [Loss("graph", "its name is left out")]


def content_of(floats: object) -> bytes:
    """Return the bytes of a file."""
    array = np.asarray(floats, np.float32)
    return MARK + struct.pack("<I", array.size) + array.tobytes()


TOY = ModelFormat(
    "TOY",
    (".toy",),
    lambda file: file.start.startswith(MARK),
    load,
    save,
    lambda file: [(8, 4 * count_in(file))] if count_in(file) > 256 else [],
)
"""The format."""
