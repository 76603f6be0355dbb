"""Models as tools take and return them: paths and onnx.ModelProto."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TypeAlias

from sardonyx.errors import InvalidArgument
from sardonyx.formats import onnx as onnx_format
from sardonyx.formats.protos import Message
from sardonyx.ir import Model

__all__ = ["Given", "graphs_of", "read", "save", "to_proto"]

Given: TypeAlias = "str | os.PathLike[str] | Message"
"""A path, or an onnx.ModelProto."""


def read(given: Given) -> Model:
    """Return the model of a path or of an onnx.ModelProto, the caller's own.

    Raises:
        InvalidArgument: it is neither.
        NoSuchFile, InvalidProtobuf, InvalidGraph: it cannot be read.
    """
    if not isinstance(given, (str, os.PathLike)) and not hasattr(given, "opset_import"):
        raise InvalidArgument(f"expected the path of a model or an onnx.ModelProto, got {type(given).__name__}")
    return onnx_format.load(given)


def to_proto(model: Model) -> Message:
    """Return the onnx.ModelProto of a model, with all data inside."""
    return onnx_format.to_proto(model)


def save(proto: Message, path: str | os.PathLike[str], *, external_data: bool | None = None, data_name: str = "") -> None:
    """Write an onnx.ModelProto; its data to a file beside it where asked for, or where protobuf could not hold it."""
    onnx_format.save(onnx_format.load(proto), path, external_data=external_data, data_name=data_name)


def graphs_of(graph: Message) -> Iterator[Message]:
    """Yield an onnx.GraphProto, then the graphs in the attributes of its nodes at every depth."""
    stack = [graph]
    while stack:
        current = stack.pop()
        yield current
        for attribute in (attribute for node in current.node for attribute in node.attribute):
            stack += [attribute.g] if attribute.HasField("g") else []
            stack += list(attribute.graphs)
