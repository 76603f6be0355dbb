"""The manifest of an NN package: which models it has, and how they are joined.

    {"major-version": "1", "minor-version": "3", "patch-version": "0", "configs": ["model.cfg"],
     "models": ["a.tflite", "b.circle"], "model-types": ["tflite", "circle"],
     "pkg-inputs": ["0:0:0"], "pkg-outputs": ["1:0:0"], "model-connect": [{"from": "0:0:0", "to": ["1:0:0"]}]}

An end such as "1:0:2" is the model, the subgraph in it, and the input or output of that, all counted from 0. Before version 1.3 a
package of several models is run by its first, or its manifest names a file of connections between tensors by their names.

Source: the specification of NN packages (nnpackage/spec of Samsung's ONE), and its examples.
"""

from __future__ import annotations

import collections
import json
from collections.abc import Mapping
from typing import Any, NoReturn

from sardonyx import errors
from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.errors import InvalidGraph

__all__ = ["PLACE", "Connection", "End", "Manifest", "Part", "read_connections", "read_manifest"]

PLACE = "metadata/MANIFEST"
"""Where the manifest is in a package."""
_MAJOR = 1
_MOST_MODELS, _MOST_COPIES = 1 << 16, 16
_LISTS = ("models", "model-types", "configs", "pkg-inputs", "pkg-outputs", "model-connect", "model-edges")
_KNOWN = ("tflite", "circle", "onnx", "ort")


@dataclasses.dataclass(frozen=True, slots=True)
class End:
    """An input or an output of a model."""

    model: int
    """The model's number."""
    place: int
    """Which of its inputs or outputs."""

    def __str__(self) -> str:
        return f"{self.model}:0:{self.place}"


@dataclasses.dataclass(frozen=True, slots=True)
class Connection:
    """An edge between models."""

    source: End
    """The output."""
    target: End
    """The input that reads it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """A model of a package whose tensors are joined by name."""

    file: str
    """Its file."""
    inputs: tuple[str, ...]
    """What its inputs read."""
    outputs: tuple[str, ...]
    """What its outputs are."""


@dataclasses.dataclass(frozen=True, slots=True)
class Manifest:
    """What a manifest says."""

    models: tuple[str, ...]
    """The files of its models."""
    types: tuple[str, ...]
    """Their formats, as the manifest calls them."""
    configs: tuple[str, ...]
    """Configuration files, in the folder metadata."""
    inputs: tuple[End, ...]
    """The package's inputs; empty where it is run by its first model."""
    outputs: tuple[End, ...]
    """Its outputs."""
    connections: tuple[Connection, ...]
    """What is between its models."""
    connected_by: str
    """The file, in the folder metadata, of connections by name; empty where there is none."""


def read_manifest(content: bytes) -> Manifest:
    """Return what a manifest says.

    Raises:
        InvalidGraph: it is no JSON, or a part of it is not of the form that it should have.
        NotImplemented: another major version, a model type that is not read, or a subgraph other than the first.
    """
    table = _object(content, PLACE)
    for key in _LISTS:
        if not isinstance(table.get(key, []), list):
            _refuse(key, f"expected a list, got {table[key]!r:.80}")
    major = str(table.get("major-version", _MAJOR))
    if major != str(_MAJOR):
        raise errors.NotImplemented(f"{PLACE}: major-version is {major!r:.20}; packages of version {_MAJOR} are read")
    models, types = _texts(table, "models"), _texts(table, "model-types")
    if not models:
        _refuse("models", "it names no model")
    if len(models) > _MOST_MODELS:
        _refuse("models", f"it names {len(models)} models; at most {_MOST_MODELS} are allowed")
    if len(types) != len(models):
        _refuse("model-types", f"it has {len(types)} types for {len(models)} models")
    for name, count in collections.Counter(models).items():
        if count > _MOST_COPIES:
            _refuse("models", f"it names {name!r:.80} {count} times; at most {_MOST_COPIES} are allowed")
    for name, kind in zip(models, types, strict=True):
        if kind not in _KNOWN:
            raise errors.NotImplemented(f"{PLACE}: model {name!r} is of type {kind!r:.40}; {', '.join(_KNOWN)} are read")
    edges = [*table.get("model-connect", []), *table.get("model-edges", [])]
    connections = tuple(connection for index, edge in enumerate(edges) for connection in _connections(edge, index, len(models)))
    ends = [_ends(table, key, len(models)) for key in ("pkg-inputs", "pkg-outputs")]
    if bool(ends[0]) != bool(ends[1]):
        _refuse("pkg-outputs" if ends[0] else "pkg-inputs", "it is empty; a package has both or neither")
    connected_by = table.get("connection", "")
    if not isinstance(connected_by, str):
        _refuse("connection", f"expected the name of a file, got {connected_by!r:.80}")
    return Manifest(models, types, _texts(table, "configs"), ends[0], ends[1], connections, connected_by)


def read_connections(content: bytes, place: str) -> tuple[Part, tuple[Part, ...]]:
    """Return the whole and the parts of a file of connections by name; raises InvalidGraph where it is not of that form."""
    table = _object(content, place)
    parts = table.get("parts")
    if not isinstance(parts, list):
        raise InvalidGraph(f"{place}: parts: expected a list, got {parts!r:.80}")
    return _part(table.get("source"), f"{place}: source"), tuple(
        _part(part, f"{place}: parts[{index}]") for index, part in enumerate(parts)
    )


def _part(found: object, place: str) -> Part:
    if not isinstance(found, dict):
        raise InvalidGraph(f"{place}: expected an object, got {found!r:.80}")
    name, inputs, outputs = (found.get(key) for key in ("file", "inputs", "outputs"))
    lists_are_texts = all(isinstance(item, list) and all(isinstance(text, str) for text in item) for item in (inputs, outputs))
    if not isinstance(name, str) or not lists_are_texts:
        raise InvalidGraph(f"{place}: expected a file, and lists of names as inputs and outputs, got {found!r:.80}")
    return Part(name, tuple(inputs or ()), tuple(outputs or ()))


def _object(content: bytes, place: str) -> Mapping[str, Any]:
    try:
        found = json.loads(content.decode("utf-8"))
    except (RecursionError, ValueError) as error:
        raise InvalidGraph(f"{place}: it is no JSON ({error})") from error
    if not isinstance(found, dict):
        raise InvalidGraph(f"{place}: expected an object, got {found!r:.80}")
    return found


def _texts(table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    for index, item in enumerate(table.get(key, [])):
        if not isinstance(item, str) or not item:
            _refuse(f"{key}[{index}]", f"expected a text, got {item!r:.80}")
    return tuple(table.get(key, []))


def _ends(table: Mapping[str, Any], key: str, models: int) -> tuple[End, ...]:
    return tuple(_end(item, f"{key}[{index}]", models) for index, item in enumerate(table.get(key, [])))


def _connections(edge: object, index: int, models: int) -> tuple[Connection, ...]:
    place = f"model-connect[{index}]"
    if not isinstance(edge, dict) or not isinstance(edge.get("to"), list):
        _refuse(place, f'expected {{"from": END, "to": [END]}}, got {edge!r:.80}')
    source = _end(edge.get("from"), f"{place}.from", models)
    return tuple(Connection(source, _end(item, f"{place}.to[{number}]", models)) for number, item in enumerate(edge["to"]))


def _end(item: object, place: str, models: int) -> End:
    words = item.split(":") if isinstance(item, str) else []
    if len(words) != 3 or not all(word.isascii() and word.isdigit() and len(word) < 10 for word in words):
        _refuse(place, f'expected "MODEL:SUBGRAPH:PLACE", three numbers, got {item!r:.80}')
    model, subgraph, position = map(int, words)
    if model >= models:
        _refuse(place, f"there is no model {model}; the package has {models}")
    if subgraph:
        raise errors.NotImplemented(f"{PLACE}: {place}: subgraph {subgraph} of a model cannot be joined; only the first, 0, can")
    return End(model, position)


def _refuse(place: str, reason: str) -> NoReturn:
    raise InvalidGraph(f"{PLACE}: {place}: {reason}")
