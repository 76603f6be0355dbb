"""Load, optimize, assign and compile a model as a session does, and keep what each stage shows."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sardonyx.codegen.run.processors import available_processors
from sardonyx.codegen.target import host_target
from sardonyx.config import isa, num_threads
from sardonyx.dtypes import OnnxValue
from sardonyx.errors import SardonyxError, describe
from sardonyx.inspection.graph_facts import Facts, graph_facts
from sardonyx.inspection.memory_facts import memory_facts
from sardonyx.inspection.origins import sources_of
from sardonyx.inspection.profile_facts import profile_facts
from sardonyx.ir import Model, Value
from sardonyx.ops.infer import infer_graph
from sardonyx.ops.session_operators import session_operators
from sardonyx.optimize.report import Report
from sardonyx.partition.explain import Placement
from sardonyx.partition.part import Cut
from sardonyx.partition.profile import load_profile
from sardonyx.provider import Provider
from sardonyx.providers.cpu.roofline import roofline_for
from sardonyx.runtime.executor_memory import joined
from sardonyx.session.built import explained
from sardonyx.session.custom_operators import with_custom_operators
from sardonyx.session.feeds import check_feeds
from sardonyx.session.memory.report import MemoryUse, session_report
from sardonyx.session.options import SessionOptions
from sardonyx.session.provider_choice import choose_providers
from sardonyx.session.settings.settings import Settings, read_settings
from sardonyx.session.stages.assign import Assigned, assign_model
from sardonyx.session.stages.compile import compile_model
from sardonyx.session.stages.load import fix_dimensions, load
from sardonyx.session.stages.prepare import Prepared, prepare
from sardonyx.session.stages.provider_list import ProviderList
from sardonyx.session.stages.source import Source

__all__ = ["Inspection", "inspect_model"]

_Step = Callable[[str], None]


@dataclasses.dataclass(slots=True)
class Inspection:
    """What is known of a model; on its way to JSON, hence dictionaries."""

    label: str
    """What messages call the model."""
    about: Facts
    """Its file: versions, inputs, outputs, weights, metadata."""
    before: Facts
    """The graph as it was given."""
    after: Facts | None = None
    """The graph as a session runs it, with who runs each node; None where no session can be made."""
    changes: list[Facts] = dataclasses.field(default_factory=list)
    """What rules and passes did, in order."""
    rules: list[Facts] = dataclasses.field(default_factory=list)
    """Rules and passes that changed something, and how often."""
    memory: Facts | None = None
    """Where tensors lie over time; None where that is not known."""
    profile: Facts | None = None
    """A profile, where one was given."""
    notes: list[str] = dataclasses.field(default_factory=list)
    """What could not be found out, and why."""


def inspect_model(
    model: Any,
    about: Callable[[Model], Facts],
    *,
    providers: Sequence[str | Provider] | None = None,
    options: SessionOptions | None = None,
    feed: Callable[[], Mapping[str, OnnxValue]] | None = None,
    profile: Path | None = None,
    on_step: _Step = lambda label: None,
) -> Inspection:
    """Find out all that a page shows of a model.

    A model that no session can be made of is shown as far as it can be loaded, with a note that says what is wrong.

    Args:
        model: a path, bytes or other source; Any, as for a session.
        about: returns the facts of a file.
        providers: as for a session.
        options: of the session.
        feed: returns values of the inputs, with which memory is planned; None for no memory plan.
        profile: a file of Chrome's trace events.
        on_step: called with what is done next.

    Raises:
        NoSuchFile, InvalidProtobuf, InvalidGraph: the file cannot be read.
        InvalidArgument: an option or the profile is wrong.
    """
    settings = read_settings(SessionOptions() if options is None else options)
    source = Source.of(model)
    found = _given(source, settings, about)
    found.profile = None if profile is None else _profile(profile)
    added = () if options is None else options.providers
    chosen = choose_providers(list(providers) if providers else None, None, added, settings)
    lookup, asked = with_custom_operators(settings, chosen.providers)
    try:
        with session_operators(lookup), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the page shows the same
            _run_stages(source, settings, asked, found, feed, on_step)
    except SardonyxError as error:
        found.notes.append(f"no session can be made of this model: {type(error).__name__}: {error}")
    return found


def _profile(path: Path) -> Facts:
    """Return the facts of a profile, with the peak of this machine where its steps have operations and bytes."""
    facts = profile_facts(path)
    if any(event.get("flops") and event.get("bytes") for event in facts["events"]):
        peak = roofline_for(host_target(isa()), num_threads() or available_processors())
        facts["roof"] = {"flops": peak.flops_per_s, "bytes": peak.bytes_per_s[-1][1], "threads": peak.threads}
    return facts


def _given(source: Source, settings: Settings, about: Callable[[Model], Facts]) -> Inspection:
    """Return what the file shows."""
    model = source.read(settings.load)
    found = Inspection(model.label, about(model), {})
    try:
        fix_dimensions(model, settings.load, settings.optimize.disabled)
        infer_graph(model)
    except SardonyxError as error:
        found.notes.append(f"types and shapes are as the file declares them: {type(error).__name__}: {error}")
    found.before = graph_facts(model)
    model.dismantle()
    return found


def _run_stages(
    source: Source,
    settings: Settings,
    providers: ProviderList,
    found: Inspection,
    feed: Callable[[], Mapping[str, OnnxValue]] | None,
    on_step: _Step,
) -> None:
    settings = settings.without_files()
    on_step("loading")
    loaded = load(source, settings.load, disabled=settings.optimize.disabled)
    try:
        on_step("optimizing")
        profile = load_profile(settings.placement.profile) if settings.placement.measured else None
        prepared = prepare(loaded, settings, providers, "" if profile is None else profile.widened_for, records=True)
        _add_report(found, prepared.report)
        on_step("assigning")
        assigned = assign_model(prepared, settings, providers, profile)
        found.after = _after(assigned, found.before)
        on_step("compiling")
        if feed is not None:
            found.memory = _memory(assigned, prepared, settings, feed, found)
    finally:
        loaded.model.dismantle()


def _add_report(found: Inspection, report: Report) -> None:
    found.changes = [dataclasses.asdict(change) for change in report.changes]
    passes = {record.name: record.changes for record in report.passes.values() if record.changes and record.name != "apply_rules"}
    found.rules = [{"name": name, "count": count, "kind": "rule"} for name, count in report.fired.most_common()]
    found.rules += [{"name": name, "count": count, "kind": "pass"} for name, count in passes.items()]


def _after(assigned: Assigned, before: Facts) -> Facts:
    placed: dict[tuple[str, str], Placement] = {}
    for place in assigned.placements:
        placed.setdefault((place.node, place.op_type), place)
    after = graph_facts(assigned.model.view(), placed)
    for node, sources in zip(after["nodes"], sources_of(before, after), strict=True):
        node["sources"] = sources
    return after


def _memory(
    assigned: Assigned,
    prepared: Prepared,
    settings: Settings,
    feed: Callable[[], Mapping[str, OnnxValue]],
    found: Inspection,
) -> Facts | None:
    """Return where tensors lie, and add the precisions of products, which are known when a model is compiled."""
    notes = found.notes
    names = [[value.name for value in values] for values in _made(assigned)]
    inputs, defaults, label = prepared.inputs, prepared.defaults, assigned.model.label
    try:
        compiled = compile_model(assigned, settings, defaults)
        _add_precisions(found, explained(assigned.placements, (compiled.plan, *compiled.body_plans)))
        values = check_feeds(inputs, defaults, feed(), label)
        memory = memory_facts(compiled.plan, names, values)
        keeping = joined(executor.memory() for executor in (compiled.executor, *compiled.bodies))
        use = MemoryUse.of(label, keeping, defaults.values(), 0, memory["arena_bytes"])
        return memory | {
            "report": session_report(use).rows(),
            "sizes": {value.name: list(getattr(item, "shape", ())) for value, item in zip(inputs, values, strict=True)},
        }
    except SardonyxError as error:
        notes.append(f"there is no memory plan, since the model cannot be run on these inputs: {type(error).__name__}: {error}")
    except (ArithmeticError, IndexError, MemoryError, TypeError, ValueError) as error:
        notes.append(f"there is no memory plan, since the model cannot be run on drawn inputs: {describe(error)}")
    return None


def _add_precisions(found: Inspection, placements: Sequence[Placement]) -> None:
    known = {(place.node, place.op_type): place.precision for place in reversed(placements) if place.precision}
    for node in () if found.after is None else found.after["nodes"]:
        precision = known.get((node["name"], node["op"]))
        if precision is not None:
            node["precision"] = precision


def _made(assigned: Assigned) -> Iterator[Sequence[Value]]:
    """Yield what each step of the main graph makes."""
    for stage in assigned.main.stages:
        yield stage.partition.outputs if isinstance(stage, Cut) else (stage.value,)
