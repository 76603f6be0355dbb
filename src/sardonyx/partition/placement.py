"""Manual placement: which provider is to run which nodes, by operator, node, index or annotation (`pins.py` has the notation).

A model may say it itself: the metadata "sardonyx.provider" of a node names its provider. The nearest wins: a node's name, its
index, its own "sardonyx.provider", its annotation, its operator. Names, indices and annotations are those of the file: before
optimization `pin` notes them in the metadata of the nodes, which new nodes inherit from those that they replace; no rule replaces
nodes that are placed apart. Operators are those that reach the partitioner, and functions of the model.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence

from sardonyx.errors import InvalidArgument
from sardonyx.ir import Graph, Model, Node
from sardonyx.ir.walk import nested_graphs
from sardonyx.ops.families import FAMILIES
from sardonyx.ops.schema import NHWC_DOMAIN
from sardonyx.ops.schemas import find_schema
from sardonyx.optimize.edit import PROVIDER_KEY
from sardonyx.partition.pins import Pins
from sardonyx.trace import event

__all__ = ["ANNOTATION_KEY", "find_provider", "pin", "placed_nodes"]

ANNOTATION_KEY = "layer_ann"
"""The metadata of a node that annotations are compared with; onnxruntime's name for it."""
_NEWEST = 1 << 30


def find_provider(name: str, known: Sequence[str], what: str) -> str:
    """Return the provider of `known` that `name` means, "ExecutionProvider" left out or not.

    `what` begins the message of the error.
    """
    for candidate in (name, f"{name}ExecutionProvider"):
        if candidate in known:
            return candidate
    hint = _hint(name, known)
    raise InvalidArgument(f"{what} names provider {name!r}, which the session does not have; it has {list(known)}{hint}")


def pin(model: Model, pins: Pins, providers: Sequence[str]) -> None:
    """Note in the metadata of the nodes of `model`, as the file has them, where names, indices and annotations place them.

    A "sardonyx.provider" of the file that names no provider of the session is dropped: the model runs where a device is missing.

    Raises:
        InvalidArgument: a pin names a provider that the session does not have, or a node that the model does not.
    """
    nodes = [node for graph in nested_graphs(model.graph) for node in graph]
    for node in nodes:
        _check_own(node, providers)
    targets = _targets(pins, providers)
    labels = [(text, targets[f"layer:{text}"]) for text in sorted(pins.layers, key=_is_exact)[::-1]]
    labels += [(text, targets[f"annotation:{text}"]) for text in sorted(pins.annotations, key=len)]
    parts = [(text, targets[f"part:{text}"]) for text in sorted(pins.name_parts, key=len)]
    for node in nodes if labels or parts else ():
        _place_by_text(node, labels, parts)
    _warn_of_unused(pins.annotations, nodes)
    for index in pins.indices:
        if not 0 <= index < len(model.graph):
            raise InvalidArgument(f"the placement names node {index}; the main graph has {len(model.graph)} nodes, counted from 0")
    for index, node in enumerate(model.graph):
        if index in pins.indices:
            _note(node, targets[str(index)])
    if pins.nodes:
        _pin_names(nodes, {name: targets[f"node:{name}"] for name in pins.nodes})
    called = {f"{domain}.{name}" for domain, name, _ in model.functions}
    _pin_calls(nodes, {name: targets[name] for name in called & pins.operators.keys()})
    _check_operators(pins.operators, {_operator(node) for node in nodes} | called)


def placed_nodes(graph: Graph, pins: Pins, providers: Sequence[str]) -> dict[Node, str]:
    """Return for each node of `graph` that is placed the full name of its provider."""
    operators = {name: find_provider(provider, providers, f"the placement of {name}") for name, provider in pins.operators.items()}
    placed: dict[Node, str] = {}
    for node in graph:
        provider = (node.metadata or {}).get(PROVIDER_KEY) or operators.get(_operator(node))
        if provider is not None and provider in providers:
            placed[node] = provider
    return placed


def _targets(pins: Pins, providers: Sequence[str]) -> dict[str, str]:
    given = {f"annotation:{text}": provider for text, provider in pins.annotations.items()}
    given.update((f"layer:{text}", provider) for text, provider in pins.layers.items())
    given.update((f"part:{text}", provider) for text, provider in pins.name_parts.items())
    given.update((f"node:{name}", provider) for name, provider in pins.nodes.items())
    given.update((str(index), provider) for index, provider in pins.indices.items())
    given.update(pins.operators)
    return {key: find_provider(provider, providers, f"the placement of {key}") for key, provider in given.items()}


def _check_own(node: Node, providers: Sequence[str]) -> None:
    wanted = (node.metadata or {}).get(PROVIDER_KEY)
    if node.metadata is None or wanted is None or wanted in providers:
        return
    if f"{wanted}ExecutionProvider" in providers:
        _note(node, f"{wanted}ExecutionProvider")
        return
    event("placement.ignored", node=node.name, provider=wanted)
    node.metadata = {key: text for key, text in node.metadata.items() if key != PROVIDER_KEY}


def _place_by_text(node: Node, labels: Sequence[tuple[str, str]], parts: Sequence[tuple[str, str]]) -> None:
    """Place a node by its annotation, else by its name: the last of the texts that fit wins."""
    if PROVIDER_KEY in (node.metadata or {}):
        return
    annotation = (node.metadata or {}).get(ANNOTATION_KEY)
    fitting = [provider for text, provider in parts if text in node.name]
    if annotation is not None:
        fitting += [provider for text, provider in labels if _fits(text, annotation)]
    if fitting:
        _note(node, fitting[-1])


def _is_exact(text: str) -> bool:
    return text.startswith("=")


def _fits(text: str, annotation: str) -> bool:
    return annotation == text[1:] if _is_exact(text) else annotation.startswith(text)


def _warn_of_unused(texts: Iterable[str], nodes: Iterable[Node]) -> None:
    present = {label for node in nodes if (label := (node.metadata or {}).get(ANNOTATION_KEY)) is not None}
    for text in texts:
        if not any(_fits(text, label) for label in present):
            warnings.warn(
                f"the placement names annotation {text!r}, which no node has in its metadata {ANNOTATION_KEY!r}"
                f"{_hint(text, present)}",
                UserWarning,
                stacklevel=2,
            )


def _pin_names(nodes: Iterable[Node], wanted: Mapping[str, str]) -> None:
    missing, known = set(wanted), set[str]()
    for node in nodes:
        names = [node.name, *(value.name for value in node.outputs)]
        known.update(name for name in names if name)
        for name in names:
            if name in wanted:
                _note(node, wanted[name])
                missing.discard(name)
                break
    for name in sorted(missing):
        raise InvalidArgument(f"the placement names node {name!r}, which the model does not have{_hint(name, known)}")


def _pin_calls(nodes: Iterable[Node], wanted: Mapping[str, str]) -> None:
    """Place calls of functions, which may be expanded: what comes of one runs where it was placed."""
    for node in nodes if wanted else ():
        if _operator(node) in wanted and PROVIDER_KEY not in (node.metadata or {}):
            _note(node, wanted[_operator(node)])


def _check_operators(names: Iterable[str], present: Collection[str]) -> None:
    for name in names:
        domain, _, op_type = name.rpartition(".")
        if name in present or find_schema(domain, op_type, _NEWEST) is not None:
            continue
        known = {*present, *(operator for family in FAMILIES.values() for operator in family.split())}
        raise InvalidArgument(
            f"the placement names operator {name!r}, which neither the model nor the standard has{_hint(name, known)}"
            "; a node's name is written node:NAME"
        )


def _note(node: Node, provider: str) -> None:
    node.metadata = {**(node.metadata or {}), PROVIDER_KEY: provider}


def _operator(node: Node) -> str:
    domain = "" if node.domain == NHWC_DOMAIN else node.domain
    return f"{domain}.{node.op_type}" if domain else node.op_type


def _hint(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), 2, 0.5)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
