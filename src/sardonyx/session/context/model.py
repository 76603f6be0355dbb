"""Models whose partitions are compiled already: written by a session with `ep.context_enable`, loaded by any other.

Each partition that its provider can keep becomes one EPContext node of com.microsoft, with onnxruntime's attributes. What it holds
lies in the node itself, in base64 (`embed_mode` 1), or in a file beside the model (0), of which it is the first `max_size` bytes.
"""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

from sardonyx.dtypes import Array
from sardonyx.errors import EPFail, Fail, InvalidArgument, blamed
from sardonyx.formats import onnx as onnx_format
from sardonyx.ir import Model, Node, Tensor, Value
from sardonyx.ir.walk import all_graphs, all_nodes
from sardonyx.ops.schemas import find_schema
from sardonyx.partition.contexts import CONTEXT_DOMAIN, CONTEXT_OPERATOR, is_context
from sardonyx.partition.cut import Cut
from sardonyx.provider import DescribesPrograms, JudgesPrograms, KeepsPrograms, LeavesOutWeights, Partition, Program, Provider
from sardonyx.session.context.compatibility import METADATA_PREFIX
from sardonyx.session.context.data import ContextOutput, InitializerValue
from sardonyx.session.context.files import Content, Placed, ProgramsFile, hand_over, place_beside, place_inside, sharing
from sardonyx.session.context.seal import notes_of
from sardonyx.session.context.weights import external_infos, name_beside, names_by_content
from sardonyx.session.options import SessionOptions, config_flag
from sardonyx.session.providers import blaming
from sardonyx.trace import span
from sardonyx.version import __version__

__all__ = ["ContextSettings", "ContextWriter", "context_writer"]


@dataclasses.dataclass(frozen=True, slots=True)
class ContextSettings:
    """What a session's options say of the model that it is to write."""

    path: Path
    """Where the model goes."""
    source: Path | None
    """The model that is compiled, where it comes from a file."""
    embeds: bool = False
    """Whether programs go into nodes."""
    shares: bool = False
    """Whether they go into the file of earlier sessions, if there is one, and later sessions' into theirs."""
    stops_sharing: bool = False
    """Whether later sessions do not share this one's file."""
    leaves_out_weights: bool = False
    """Whether weights stay in `source`."""
    prefix: str = ""
    """What the names of nodes begin with."""
    data_name: str = ""
    """The file for the weights of other nodes; "" for the model itself."""
    data_least_bytes: int = 1024
    """How large such a weight is at least."""
    output: ContextOutput = dataclasses.field(default_factory=ContextOutput)
    """Callbacks that take the place of files."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Kept:
    """A partition with what it was compiled to."""

    partition: Partition
    provider: Provider
    content: memoryview


class ContextWriter:
    """Collects the programs of one session, and writes them as a model."""

    def __init__(self, settings: ContextSettings, options: SessionOptions, defaults: Mapping[str, Array]) -> None:
        """Make a writer, which has nothing to write yet.

        Args:
            settings: what to write, and where.
            options: of the session, by which the model was loaded.
            defaults: the initializers that a feed may override, which are inputs by now.
        """
        self._settings, self._options, self._defaults = settings, options, defaults
        self._kept: list[_Kept] = []

    def keep(self, part: Cut, program: Program) -> None:
        """Keep a program that was compiled just now, where its provider can.

        Raises:
            EPFail: weights are to be left out, which the provider does not support.
        """
        if not isinstance(part.provider, KeepsPrograms):
            return
        save = part.provider.save
        if self._settings.leaves_out_weights:
            if not isinstance(part.provider, LeavesOutWeights):
                message = f"ep.enable_weightless is set, but {part.provider.name} does not keep programs without their weights"
                raise blamed(EPFail(f"{message}; leave it out, or give the session other providers"), part.provider.name)
            save = part.provider.save_weightless
        with span("context.save", partition=part.partition.name), blaming(part.provider, f"save {part.partition.name}"):
            content = save(part.partition, program)
            if content is not None:
                self._kept.append(_Kept(part.partition, part.provider, memoryview(content)))

    def write(self, model: Model) -> None:
        """Put a node in the place of each partition of `model`, and save it; `model` itself is changed."""
        replaced: dict[Value, Value] = {}
        for kept, placed in zip(self._kept, self._place(), strict=True):
            self._replace(kept, placed, replaced)
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
        for provider in {kept.provider.name: kept.provider for kept in self._kept}.values():
            if isinstance(provider, DescribesPrograms):
                with blaming(provider, "describe its programs"):
                    model.metadata[f"{METADATA_PREFIX}{provider.name}"] = str(provider.compatibility_info())
        self._save(model)

    def _place(self) -> Sequence[Placed]:
        settings, contents = self._settings, [Content(kept.partition.name, kept.content) for kept in self._kept]
        weights: dict[bytes, str] = {}
        if settings.leaves_out_weights and settings.source is not None:
            weights = names_by_content(settings.source, self._options)
        if settings.embeds:
            return place_inside(contents, weights)
        path = settings.path.with_name(f"{settings.path.stem}.bin")
        if settings.output.write_data is not None:
            return hand_over(contents, path.name, settings.output.write_data, weights)
        if not settings.shares:
            return place_beside(contents, ProgramsFile(path), weights)
        with sharing().file_for(path, stops=settings.stops_sharing) as file:
            return place_beside(contents, file, weights)

    def _replace(self, kept: _Kept, placed: Placed, replaced: dict[Value, Value]) -> None:
        partition = kept.partition
        inputs = [replaced.get(value, value) for value in partition.inputs]
        node = Node(
            CONTEXT_OPERATOR,
            inputs,
            len(partition.outputs),
            {**placed.attributes, **self._about(kept, placed)},
            domain=CONTEXT_DOMAIN,
            version=1,
            name=f"{self._settings.prefix}{partition.name}",
        )
        partition.graph.append(node)
        for old, new in zip(partition.outputs, node.outputs, strict=True):
            new.type, replaced[old] = old.type, new
            old.replace_all_uses_with(new)
            new.name = new.name or old.name
        for inner in reversed(partition.nodes):
            partition.graph.remove(inner)

    def _about(self, kept: _Kept, placed: Placed) -> dict[str, str | int]:
        provider, source = kept.provider, self._settings.source
        hardware = provider.hardware_architecture if isinstance(provider, JudgesPrograms) else platform.machine()
        return {
            "main_context": 1,
            "source": provider.name,
            "partition_name": kept.partition.name,
            "ep_sdk_version": f"sardonyx {__version__}",
            "hardware_architecture": str(hardware),
            "onnx_model_filename": "" if source is None else name_beside(source, self._settings.path),
            "notes": notes_of(placed.digest),
        }

    def _save(self, model: Model) -> None:
        settings, locate = self._settings, self._settings.output.locate
        if locate is None:
            onnx_format.save(model, settings.path, data_name=settings.data_name, least_bytes=settings.data_least_bytes)
            return

        info_of = (lambda name, tensor: None) if settings.source is None else external_infos(settings.source, self._options)

        def place(name: str, tensor: Tensor) -> tuple[str, int, int] | None:
            found = locate(name, InitializerValue(tensor), info_of(name, tensor))
            return None if found is None else (str(found.filepath), found.file_offset, found.byte_size)

        onnx_format.save_located(model, settings.path, place)


def context_writer(model: Model, options: SessionOptions, defaults: Mapping[str, Array]) -> ContextWriter | None:
    """What a session's options ask for, or None.

    Raises:
        InvalidArgument: the file's name cannot be told, it exists, options contradict one another, or the model has compiled
            partitions already.
    """
    entries = options.session_config_entries
    if not config_flag(options, "ep.context_enable"):
        return None
    if any(map(is_context, all_nodes(model))):
        raise InvalidArgument("ep.context_enable is set for a model that has EPContext nodes already; give the original model")
    text = entries.get("ep.context_file_path", "")
    if not text and model.path is None:
        raise InvalidArgument("ep.context_enable is set, but the model comes from no file; set ep.context_file_path too")
    path = Path(text) if text or model.path is None else model.path.with_name(f"{model.path.stem}_ctx.onnx")
    if path.exists() and not options.context_output.replaces:
        raise InvalidArgument(f"the context model {str(path)!r} exists; remove it, or set ep.context_file_path to another path")
    stops = config_flag(options, "ep.stop_share_ep_contexts")
    settings = ContextSettings(
        path,
        model.path,
        embeds=config_flag(options, "ep.context_embed_mode"),
        shares=config_flag(options, "ep.share_ep_contexts") or stops,
        stops_sharing=stops,
        leaves_out_weights=config_flag(options, "ep.enable_weightless"),
        prefix=entries.get("ep.context_node_name_prefix", ""),
        data_name=entries.get("ep.context_model_external_initializers_file_name", ""),
        data_least_bytes=_number(entries, "ep.context_model_external_initializers_size", 1024),
        output=options.context_output,
    )
    _check(settings)
    return ContextWriter(settings, options, defaults)


def _check(settings: ContextSettings) -> None:
    if settings.source is not None and settings.path.resolve() == settings.source.resolve():
        raise InvalidArgument(f"the compiled model would replace the original {str(settings.source)!r}; give it another path")
    if settings.leaves_out_weights and settings.source is None:
        raise InvalidArgument("ep.enable_weightless is set, but the model comes from no file where weights could stay; give a path")
    if settings.shares and (settings.embeds or settings.output.write_data is not None):
        raise InvalidArgument(
            "ep.share_ep_contexts needs a file that sessions share; set ep.context_embed_mode to 0, and no callback that writes"
        )
    programs = f"{settings.path.stem}.bin"
    if programs in (settings.path.name, settings.data_name):
        raise InvalidArgument(f"{programs!r} is the file of programs; give the model, or its file of initializers, another name")


def _number(entries: Mapping[str, str], key: str, default: int) -> int:
    text = entries.get(key, str(default))
    if not text.isdigit():
        raise InvalidArgument(f"config entry {key} must be a number of at least 0, got {text!r}")
    return int(text)


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
