"""Records of decisions: an optimized and partitioned model as bytes, without the weights that its file has.

    content = write_record(elements, decided, providers)
    restored = read_record(content, elements, providers)

Weights of the model's file are numbers, by which they are found in it again, and those of other files places there. Whoever
decided something by the elements of one has read it, so the digests of all that were read until now are in the record, and are
compared before it is used. Weights that the optimizer computed are in the record, which is why there is none where they are large.
"""

from __future__ import annotations

import marshal
import operator
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.cancellation import checked
from sardonyx.digests import sha256
from sardonyx.dtypes import Array, DataType
from sardonyx.formats.files import FileStamp
from sardonyx.formats.plain_graph import NoPlainForm, Place, Plain, PlainReader, PlainWriter
from sardonyx.formats.stored import stored
from sardonyx.ir import Graph, Node, Tensor, Value
from sardonyx.partition.explain import Placement
from sardonyx.partition.part import Cut
from sardonyx.provider import Capability, Partition
from sardonyx.session.decisions.data_files import locations_of
from sardonyx.session.decisions.elements import Elements
from sardonyx.session.decisions.key import RemembersClaims
from sardonyx.session.values import ModelMetadata, NodeArg

__all__ = [
    "Decided",
    "KeptPlacements",
    "Restored",
    "StaleError",
    "plain_placement",
    "read_placement",
    "read_record",
    "write_record",
]

_MOST_HELD_BYTES = 16 << 20
"""The most bytes of weights in a record: those that are small, or that the optimizer computed."""


class StaleError(Exception):
    """A record is of a model with other weights, or it cannot be read."""


@dataclasses.dataclass(frozen=True, slots=True)
class Decided:
    """What is to be kept of a session that is being made."""

    graph: Graph
    """The graph, optimized."""
    placed: Mapping[Tensor, Place]
    """Where elements of weights are in the model's files."""
    stamps: Mapping[Path, FileStamp]
    """What these files were when they were read."""
    inputs: Sequence[Value]
    """The inputs that a feed may name."""
    declared: Sequence[NodeArg]
    """The outputs as the model declares them."""
    defaults: Mapping[str, Array]
    """Inputs that a feed may leave out."""
    metadata: ModelMetadata
    """What the file says about itself."""
    cuts: Sequence[Cut]
    """Who runs what, in an order in which that can run."""
    placements: Sequence[Placement]
    """The same for reports."""
    report: Plain
    """What the optimizer did."""


@dataclasses.dataclass(frozen=True, slots=True)
class Restored:
    """What a record holds."""

    graph: Graph
    """The graph."""
    inputs: tuple[Value, ...]
    """The inputs that a feed may name."""
    declared: tuple[NodeArg, ...]
    """The outputs as the model declares them."""
    defaults: Mapping[str, Array]
    """Inputs that a feed may leave out."""
    metadata: ModelMetadata
    """What the file says about itself."""
    cuts: tuple[Cut, ...]
    """Who runs what."""
    placements: tuple[Placement, ...]
    """The same for reports."""
    report: Plain
    """What the optimizer did."""
    locations: Sequence[str]
    """By which its tensors name other files."""
    stamps: Mapping[Path, FileStamp]
    """What those files were when they were opened."""


def write_record(elements: Elements, decided: Decided, providers: Sequence[RemembersClaims]) -> bytes | None:
    """Return the record of a model; None where it holds what cannot be kept, or much that is computed of weights.

    Nor is there one where another file was replaced since it was read.

    Args:
        elements: of the model's weights.
        decided: what was decided.
        providers: of the session.

    Raises:
        SardonyxError: a file has changed.
    """
    writer = PlainWriter(decided.placed, _MOST_HELD_BYTES)
    try:
        graph = writer.graph(
            decided.graph, (*decided.inputs, *(value for part in decided.cuts for value in _values_of(part.partition)))
        )
        places = {node: place for place, node in enumerate(decided.graph)}
        defaults = tuple((name, writer.array(array)) for name, array in decided.defaults.items())
        content = (
            tuple((item.name, item.decision_facts()) for item in providers),
            _digests(elements, decided.placed),
            graph,
            writer.numbers(decided.inputs),
            tuple((item.name, item.type, tuple(item.shape)) for item in decided.declared),
            defaults,
            tuple(getattr(decided.metadata, field.name) for field in dataclasses.fields(ModelMetadata)),
            tuple(_cut(writer, places, part) for part in decided.cuts),
            tuple(plain_placement(place) for place in checked(decided.placements)),
            decided.report,
            tuple(locations_of(decided.placed.values())),
        )
        return marshal.dumps(content) if elements.stamps.items() <= decided.stamps.items() else None
    except (NoPlainForm, KeyError, ValueError):  # the last where a text or a number is of a type of somebody's own
        return None


def read_record(content: bytes, elements: Elements, providers: Mapping[str, Any]) -> Restored:
    """Return what a record holds.

    Args:
        content: what `write_record` returned.
        elements: of a model with the same message.
        providers: of the session, by name; Any: providers that remember claims.

    Raises:
        StaleError: the model has other weights, or the record is damaged.
        SardonyxError: a file has changed or is not there, or a node cannot be claimed again.
    """
    try:
        facts, digests, plain, inputs, declared, defaults, metadata, cuts, placements, report, locations = marshal.loads(content)
        for place, digest in checked(digests):
            if _digest(elements, place) != digest:
                raise StaleError(f"weight {place} of the model has other elements")
        for name, own in facts:
            providers[name].take_facts(own)

        def tensor_of(dtype: DataType, shape: tuple[int, ...], place: Place) -> Tensor:
            return Tensor(dtype, shape, stored(*elements.find(place), dtype, shape))

        reader = PlainReader(tensor_of)
        graph = reader.graph(plain)
        nodes = tuple(graph)
        return Restored(
            graph,
            reader.of(inputs),
            tuple(NodeArg(name, kind, list(shape)) for name, kind, shape in declared),
            {name: reader.array(array) for name, array in defaults},
            ModelMetadata(*metadata),
            tuple(_restored(reader, graph, nodes, providers, *part) for part in cuts),
            tuple(read_placement(*place) for place in placements),
            report,
            locations,
            elements.stamps,
        )
    except (AttributeError, EOFError, LookupError, TypeError, ValueError) as error:
        raise StaleError(f"{type(error).__name__}: {error}") from error


def _values_of(partition: Partition) -> tuple[Value, ...]:
    reads = (value for unit in partition.units for value in unit.reads)
    return (*partition.inputs, *partition.constants, *partition.outputs, *reads)


def _digests(elements: Elements, placed: Mapping[Tensor, Place]) -> Plain:
    read = sorted({place for tensor, place in placed.items() if tensor.was_read}, key=repr)
    return tuple((place, _digest(elements, place)) for place in checked(read))


def _digest(elements: Elements, place: Place) -> bytes:
    content, offset, size_bytes = elements.find(place)
    return sha256(content.read(offset, size_bytes)).digest()


def _cut(writer: PlainWriter, places: Mapping[Node, int], part: Cut) -> Plain:
    partition, provider = part.partition, part.provider
    if not isinstance(provider, RemembersClaims):
        raise NoPlainForm(f"claims of {part.provider.name}")
    return (
        part.provider.name,
        partition.name,
        tuple(places[node] for node in partition.nodes),
        tuple(_unit(writer, places, provider, unit) for unit in checked(partition.units)),
        writer.numbers(partition.inputs),
        writer.numbers(partition.constants),
        writer.numbers(partition.outputs),
    )


def _unit(writer: PlainWriter, places: Mapping[Node, int], provider: RemembersClaims, unit: Capability) -> Plain:
    if not unit.owns_bodies and any(node.subgraphs for node in unit.nodes):
        raise NoPlainForm("a subgraph that several providers may share")
    noted = provider.note(unit)
    return (
        tuple(places[node] for node in unit.nodes),
        unit.fused,
        unit.name,
        unit.keeps_layout,
        unit.owns_bodies,
        unit.alone,
        writer.numbers(unit.reads),
        None if noted is None else tuple(tuple(map(writer.dim, elements)) for elements in noted),
    )


def _restored(
    reader: PlainReader,
    graph: Graph,
    nodes: Sequence[Node],
    providers: Mapping[str, Any],
    owner: str,
    name: str,
    places: Sequence[int],
    units: Sequence[Plain],
    inputs: Sequence[int],
    constants: Sequence[int],
    outputs: Sequence[int],
) -> Cut:
    provider, claims = providers[owner], []
    for own, fused, title, keeps_layout, owns_bodies, alone, reads, noted in checked(units):
        claim = Capability(
            tuple(nodes[place] for place in own),
            fused,
            title,
            keeps_layout=keeps_layout,
            owns_bodies=owns_bodies,
            alone=alone,
            reads=reader.of(reads),
        )
        elements = None if noted is None else tuple(tuple(map(reader.dim, item)) for item in noted)
        claims.append(provider.claim_again(claim, elements))
    own_nodes = tuple(nodes[place] for place in places)
    partition = Partition(name, graph, own_nodes, tuple(claims), reader.of(inputs), reader.of(constants), reader.of(outputs))
    return Cut(provider, partition)


def read_placement(
    node: str, op_type: str, version: int, graph: str, provider: str, partition: str, unit: str, declined: Sequence[tuple[str, str]]
) -> Placement:
    """Return what the parts of a `plain_placement` say."""
    return Placement(node, op_type, version, graph, provider, partition, unit, dict(declined))


class KeptPlacements(Sequence[Placement]):
    """Placements that are read when somebody asks for them, which few sessions do."""

    def __init__(self, count: int, plain: Callable[[], Sequence[Plain]]) -> None:
        """Keep how many there are, and what returns what `plain_placement` did of each."""
        self._count, self._plain = count, plain
        self._read: tuple[Placement, ...] | None = None

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Placement: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Placement]: ...

    def __getitem__(self, index: int | slice) -> Placement | Sequence[Placement]:
        read = self._read
        if read is None:
            read = self._read = tuple([read_placement(*place) for place in self._plain()])
        return read[index]


_plain_fields = operator.attrgetter(*(x.name for x in dataclasses.fields(Placement) if x.name not in ("declined", "precision")))


def plain_placement(place: Placement) -> Plain:
    """Return where a node runs."""
    return (*_plain_fields(place), tuple(place.declined.items()))
