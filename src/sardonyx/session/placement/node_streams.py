"""The config entry `session.node_partition_config_file`: which nodes are one stream, in onnxruntime's form.

    {"type": "DeviceBasedPartitioner", "streams": [["/left/Conv", "/left/Relu"], ["/right/Conv"]], "devices": ["0", "0"]}

Nodes of two streams are never in one partition, so the parallel executor can run streams at once that do not wait for one another,
though one provider runs both. A node that no stream names goes with what it reads, else with what reads it; what reads of several
is a stream of its own. Names are those that `explain` shows of the main graph. A file that is not there is written, with a stream
for each provider; devices are not read, as they follow from who runs the nodes.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.errors import Fail, InvalidArgument
from sardonyx.ir import Graph, Node
from sardonyx.partition.assign import Unit
from sardonyx.partition.node_memory import name_of
from sardonyx.session.settings.keys import STREAMS

__all__ = ["split_streams"]

_TYPE = "DeviceBasedPartitioner"
_NO_STREAM = 0


def split_streams(graph: Graph, units: Mapping[Node, Unit], path: Path) -> dict[Node, Unit]:
    """Return `units`, of the nodes of `graph`, in the streams that the file at `path` says.

    Raises:
        InvalidArgument: the file is malformed, or names a node twice or one that is not there.
        Fail: there is no file, and none can be written.
    """
    if not path.is_file():
        _write(path, units)
        return dict(units)
    streams = _read(path)
    known = {name_of(node) for node in graph}
    missing = next((name for name in streams if name not in known), None)
    if missing is not None:
        close = difflib.get_close_matches(missing, known, 2, 0.5)
        hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
        raise InvalidArgument(f"{path.name} names node {missing!r}, which the optimized model does not have{hint}")
    chosen = _spread(graph, {node: streams[name_of(node)] for node in graph if name_of(node) in streams})
    found: dict[Node, Unit] = {}
    for unit in dict.fromkeys(units.values()):
        stream = next((chosen[node] for node in unit.capability.nodes if node in chosen), _NO_STREAM)
        found.update(dict.fromkeys(unit.capability.nodes, dataclasses.replace(unit, stream=stream)))
    return found


def _spread(graph: Graph, named: Mapping[Node, int]) -> dict[Node, int]:
    """Return the streams of nodes that are named, and of those that go with them."""
    found = dict(named)
    for node in graph:
        makers = (value.producer for value in node.inputs if value is not None)
        _go_with(node, (maker for maker in makers if maker is not None), found)
    for node in reversed(list(graph)):
        _go_with(node, (user for value in node.outputs for user, _ in value.uses if isinstance(user, Node)), found)
    return found


def _go_with(node: Node, others: Iterable[Node], found: dict[Node, int]) -> None:
    streams = {found[other] for other in others if other in found}
    if streams:
        found.setdefault(node, streams.pop() if len(streams) == 1 else _NO_STREAM)


def _read(path: Path) -> dict[str, int]:
    """Name of a node -> its stream, from 1 on."""
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise InvalidArgument(f"{path.name}: it is no JSON file: {error}") from error
    streams = facts.get("streams") if isinstance(facts, dict) else None
    if not isinstance(streams, list) or not all(isinstance(names, list) and all(map(_is_text, names)) for names in streams):
        raise InvalidArgument(f'{path.name}: expected {{"type": "{_TYPE}", "streams": [[names], ...]}}, got {facts!r:.200}')
    if facts.get("type", _TYPE) != _TYPE:
        raise InvalidArgument(f"{path.name}: the type is {_TYPE}, got {facts['type']!r}")
    found: dict[str, int] = {}
    for number, names in enumerate(streams, 1):
        for name in names:
            if found.setdefault(name, number) != number:
                raise InvalidArgument(f"{path.name}: node {name!r} is in stream {found[name]} and in stream {number}; leave one")
    return found


def _is_text(item: object) -> bool:
    return isinstance(item, str)


def _write(path: Path, units: Mapping[Node, Unit]) -> None:
    streams: dict[str, list[str]] = {}
    written: set[str] = set()
    for node, unit in units.items():
        if name_of(node) not in written:
            written.add(name_of(node))
            streams.setdefault(unit.provider.name, []).append(name_of(node))
    facts = {"type": _TYPE, "streams": list(streams.values()), "devices": list(streams)}
    try:
        path.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise Fail(f"{STREAMS.name}: {str(path)!r} is not there and cannot be written: {error.strerror or error}") from error
