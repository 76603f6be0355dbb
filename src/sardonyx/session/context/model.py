"""Models whose partitions are compiled already: written by a session with `ep.context_enable`, loaded by any other.

Each partition that its provider can keep becomes one EPContext node of com.microsoft, with onnxruntime's attributes. What it holds
lies in the node itself, in base64 (`embed_mode` 1), or in a file beside the model (0), of which it is the first `max_size` bytes.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array
from sardonyx.errors import EPFail, Fail, InvalidArgument, blamed
from sardonyx.formats import onnx as onnx_format
from sardonyx.ir import Model, Node, Tensor, Value
from sardonyx.ir.walk import all_graphs, all_nodes
from sardonyx.ops.schemas import find_schema
from sardonyx.partition.contexts import CONTEXT_DOMAIN, CONTEXT_OPERATOR, is_context
from sardonyx.partition.part import Cut
from sardonyx.provider import DescribesPrograms, JudgesPrograms, KeepsPrograms, LeavesOutWeights, Partition, Program, Provider
from sardonyx.session.context.compatibility import METADATA_PREFIX
from sardonyx.session.context.data import InitializerValue
from sardonyx.session.context.files import Content, Placed, ProgramsFile, hand_over, place_beside, place_inside, sharing
from sardonyx.session.context.seal import notes_of
from sardonyx.session.context.weights import external_infos, name_beside, names_by_content
from sardonyx.session.providers import blaming
from sardonyx.session.settings.settings import ContextSettings, LoadSettings
from sardonyx.trace import span
from sardonyx.version import __version__

__all__ = ["ContextTarget", "KeptProgram", "context_target", "keep_program", "write_context"]


@dataclasses.dataclass(frozen=True, slots=True)
class ContextTarget:
    """The compiled model that a session is to write."""

    path: Path
    """Where it goes."""
    source: Path | None
    """The model that is compiled, where it comes from a file."""
    settings: ContextSettings
    """What it is to hold."""


@dataclasses.dataclass(frozen=True, slots=True)
class KeptProgram:
    """A partition with what it was compiled to."""

    partition: Partition
    """The partition."""
    provider: Provider
    """Who compiled it."""
    content: memoryview
    """The program, as its provider saved it."""


def context_target(model: Model, settings: ContextSettings) -> ContextTarget | None:
    """Return what a session's settings ask for, or None.

    Raises:
        InvalidArgument: the file's name is unknown, it exists, options contradict one another, or the model has compiled
            partitions already.
    """
    if not settings.writes:
        return None
    if any(map(is_context, all_nodes(model))):
        raise InvalidArgument("ep.context_enable is set for a model that has EPContext nodes already; give the original model")
    if not settings.path and model.path is None:
        raise InvalidArgument("ep.context_enable is set, but the model comes from no file; set ep.context_file_path too")
    path = Path(settings.path) if settings.path or model.path is None else model.path.with_name(f"{model.path.stem}_ctx.onnx")
    if path.exists() and not settings.output.replaces:
        raise InvalidArgument(f"the context model {str(path)!r} exists; remove it, or set ep.context_file_path to another path")
    target = ContextTarget(path, model.path, settings)
    _check(target)
    return target


def keep_program(target: ContextTarget, part: Cut, program: Program) -> KeptProgram | None:
    """Return a program that was compiled just now as its provider saves it, or None where that cannot.

    Raises:
        EPFail: weights are to be left out, which the provider does not support.
    """
    if not isinstance(part.provider, KeepsPrograms):
        return None
    save = part.provider.save
    if target.settings.leaves_out_weights:
        if not isinstance(part.provider, LeavesOutWeights):
            message = f"ep.enable_weightless is set, but {part.provider.name} does not keep programs without their weights"
            raise blamed(EPFail(f"{message}; leave it out, or give the session other providers"), part.provider.name)
        save = part.provider.save_weightless
    with span("context.save", partition=part.partition.name), blaming(part.provider, f"save {part.partition.name}"):
        content = save(part.partition, program)
        return None if content is None else KeptProgram(part.partition, part.provider, memoryview(content))


def write_context(
    model: Model, target: ContextTarget, kept: Sequence[KeptProgram], defaults: Mapping[str, Array], load: LoadSettings
) -> None:
    """Put a node in the place of each partition that is kept, and save the model.

    Args:
        model: compiled; it is changed.
        target: where it goes.
        kept: its programs.
        defaults: the initializers that a feed may override, which are inputs by now.
        load: how the model was read.
    """
    replaced: dict[Value, Value] = {}
    for one, placed in zip(kept, _place(target, kept, load), strict=True):
        _replace(target, one, placed, replaced)
    for graph in all_graphs(model):
        graph.sort()
        for name, value in list(graph.initializers.items()):
            if not value.use_count:
                del graph.initializers[name]
    for value in model.graph.inputs:
        if value.name in defaults:
            value.constant = Tensor.from_array(defaults[value.name], value.name)
            model.graph.initializers[value.name] = value
    model.opset_imports = _imports(model)
    for provider in {one.provider.name: one.provider for one in kept}.values():
        if isinstance(provider, DescribesPrograms):
            with blaming(provider, "describe its programs"):
                model.metadata[f"{METADATA_PREFIX}{provider.name}"] = str(provider.compatibility_info())
    _save(model, target, load)


def _place(target: ContextTarget, kept: Sequence[KeptProgram], load: LoadSettings) -> Sequence[Placed]:
    settings, contents = target.settings, [Content(one.partition.name, one.content) for one in kept]
    weights: dict[bytes, str] = {}
    if settings.leaves_out_weights and target.source is not None:
        weights = names_by_content(target.source, load)
    if settings.embeds:
        return place_inside(contents, weights)
    path = target.path.with_name(f"{target.path.stem}.bin")
    if settings.output.write_data is not None:
        return hand_over(contents, path.name, settings.output.write_data, weights)
    if not settings.shares:
        return place_beside(contents, ProgramsFile(path), weights)
    with sharing().file_for(path, stops=settings.stops_sharing) as file:
        return place_beside(contents, file, weights)


def _replace(target: ContextTarget, kept: KeptProgram, placed: Placed, replaced: dict[Value, Value]) -> None:
    partition = kept.partition
    inputs = [replaced.get(value, value) for value in partition.inputs]
    node = Node(
        CONTEXT_OPERATOR,
        inputs,
        len(partition.outputs),
        {**placed.attributes, **_about(target, kept, placed)},
        domain=CONTEXT_DOMAIN,
        version=1,
        name=f"{target.settings.prefix}{partition.name}",
    )
    partition.graph.append(node)
    for old, new in zip(partition.outputs, node.outputs, strict=True):
        new.type, replaced[old] = old.type, new
        old.replace_all_uses_with(new)
        new.name = new.name or old.name
    for inner in reversed(partition.nodes):
        partition.graph.remove(inner)


def _about(target: ContextTarget, kept: KeptProgram, placed: Placed) -> dict[str, str | int]:
    provider, source = kept.provider, target.source
    hardware = provider.hardware_architecture if isinstance(provider, JudgesPrograms) else platform.machine()
    return {
        "main_context": 1,
        "source": provider.name,
        "partition_name": kept.partition.name,
        "ep_sdk_version": f"sardonyx {__version__}",
        "hardware_architecture": str(hardware),
        "onnx_model_filename": "" if source is None else name_beside(source, target.path),
        "notes": notes_of(placed.digest),
    }


def _save(model: Model, target: ContextTarget, load: LoadSettings) -> None:
    settings, locate = target.settings, target.settings.output.locate
    if locate is None:
        onnx_format.save(model, target.path, data_name=settings.data_name, least_bytes=settings.data_least_bytes)
        return

    info_of = (lambda name, tensor: None) if target.source is None else external_infos(target.source, load)

    def place(name: str, tensor: Tensor) -> tuple[str, int, int] | None:
        found = locate(name, InitializerValue(tensor), info_of(name, tensor))
        return None if found is None else (str(found.filepath), found.file_offset, found.byte_size)

    onnx_format.save_located(model, target.path, place)


def _check(target: ContextTarget) -> None:
    settings = target.settings
    if target.source is not None and target.path.resolve() == target.source.resolve():
        raise InvalidArgument(f"the compiled model would replace the original {str(target.source)!r}; give it another path")
    if settings.leaves_out_weights and target.source is None:
        raise InvalidArgument("ep.enable_weightless is set, but the model comes from no file where weights could stay; give a path")
    if settings.shares and (settings.embeds or settings.output.write_data is not None):
        raise InvalidArgument(
            "ep.share_ep_contexts needs a file that sessions share; set ep.context_embed_mode to 0, and no callback that writes"
        )
    programs = f"{target.path.stem}.bin"
    if programs in (target.path.name, settings.data_name):
        raise InvalidArgument(f"{programs!r} is the file of programs; give the model, or its file of initializers, another name")


def _imports(model: Model) -> dict[str, int]:
    """Return the versions to write: for each domain one under which all nodes that are left mean what they mean."""
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
