"""The chain from bytes to something that runs, written once, top to bottom.

    load -> check -> optimize -> assign and cut -> compile -> plan

Where the options allow it, a provider that fails on the way is left out and the chain begins anew without it.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sardonyx import errors
from sardonyx.dtypes import Array
from sardonyx.errors import EPFail, InvalidArgument, InvalidGraph, SardonyxError, blamed, describe, located
from sardonyx.formats import onnx as onnx_format
from sardonyx.formats.files import FileStamp
from sardonyx.ir import Graph, Model, Node, Tensor, Value
from sardonyx.ir.verify import verify
from sardonyx.ir.walk import all_nodes, captured_values
from sardonyx.ops.schema import place_of
from sardonyx.ops.schemas import check_node, check_types, find_schema, unknown_operator
from sardonyx.optimize.edit import clone_model
from sardonyx.optimize.fusion_tracer import FusionTracer
from sardonyx.optimize.report import Report
from sardonyx.optimize.target import Target
from sardonyx.partition.assign import Assignment, assign, dissolve
from sardonyx.partition.assign_only import note_providers
from sardonyx.partition.contexts import is_context
from sardonyx.partition.cut import Cut, cut
from sardonyx.partition.explain import Placement, explain
from sardonyx.partition.measured import predict
from sardonyx.partition.placement import pin, placed_nodes
from sardonyx.partition.profile import Profile, key_of_graph, load_profile
from sardonyx.partition.transfers import entering_transfers, insert_transfers
from sardonyx.provider import HOST, Body, Program, Provider
from sardonyx.runtime.executor import Executor
from sardonyx.runtime.plan import CopyStep, make_plan
from sardonyx.runtime.run_step import copy
from sardonyx.session.context.compatibility import check_compatibility
from sardonyx.session.context.load import ContextLoader, refuse_to_compile
from sardonyx.session.context.model import ContextWriter, context_writer
from sardonyx.session.execution import executor_for, executor_name
from sardonyx.session.function_bodies import KEEP_ENTRY, expand, keep_claimed_calls
from sardonyx.session.layout_steps import layout_watch
from sardonyx.session.memory.limits import COLLECT_ENTRY, accountant_for, beside
from sardonyx.session.memory.stats import MemoryRecorder
from sardonyx.session.model_files import check_unchanged, read_attributes
from sardonyx.session.optimization import (
    Settings,
    fix_dimensions,
    load_model,
    optimize_model,
    read_settings,
    save_optimized,
    target_of,
)
from sardonyx.session.options import SessionOptions, config_flag
from sardonyx.session.placement.node_streams import split_streams
from sardonyx.session.placement.options import read_placement
from sardonyx.session.providers import check_program, check_provider
from sardonyx.session.values import NodeArg, node_arg
from sardonyx.session.variant import Variant, without_files
from sardonyx.session.widening import widen_model
from sardonyx.trace import event, span

__all__ = ["Built", "Prepared", "build", "compile_model", "goes_on_without_providers", "prepare", "readable_twice"]


@dataclasses.dataclass(frozen=True, slots=True)
class Built:
    """A model ready to run."""

    model: Model
    """The optimized model."""
    inputs: tuple[Value, ...]
    """The inputs that a feed may name, with those that have a default."""
    declared: tuple[NodeArg, ...]
    """The outputs as the model declares them."""
    defaults: dict[str, Array]
    """Input -> what it is where the feed leaves it out: initializers that a feed may override."""
    executor: Executor
    """What runs it."""
    placements: tuple[Placement, ...]
    """Who runs each node, and why others do not."""
    left_out: Mapping[str, str]
    """Providers that failed and were left out, and how they failed."""
    report: Report
    """What the optimizer did."""
    recorder: MemoryRecorder | None
    """What is told of each run, where the options ask for it."""


def build(
    source: Any,
    options: SessionOptions,
    providers: Sequence[Provider],
    disabled: frozenset[str],
    *,
    variant: Variant | None = None,
    left_out: Mapping[str, str] | None = None,
    stamps: Mapping[Path, FileStamp] | None = None,
) -> Built:
    """Take a model from its file to a plan.

    Args:
        source: what `formats.onnx.load` takes (a path, bytes, a file object or a ModelProto), or an ir.Model, which is used up.
        options: the session's options.
        providers: in the order in which they are asked.
        disabled: rules and passes that are not to run.
        variant: in what the model differs from its file; files that the options ask for are not written then.
        left_out: providers that failed before and are not asked, and how they failed; no files are written then either.
        stamps: what the model's files were when it was built before; any change since is a Fail.

    Raises:
        SardonyxError: the model is invalid, or no provider runs a node of it; the message begins with the model's name.
    """
    failed = dict(left_out or {})
    options = without_files(options) if failed else options
    skips = goes_on_without_providers(options)
    given = readable_twice(source) if skips else source
    while True:
        try:
            check_unchanged(stamps or {})
            built = _build_once(given, options, providers, disabled, variant, failed)
            check_unchanged(stamps or {})
            return built
        except SardonyxError as error:
            if not skips or not error.provider or error.provider == providers[-1].name:
                raise
            failed[error.provider] = str(error)
            event("provider.left_out", provider=error.provider, error=str(error))


def goes_on_without_providers(options: SessionOptions) -> bool:
    """Whether the session goes on without a provider that fails; raises InvalidArgument for a choice that is none."""
    choice = options.provider_failure or options.session_config_entries.get("session.provider_failure") or "error"
    if choice not in ("error", "skip"):
        raise InvalidArgument(f'provider_failure is "error" or "skip", got {choice!r}')
    return choice == "skip"


def readable_twice(source: Any) -> Any:
    """What can be loaded again: a file object is read, and a model, which is used up, written."""
    if isinstance(source, Model):
        return onnx_format.to_bytes(source)
    return source.read() if hasattr(source, "read") else source


def _build_once(
    source: Any,
    options: SessionOptions,
    providers: Sequence[Provider],
    disabled: frozenset[str],
    variant: Variant | None,
    left_out: Mapping[str, str],
) -> Built:
    with span("session.load"):
        model = source if isinstance(source, Model) else load_model(source, options)
    functions = tuple(model.functions.values())  # which optimization takes out of the model
    try:
        if variant is None:
            return _build(model, options, providers, disabled, left_out, writes=True)
        variant.apply(model)
        return _build(model, without_files(options), providers, disabled, left_out, writes=False)
    except SardonyxError as error:
        raise located(error, f"model {model.label}") from error
    finally:
        for function in functions:
            function.graph.dismantle()
        model.dismantle()


def _build(
    model: Model,
    options: SessionOptions,
    providers: Sequence[Provider],
    disabled: frozenset[str],
    left_out: Mapping[str, str],
    *,
    writes: bool,
) -> Built:
    able = [provider for provider in providers if provider.name not in left_out]
    for provider in able:
        check_provider(provider)
    check_compatibility(model, options, able)
    choice = read_placement(options)
    profile = load_profile(choice.profile) if choice.measured else None
    prepared = prepare(model, options, providers, disabled, able, "" if profile is None else profile.widened_for)
    placements: list[Placement] = []
    writer = context_writer(model, options, prepared.defaults) if writes else None
    recorded = options.session_config_entries.get(COLLECT_ENTRY, "")
    recorder = MemoryRecorder(model, beside(model, recorded)) if recorded else None
    executor = compile_model(model, options, providers, left_out, profile, placements, writer)
    declared, defaults, report = prepared.declared, prepared.defaults, prepared.report
    return Built(
        model, tuple(model.graph.inputs), declared, defaults, executor, tuple(placements), dict(left_out), report, recorder
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Prepared:
    """A model that is checked and optimized."""

    declared: tuple[NodeArg, ...]
    """The outputs as the model declares them."""
    defaults: dict[str, Array]
    """Input -> what it is where the feed leaves it out."""
    report: Report
    """What the optimizer did."""


def prepare(
    model: Model,
    options: SessionOptions,
    providers: Sequence[Provider],
    disabled: frozenset[str],
    able: Sequence[Provider],
    widened_for: str = "",
    tracer: FusionTracer | None = None,
) -> Prepared:
    """Check and optimize `model` in place for the providers of `able`: calls that one claims stay, types are widened.

    `widened_for` is the provider whose gaps decide what is widened, as `widen_model` takes it; `tracer` follows the rules that
    match around a node.
    """
    settings = read_settings(options, disabled)
    _replace_initializers(model, options.initializers)
    fix_dimensions(model, options, settings)
    defaults = _take_defaults(model)
    declared = tuple(node_arg(value) for value in model.graph.outputs)
    with span("session.check"):
        verify(model)
        _check_operators(model)
    keep_claimed_calls(model, able, keep_all=config_flag(options, KEEP_ENTRY))
    names = [provider.name for provider in providers]
    pin(model, read_placement(options, names).pins, names)
    with span("session.optimize"):
        saved = clone_model(model) if settings.filepath else None
        target = target_of(able)
        report = optimize_model(model, options, settings, target, tracer=tracer)
        _check_types(model)
        if saved is not None:
            _save(saved, defaults, options, settings, able or providers)
        if widen_model(model, able, options, widened_for):
            optimize_model(model, options, settings, target, tracer=tracer)
    return Prepared(declared, defaults, report)


def _save(
    model: Model, defaults: Mapping[str, Array], options: SessionOptions, settings: Settings, providers: Sequence[Provider]
) -> None:
    """Optimize `model`, a copy, for a file and save it, with its inputs' defaults; what the session itself runs goes further."""
    for value in model.graph.inputs:
        if value.name in defaults:
            value.constant = Tensor.from_array(defaults[value.name], value.name)
            model.graph.initializers[value.name] = value
    try:
        optimize_model(model, options, settings, Target.file())
        if config_flag(options, "session.save_assignment"):
            note_providers(model, providers)
        save_optimized(model, settings)
    finally:
        model.graph.dismantle()


def compile_model(
    model: Model,
    options: SessionOptions,
    providers: Sequence[Provider],
    left_out: Mapping[str, str],
    profile: Profile | None,
    placements: list[Placement],
    writer: ContextWriter | None = None,
) -> Executor:
    """Partition and compile a prepared model, which is used up; `placements` gets who runs what, `writer` the programs."""
    with span("session.compile"):
        compiler = _Compiler(model, providers, options, left_out, profile, placements, writer)
        executor = compiler.compile_graph(model.graph, (), model.graph.name or "graph").executor
    event("placement.done", model=model.label, placements=tuple(placements), copies=compiler.copy_count)
    if writer is not None:
        writer.write(model)
    read_attributes(model)
    model.dismantle()  # programs hold what they need of weights, packed or as they are
    return executor


def _replace_initializers(model: Model, given: Mapping[str, Array]) -> None:
    for name, array in given.items():
        value = model.graph.initializers.get(name)
        if value is None or value.constant is None:
            raise InvalidArgument(f"add_initializer names {name!r}, which is no initializer of the model")
        tensor = Tensor.from_array(array, name)
        if (tensor.dtype, tensor.shape) != (value.constant.dtype, value.constant.shape):
            raise InvalidArgument(f"add_initializer gives {tensor!r} for {name!r}, which the model has as {value.constant!r}")
        value.constant = tensor


def _take_defaults(model: Model) -> dict[str, Array]:
    """Turn initializers that a feed may override (IR version 4 and later) into inputs with a default.

    Before IR version 4 every initializer had to be an input as well, and none could be overridden: there the input goes.
    """
    both = [value for value in model.graph.inputs if value.constant is not None]
    if model.ir_version < 4:
        model.graph.inputs = [value for value in model.graph.inputs if value.constant is None]
        return {}
    defaults = {value.name: value.constant.numpy() for value in both if value.constant is not None}
    for value in both:
        del model.graph.initializers[value.name]
        value.constant = None
    return defaults


def _check_operators(model: Model) -> None:
    for node in all_nodes(model):
        if (node.domain, node.op_type, node.overload) in model.functions:
            continue
        schema = find_schema(node.domain, node.op_type, node.version)
        if schema is not None:
            check_node(node, schema)


def _check_types(model: Model) -> None:
    """Types are known once inference has run; what is wrong with them does not fold and is still there."""
    for node in all_nodes(model):
        schema = find_schema(node.domain, node.op_type, node.version)
        if schema is not None:
            check_types(node, schema)


class _Compiler:
    """Compiles graphs bottom-up: bodies before the nodes that hold them."""

    def __init__(
        self,
        model: Model,
        providers: Sequence[Provider],
        options: SessionOptions,
        left_out: Mapping[str, str],
        profile: Profile | None,
        placements: list[Placement],
        writer: ContextWriter | None,
    ) -> None:
        self._model = model
        self._loader = ContextLoader(model, options)
        self._writer = writer
        self._names = [provider.name for provider in providers]
        self._providers = [provider for provider in providers if provider.name not in left_out]
        choice = read_placement(options)
        self._pins = choice.pins
        self._accountant = accountant_for(model, options, choice.memory_limits, providers)
        self._profile = profile
        self._options = options
        self._is_parallel = executor_name(options) == "parallel"
        self._chosen: dict[Graph, dict[Node, str]] = {}
        self._left_out = {name: f"left out: {reason}" for name, reason in left_out.items()}
        self._placements = placements
        self._watch = layout_watch(model, options)
        self._bodies: dict[Graph, Body] = {}
        self.copy_count = 0
        """How many values are copied between memories."""

    def compile_graph(self, graph: Graph, captures: tuple[Value, ...], label: str) -> _PlannedGraph:
        """Assign, cut, compile and plan `graph` and all graphs inside it."""
        cuts, declined = self._partition(graph, label)
        self._placements.extend(explain(graph, label, cuts, declined))
        for part in cuts:
            for unit in part.partition.units:
                for node in () if unit.owns_bodies else unit.nodes:
                    self._compile_bodies(node, label)
        entering = entering_transfers(cuts, captures)
        stages = insert_transfers(graph, cuts, entering)
        self.copy_count += len(entering) + len(stages) - len(cuts)
        executor = executor_for(make_plan(graph, captures, stages, self._compile_part, entering), self._options)
        copies = [
            CopyStep(captures.index(move.value), place, HOST, move.target, move.provider, ())
            for place, move in enumerate(entering, len(captures))
        ]
        return _PlannedGraph(captures, executor, tuple(copies))

    def _partition(self, graph: Graph, label: str) -> tuple[list[Cut], Mapping[Node, Mapping[str, str]]]:
        assignment = self._assign(graph)
        while assignment.orphans and expand(self._model, assignment.orphans):
            assignment = self._assign(graph)
        if assignment.orphans:
            raise _no_provider(assignment.orphans[0], assignment.declined.get(assignment.orphans[0], {}))
        if graph is self._model.graph:
            split_streams(graph, assignment.units, self._options)
        cuts, broken = cut(graph, assignment.units, f"{label}_")
        while broken:
            for unit in broken:
                dissolve(graph, unit, self._providers, assignment)
            cuts, broken = cut(graph, assignment.units, f"{label}_")
        return cuts, {node: self._left_out | assignment.declined.get(node, {}) for node in graph}

    def _assign(self, graph: Graph) -> Assignment:
        pinned = {node: name for node, name in placed_nodes(graph, self._pins, self._names).items() if name not in self._left_out}
        chosen = self._choose(graph, pinned)
        loose = chosen.keys() - (() if self._pins.fall_through else pinned.keys())
        return assign(graph, self._providers, chosen, loose, self._watch, self._accountant)

    def _choose(self, graph: Graph, pinned: dict[Node, str]) -> dict[Node, str]:
        """Where the nodes of `graph` are placed: by hand, and else by the profile, which is asked before the graph is changed.

        The profile is of the main graph, which comes first. In bodies the best single provider is asked before the others.
        """
        if self._profile is not None and not self._chosen:
            if not self._profile.knows(self._names, tuple(graph)):
                warnings.warn(
                    f"the placement profile has no operator of model {self._model.label} on {', '.join(self._names)}: nodes go by "
                    "the order of the providers; measure this model by `sardonyx profile --placement`",
                    UserWarning,
                    stacklevel=2,
                )
            prediction = predict(graph, self._providers, self._profile, pinned, parallel=self._is_parallel)
            counts = dict(collections.Counter(prediction.placed.values()))
            event(
                "placement.measured",
                graph=graph.name,
                graph_key=key_of_graph(graph),
                nodes=counts,
                seconds=prediction.seconds,
                single=prediction.single,
                single_seconds=prediction.single_seconds,
            )
            self._chosen[graph] = {} if prediction.is_single else prediction.placed
            self._providers.sort(key=lambda provider: provider.name != prediction.single)
        return self._chosen.get(graph, {}) | pinned

    def _compile_bodies(self, node: Node, label: str) -> None:
        for name, attribute in node.attributes.items():
            if not isinstance(attribute.value, Graph):
                continue
            body = attribute.value
            captures = tuple(value for value in captured_values(body) if value.constant is None)
            self._bodies[body] = self.compile_graph(body, captures, f"{label}/{node.name or node.op_type}/{name}")

    def _compile_part(self, part: Cut) -> Program:
        provider, partition = part.provider, part.partition
        if is_context(partition.nodes[0]):
            return self._loader.load(part)
        refuse_to_compile(part, self._options)
        try:
            program = provider.compile(partition, self._bodies.__getitem__)
        except SardonyxError as error:
            raise blamed(located(error, f"{provider.name} compiling {partition.name}"), provider.name) from error
        except Exception as error:
            message = (
                f"{provider.name} claimed {len(partition.nodes)} nodes, beginning with {partition.nodes[0]!r}, but failed to "
                f"compile them as {partition.name}: {describe(error)}"
            )
            raise blamed(EPFail(message), provider.name) from error
        check_program(program, provider, f"compiled {partition.name}")
        if self._writer is not None:
            self._writer.keep(part, program)
        return program


@dataclasses.dataclass(frozen=True, slots=True)
class _PlannedGraph:
    """A graph that is compiled; as a `Body` where it is one."""

    captures: tuple[Value, ...]
    executor: Executor
    copies: tuple[CopyStep, ...]

    def hold(self, captures: Sequence[Any]) -> Callable[[Sequence[Any]], list[Any]]:
        held = [*captures, *[None] * len(self.copies)]
        for step in self.copies:
            copy(step, held)
        return functools.partial(self.executor.run, captures=held)


def _no_provider(node: Node, declined: Mapping[str, str]) -> SardonyxError:
    if find_schema(node.domain, node.op_type, node.version) is None:
        return InvalidGraph(f"{place_of(node)}: {unknown_operator(node.domain, node.op_type, node.version)}")
    reasons = "; ".join(f"{name}: {reason}" for name, reason in declined.items())
    return errors.NotImplemented(f"{place_of(node)}: no provider runs it ({reasons}); give a provider that does")
