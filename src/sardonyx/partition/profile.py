"""What measuring found: how long each provider takes for each operator and size, and for copies; kept in a JSON file.

A node is known by a key: operator, version, attributes, and the types of what it reads and makes. For one whose key was not
measured, time is interpolated over the bytes that it reads and makes, among the samples of its provider and operator.
"""

from __future__ import annotations

import bisect
import functools
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import DataType, bit_width
from sardonyx.errors import InvalidArgument, NoSuchFile
from sardonyx.forks import without_fork
from sardonyx.ir import Graph, Node, Tensor, TensorType, Value
from sardonyx.ir.shape import evaluate, product

__all__ = ["Copies", "Profile", "Sample", "key_of", "key_of_graph", "load_profile", "save_profile", "value_bytes"]

_FORMAT = 1


@dataclasses.dataclass(frozen=True, slots=True)
class Sample:
    """One operator of one size on one provider."""

    provider: str
    """Who ran it."""
    operator: str
    """What: the operator, with its domain where that is not ai.onnx."""
    key: str
    """The node's key."""
    size_bytes: float
    """What it reads and makes."""
    alone_us: float
    """How long it took by itself, in microseconds."""
    inside_us: float
    """How long it takes as part of a partition: its share of what a whole one took."""
    output_bytes: tuple[float, ...] = ()
    """How large each of its outputs was."""


@dataclasses.dataclass(frozen=True, slots=True)
class Copies:
    """What copying between the host and one memory takes: (bytes, microseconds), by rising size."""

    to_host: tuple[tuple[float, float], ...]
    """From the memory."""
    from_host: tuple[tuple[float, float], ...]
    """To the memory."""


@dataclasses.dataclass(frozen=True, slots=True)
class Profile:
    """All that was measured."""

    samples: tuple[Sample, ...] = ()
    """Operators on providers."""
    steps_us: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Provider -> what one more partition costs there."""
    copies: Mapping[str, Copies] = dataclasses.field(default_factory=dict)
    """Memory -> what copies to and from it cost."""
    sizes: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """Symbol -> the size that it had."""
    models: Mapping[str, Mapping[str, float]] = dataclasses.field(default_factory=dict)
    """Key of a graph -> provider -> microseconds of a run where it is asked first; under "measured" where the profile decides."""
    widened_for: str = ""
    """The provider for which narrow floats were widened that it does not run; "" for those that no provider runs."""
    border_factor: float = 1.0
    """What borders between partitions are multiplied by, so that predictions come true."""

    def inside_us(self, provider: str, node: Node) -> float | None:
        """Return what `node` takes on `provider` as part of a partition, or None where nothing like it was measured."""
        tables = _tables(self)
        exact = tables.by_key.get((provider, key_of(node)))
        if exact is not None:
            return exact.inside_us
        points = tables.by_operator.get((provider, operator_of(node)))
        return None if points is None else interpolated(points, self.size_bytes(node))

    def knows(self, providers: Iterable[str], nodes: Sequence[Node]) -> bool:
        """Return whether anything like one of `nodes` was measured on one of the providers; also where there are no nodes."""
        return not nodes or any(self.inside_us(name, node) is not None for name in providers for node in nodes)

    def saved_us(self, provider: str, node: Node) -> float:
        """Return what `node` takes more on `provider` by itself than inside a partition; 0 where that was not measured."""
        exact = _tables(self).by_key.get((provider, key_of(node)))
        return 0.0 if exact is None else exact.alone_us - exact.inside_us

    def output_bytes(self, node: Node) -> list[float]:
        """Return how large each output of `node` is; 0 where that is not known."""
        tables = _tables(self)
        known = tables.outputs.get(key_of(node))
        if known is not None:
            return list(known)
        return [value_bytes(value, self.sizes) for value in node.outputs]

    def size_bytes(self, node: Node) -> float:
        """Return what `node` reads and makes."""
        return sum(value_bytes(value, self.sizes) for value in (*node.inputs, *node.outputs) if value is not None)

    def copy_us(self, memory: str, size_bytes: float, *, to_host: bool) -> float:
        """Return what it takes to copy so many bytes between the host and a memory; 0 for one that was not measured."""
        copies = self.copies.get(memory)
        points = () if copies is None else copies.to_host if to_host else copies.from_host
        return interpolated(points, size_bytes) if points else 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class _Tables:
    by_key: dict[tuple[str, str], Sample]
    by_operator: dict[tuple[str, str], list[tuple[float, float]]]
    outputs: dict[str, tuple[float, ...]]


def _tables(profile: Profile) -> _Tables:
    return _made_tables(profile.samples)


@functools.lru_cache(maxsize=8)
def _made_tables(samples: tuple[Sample, ...]) -> _Tables:
    by_operator: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for sample in samples:
        by_operator.setdefault((sample.provider, sample.operator), []).append((sample.size_bytes, sample.inside_us))
    return _Tables(
        by_key={(sample.provider, sample.key): sample for sample in samples},
        by_operator={key: sorted(points) for key, points in by_operator.items()},
        outputs={sample.key: sample.output_bytes for sample in samples},
    )


def interpolated(points: Sequence[tuple[float, float]], size: float) -> float:
    """Return the height at `size` of the line through `points`, by rising size; a single one goes for all, and none is below 0.

    Beyond the last the last piece goes on; below the first its height stays.
    """
    sizes = [point[0] for point in points]
    place = bisect.bisect_right(sizes, size)
    if place == 0 or len(points) == 1:
        return points[0][1]
    left, right = points[min(place, len(points) - 1) - 1], points[min(place, len(points) - 1)]
    if right[0] == left[0]:
        return right[1]
    return max(0.0, left[1] + (right[1] - left[1]) * (size - left[0]) / (right[0] - left[0]))


def operator_of(node: Node) -> str:
    """Return the operator of `node`, with its domain where that is not ai.onnx."""
    return f"{node.domain}.{node.op_type}" if node.domain else node.op_type


def key_of(node: Node) -> str:
    """Return what a node is to a profile: the same for nodes that take the same time."""
    attributes = ",".join(f"{name}={_text(node.attributes[name].value)}" for name in sorted(node.attributes))
    reads = ",".join(_type_text(value) for value in node.inputs)
    makes = ",".join(_type_text(value) for value in node.outputs)
    text = f"{operator_of(node)}:{node.version}({reads})->({makes}){{{attributes}}}"
    return _code(text.encode("utf-8", "surrogatepass"))


def key_of_graph(nodes: Iterable[Node]) -> str:
    """Return what a graph of these nodes, in their order, is to a profile."""
    text = " ".join(map(key_of, nodes))
    return _code(text.encode())


def _code(content: bytes) -> str:
    with without_fork():
        import hashlib  # loads OpenSSL, which few sessions need

    return hashlib.sha1(content, usedforsecurity=False).hexdigest()[:16]


def value_bytes(value: Value, sizes: Mapping[str, int]) -> float:
    """Return how large a tensor is where its symbols have these sizes; 0 where its type or a symbol is not known."""
    if not isinstance(value.type, TensorType) or value.shape is None:
        return 0.0
    width = 64 if value.type.dtype is DataType.STRING else max(8, bit_width(value.type.dtype))
    try:
        return evaluate(product(value.shape), sizes) * width / 8
    except KeyError:
        return 0.0


def _type_text(value: Value | None) -> str:
    if value is None:
        return "_"
    text = re.sub(r"\?\d+", "?", f"{value.type}{'' if value.shape is None else value.shape}")
    return f"{text}=" if value.constant is not None else text


def _text(value: object) -> str:
    """Return an attribute's value as text: of tensors and graphs the kind alone."""
    if isinstance(value, Tensor):
        return f"{value.dtype}{value.shape}"
    return "graph" if isinstance(value, Graph) else str(value)


def save_profile(profile: Profile, path: str | os.PathLike[str]) -> None:
    """Write `profile` as JSON."""
    facts = {"format": _FORMAT, **dataclasses.asdict(profile)}
    Path(path).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def load_profile(path: str | os.PathLike[str]) -> Profile:
    """Read what `save_profile` wrote.

    Raises:
        NoSuchFile: there is no such file.
        InvalidArgument: it is no profile.
    """
    place = Path(path)
    if not place.is_file():
        raise NoSuchFile(f"there is no profile {str(place)!r}; make it by `sardonyx profile --placement MODEL -o {place.name}`")
    try:
        facts = json.loads(place.read_text(encoding="utf-8"))
        found = facts.pop("format")
        if found != _FORMAT:
            raise InvalidArgument(f"profile {place.name}: it has format {found!r}, this version reads {_FORMAT}; measure again")
        return _read(facts)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument(f"profile {place.name}: it is not what `sardonyx profile --placement` writes: {error}") from error


def _read(facts: dict[str, Any]) -> Profile:
    copies = {
        memory: Copies(**{way: tuple((float(size), float(time)) for size, time in points) for way, points in found.items()})
        for memory, found in facts["copies"].items()
    }
    return Profile(
        samples=tuple(map(_read_sample, facts["samples"])),
        steps_us=_numbers(facts["steps_us"]),
        copies=copies,
        sizes={name: int(size) for name, size in facts["sizes"].items()},
        models={key: _numbers(times) for key, times in facts["models"].items()},
        widened_for=str(facts.get("widened_for", "")),
        border_factor=float(facts["border_factor"]),
    )


def _read_sample(facts: dict[str, Any]) -> Sample:
    return Sample(
        provider=str(facts["provider"]),
        operator=str(facts["operator"]),
        key=str(facts["key"]),
        size_bytes=float(facts["size_bytes"]),
        alone_us=float(facts["alone_us"]),
        inside_us=float(facts["inside_us"]),
        output_bytes=tuple(map(float, facts["output_bytes"])),
    )


def _numbers(facts: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(number) for name, number in facts.items()}
