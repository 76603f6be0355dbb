"""Models whose partitions are compiled already: written by a session with `ep.context_enable`, loaded by any other.

Each partition that its provider can keep becomes one EPContext node of com.microsoft, with onnxruntime's attributes. What it
holds lies in the node itself, in base64 (`embed_mode` 1), or in a file beside the model (0).
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sardonyx.dtypes import Array
from sardonyx.errors import (
    EPFail,
    Fail,
    InvalidArgument,
    InvalidGraph,
    ModelRequiresCompilation,
    SardonyxError,
    blamed,
    located,
)
from sardonyx.formats import onnx as onnx_format
from sardonyx.formats.external_data import ExternalData
from sardonyx.ir import Model, Node, Tensor, Value
from sardonyx.ir.walk import all_graphs, all_nodes
from sardonyx.ops.schemas import find_schema
from sardonyx.partition.contexts import CONTEXT_DOMAIN, CONTEXT_OPERATOR, fit_program, is_context
from sardonyx.partition.cut import Cut
from sardonyx.provider import KeepsPrograms, Partition, Program
from sardonyx.session.context_seal import is_sealed, seal_of
from sardonyx.session.options import SessionOptions
from sardonyx.trace import span
from sardonyx.version import __version__

__all__ = ["TRUST_ENTRY", "ContextWriter", "context_writer", "load_context", "refuse_to_compile"]

TRUST_ENTRY = "session.trust_compiled_context"
"""The config entry that allows machine code which this user's own sessions did not write."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Kept:
    """A partition with what it was compiled to."""

    partition: Partition
    provider: str
    content: bytes


class ContextWriter:
    """Collects the programs of one session, and writes them as a model."""

    def __init__(self, path: Path, entries: Mapping[str, str], defaults: Mapping[str, Array]) -> None:
        """Write to `path`, a new file.

        Args:
            path: where the model goes.
            entries: the session's config entries, which say how.
            defaults: the initializers that a feed may override, which are inputs by now.
        """
        self._path, self._defaults = path, defaults
        self._embed = entries.get("ep.context_embed_mode", "0") == "1"
        self._prefix = entries.get("ep.context_node_name_prefix", "")
        self._data_name = entries.get("ep.context_model_external_initializers_file_name", "")
        self._least_bytes = _number(entries, "ep.context_model_external_initializers_size", 1024)
        self._kept: list[_Kept] = []

    def keep(self, part: Cut, program: Program) -> None:
        """Keep a program that was compiled just now, where its provider can."""
        if not isinstance(part.provider, KeepsPrograms):
            return
        with span("context.save", partition=part.partition.name):
            content = part.provider.save(part.partition, program)
        if content is not None:
            self._kept.append(_Kept(part.partition, part.provider.name, content))

    def write(self, model: Model) -> None:
        """Put a node in the place of each partition of `model`, and save it; `model` itself is changed."""
        replaced: dict[Value, Value] = {}
        for kept in self._kept:
            self._replace(kept, replaced)
        for graph in all_graphs(model):
            graph.sort()
            for name, value in list(graph.initializers.items()):
                if not value.use_count:
                    del graph.initializers[name]
        for value in model.graph.inputs:
            if value.name in self._defaults:
                value.constant = Tensor.from_array(self._defaults[value.name], value.name)
                model.graph.initializers[value.name] = value
        model.opset_imports = _imports(model)
        onnx_format.save(model, self._path, data_name=self._data_name, least_bytes=self._least_bytes)

    def _replace(self, kept: _Kept, replaced: dict[Value, Value]) -> None:
        partition = kept.partition
        inputs = [replaced.get(value, value) for value in partition.inputs]
        attributes = {**self._place(kept), **self._about(kept)}
        node = Node(
            CONTEXT_OPERATOR, inputs, len(partition.outputs), attributes, domain=CONTEXT_DOMAIN, version=1,
            name=f"{self._prefix}{partition.name}",
        )  # fmt: skip
        partition.graph.append(node)
        for old, new in zip(partition.outputs, node.outputs, strict=True):
            new.type, replaced[old] = old.type, new
            old.replace_all_uses_with(new)
            new.name = new.name or old.name
        for inner in reversed(partition.nodes):
            partition.graph.remove(inner)

    def _about(self, kept: _Kept) -> dict[str, Any]:
        seal = seal_of(memoryview(kept.content))
        about = {"source": kept.provider, "partition_name": kept.partition.name, "ep_sdk_version": f"sardonyx {__version__}"}
        return {"main_context": 1, "embed_mode": int(self._embed), "notes": seal, **about}

    def _place(self, kept: _Kept) -> dict[str, Any]:
        if self._embed:
            return {"ep_cache_context": base64.b64encode(kept.content).decode("ascii")}
        location = f"{self._path.stem}_{kept.partition.name}.bin".replace("/", "_")
        try:
            self._path.with_name(location).write_bytes(kept.content)
        except OSError as error:
            raise Fail(f"the context file {location!r} cannot be written beside {str(self._path)!r}: {error}") from error
        return {"ep_cache_context": location}


def context_writer(model: Model, options: SessionOptions, defaults: Mapping[str, Array]) -> ContextWriter | None:
    """What a session's options ask for, or None.

    Raises:
        InvalidArgument: the file's name cannot be told, it exists, or the model has compiled partitions already.
    """
    entries = options.session_config_entries
    if entries.get("ep.context_enable", "0") != "1":
        return None
    if any(map(is_context, all_nodes(model))):
        raise InvalidArgument("ep.context_enable is set for a model that has EPContext nodes already; give the original model")
    text = entries.get("ep.context_file_path", "")
    if not text and model.path is None:
        raise InvalidArgument("ep.context_enable is set, but the model comes from no file; set ep.context_file_path too")
    path = Path(text) if text or model.path is None else model.path.with_name(f"{model.path.stem}_ctx.onnx")
    if path.exists():
        raise InvalidArgument(f"the context model {str(path)!r} exists; remove it, or set ep.context_file_path to another path")
    return ContextWriter(path, entries, defaults)


def _number(entries: Mapping[str, str], key: str, default: int) -> int:
    text = entries.get(key, str(default))
    if not text.isdigit():
        raise InvalidArgument(f"config entry {key} must be a number of at least 0, got {text!r}")
    return int(text)


def load_context(part: Cut, model: Model, options: SessionOptions) -> Program:
    """The program of an EPContext node, from its provider.

    Raises:
        EPFail: the content is damaged, for another version or device, or not trusted.
        NoSuchFile, InvalidArgument, InvalidGraph: it has none, or its file is not there or lies outside the model's folder.
    """
    (node,), provider = part.partition.nodes, part.provider
    if not isinstance(provider, KeepsPrograms):
        raise EPFail(f"{provider.name} keeps no programs, but is to load node {node.name!r}")
    content = _content(node, model)
    trusted = options.session_config_entries.get(TRUST_ENTRY, "0") == "1"
    if not trusted and not is_sealed(content, str(node.get("notes", ""))):
        raise EPFail(
            f"EPContext node {node.name!r} holds machine code that was not compiled by this user on this machine, or that has "
            f"changed; make the context anew, or, if you trust where it comes from, set the config entry {TRUST_ENTRY} to 1"
        )
    try:
        with span("context.load", partition=part.partition.name):
            return fit_program(provider.load(part.partition, content), part.partition)
    except SardonyxError as error:
        raise blamed(located(error, f"EPContext node {node.name!r}"), provider.name) from error
    except Exception as error:
        message = f"{provider.name} failed to load EPContext node {node.name!r}: {type(error).__name__}: {error}"
        raise blamed(EPFail(message), provider.name) from error


def refuse_to_compile(part: Cut, options: SessionOptions) -> None:
    """Raise ModelRequiresCompilation where `session.disable_model_compile` is set and `part` would have to be compiled."""
    if options.session_config_entries.get("session.disable_model_compile", "0") == "1" and isinstance(part.provider, KeepsPrograms):
        raise ModelRequiresCompilation(
            f"{part.provider.name} would compile {part.partition.name}, {len(part.partition.nodes)} nodes, but "
            "session.disable_model_compile is set; give a model that was written with ep.context_enable"
        )


def _content(node: Node, model: Model) -> memoryview:
    text = node.get("ep_cache_context", "")
    if not text or not isinstance(text, str):
        raise InvalidGraph(f"EPContext node {node.name!r} has {text!r} as its ep_cache_context; make the context anew")
    if node.get("embed_mode", 1):
        return memoryview(_decoded(text, node))
    what = f"EPContext node {node.name!r}"
    return ExternalData(None if model.path is None else model.path.parent, model.path).whole(text, what)


def _decoded(text: str, node: Node) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise EPFail(f"EPContext node {node.name!r} holds what is no base64 text ({error}); make the context anew") from error


def _imports(model: Model) -> dict[str, int]:
    """The versions to write: for each domain one under which all nodes that are left mean what they mean."""
    found = dict(model.opset_imports)
    nodes: dict[str, list[Node]] = {}
    for node in all_nodes(model):
        nodes.setdefault(node.domain, []).append(node)
    for domain, members in nodes.items():
        versions = sorted({found.get(domain, 1), *(node.version for node in members)})
        suited = [version for version in versions if all(_means_the_same(node, version) for node in members)]
        if not suited:
            raise Fail(f"nodes that no provider keeps are of versions {versions}, which no one version stands for; optimize less")
        found[domain] = suited[0]
    return found


def _means_the_same(node: Node, version: int) -> bool:
    own, other = (find_schema(node.domain, node.op_type, number) for number in (node.version, version))
    return version == node.version or (own is not None and other is not None and own.since_version == other.since_version)
