"""The chain from a file to something that runs, stage by stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sardonyx.partition.contexts import is_context
from sardonyx.partition.part import Cut
from sardonyx.partition.profile import load_profile
from sardonyx.session.built import Built
from sardonyx.session.decisions.data_files import DataFile, locations_of
from sardonyx.session.decisions.keep import Attempt
from sardonyx.session.decisions.record import Decided
from sardonyx.session.decisions.report import plain_report
from sardonyx.session.memory.stats import recorder_for
from sardonyx.session.settings.settings import Settings
from sardonyx.session.stages.assign import Assigned, assign_model
from sardonyx.session.stages.compile import compile_model
from sardonyx.session.stages.load import Loaded, load
from sardonyx.session.stages.prepare import Prepared, prepare
from sardonyx.session.stages.provider_list import ProviderList
from sardonyx.session.stages.source import Source
from sardonyx.session.values import NodeArg, completed
from sardonyx.session.variant import Variant
from sardonyx.trace import span

if TYPE_CHECKING:
    from sardonyx.session.profiling.profiler import Profiler

__all__ = ["build_whole"]


def build_whole(
    source: Source,
    settings: Settings,
    providers: ProviderList,
    variant: Variant | None,
    profiler: Profiler | None,
    attempt: Attempt | None = None,
) -> Built:
    """Take a model from its file to an executor, as `build` does, and keep what was decided where there is an `attempt`."""
    data = None
    loaded = load(source, settings.load, variant, settings.optimize.disabled, None if attempt is None else attempt.opened)
    try:
        if profiler is not None:
            profiler.remember(loaded.model.view())
        profile = load_profile(settings.placement.profile) if settings.placement.measured else None
        prepared = prepare(loaded, settings, providers, "" if profile is None else profile.widened_for)
        declared = completed(loaded.declared, loaded.types, prepared.outputs)
        recorder = recorder_for(prepared.model.view(), settings.memory.stats_name)
        with span("session.compile"):
            assigned = assign_model(prepared, settings, providers, profile)
            if attempt is not None:
                data = _keep(attempt, loaded, prepared, assigned, declared)
            compiled = compile_model(assigned, settings, prepared.defaults, profiler)
    finally:
        loaded.model.dismantle()
    report = prepared.report
    return Built(
        label=prepared.model.label,
        metadata=loaded.metadata,
        inputs=prepared.inputs,
        declared=declared,
        defaults=prepared.defaults,
        executor=compiled.executor,
        bodies=compiled.bodies,
        plans=(compiled.plan, *compiled.body_plans),
        placements=assigned.placements,
        providers=providers,
        report=lambda: report,
        recorder=recorder,
        stamps=loaded.stamps,
        data=data,
        has_contexts=any(map(is_context, assigned.main.graph)),
    )


def _keep(
    attempt: Attempt, loaded: Loaded, prepared: Prepared, assigned: Assigned, declared: tuple[NodeArg, ...]
) -> tuple[DataFile, ...] | None:
    """Keep what was decided, where it follows from the model's files and needs no more than partitions on the host.

    Returns the files beside the model's own; None where these are not known.
    """
    graph, stages = assigned.main.graph, assigned.main.stages
    locations = locations_of(loaded.placed.values())
    data = attempt.data_files(locations, loaded.stamps)
    cuts = [stage for stage in stages if isinstance(stage, Cut)]
    is_simple = not assigned.main.bodies and not assigned.main.entering and len(cuts) == len(stages)
    if not is_simple or any(map(is_context, graph)) or not attempt.knows_files(locations, loaded.stamps):
        return data
    report = plain_report(prepared.report)
    if report is not None:
        attempt.keep(
            Decided(
                graph=graph,
                placed=loaded.placed,
                inputs=prepared.inputs,
                declared=declared,
                defaults=prepared.defaults,
                metadata=loaded.metadata,
                cuts=cuts,
                placements=assigned.placements,
                report=report,
                stamps=loaded.stamps,
            )
        )
    return data
