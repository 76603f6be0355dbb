"""The chain from a file to something that runs, stage by stage.

    load -> Loaded -> prepare -> Prepared -> assign_model -> Assigned -> compile_model -> Compiled

Each stage takes over the model of the one before; `stages/` has one file for each. Where the settings allow it, a provider that
fails on the way is left out and the chain begins anew without it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sardonyx.cancellation import check_cancelled, raise_interrupt
from sardonyx.dtypes import Array
from sardonyx.errors import SardonyxError
from sardonyx.formats.files import FileStamp
from sardonyx.ir import Value
from sardonyx.ops.session_operators import session_operators
from sardonyx.ops.zero_sizes import with_zero_sizes
from sardonyx.optimize.report import Report
from sardonyx.partition.explain import Placement
from sardonyx.partition.profile import load_profile
from sardonyx.runtime.executor import Executor
from sardonyx.session.custom_operators import with_custom_operators
from sardonyx.session.memory.stats import MemoryRecorder, recorder_for
from sardonyx.session.settings.settings import Settings
from sardonyx.session.stages.assign import assign_model
from sardonyx.session.stages.compile import compile_model
from sardonyx.session.stages.load import load
from sardonyx.session.stages.prepare import prepare
from sardonyx.session.stages.provider_list import ProviderList
from sardonyx.session.stages.source import Source
from sardonyx.session.values import ModelMetadata, NodeArg, completed
from sardonyx.session.variant import Variant
from sardonyx.trace import span

if TYPE_CHECKING:
    from sardonyx.session.profiler import Profiler

__all__ = ["Built", "build"]


@dataclasses.dataclass(frozen=True, slots=True)
class Built:
    """A model ready to run."""

    label: str
    """What messages call the model."""
    metadata: ModelMetadata
    """What its file says about itself."""
    inputs: tuple[Value, ...]
    """The inputs that a feed may name, with those that have a default."""
    declared: tuple[NodeArg, ...]
    """The outputs as the model declares them, with what it leaves open as it was inferred."""
    defaults: Mapping[str, Array]
    """Input -> what it is where the feed leaves it out: initializers that a feed may override."""
    executor: Executor
    """What runs it."""
    bodies: tuple[Executor, ...]
    """What runs the graphs inside its nodes."""
    placements: tuple[Placement, ...]
    """Who runs each node, and why others do not."""
    providers: ProviderList
    """The session's, and those that failed and were left out."""
    report: Report
    """What the optimizer did."""
    recorder: MemoryRecorder | None
    """The per-run recorder of what nodes need of memory, where the settings ask for it."""
    stamps: Mapping[Path, FileStamp]
    """What the model's files were when it was read."""


def build(
    source: Source,
    settings: Settings,
    providers: ProviderList,
    variant: Variant | None = None,
    *,
    profiler: Profiler | None = None,
) -> Built:
    """Take a model from its file to an executor.

    Args:
        source: where the model comes from; where it was read before, any change of its files since is a Fail.
        settings: of the session; files are written as they say, unless this is a variant or `providers` leaves some out.
        providers: in the order in which they are asked.
        variant: in what the model differs from its file.
        profiler: records the steps of runs, where there is one.

    Raises:
        SardonyxError: the model is invalid, or no provider runs a node of it; the message begins with the model's name.
    """
    if variant is not None or providers.excluded:
        settings = settings.without_files()
    while True:
        lookup, asked = with_custom_operators(settings, providers)
        try:
            source.check()
            with session_operators(lookup), with_zero_sizes(variant is not None and variant.has_zero_sizes):
                built = _build(source, settings, asked, variant, profiler)
            source.check()
            return dataclasses.replace(built, providers=providers)
        except SardonyxError as error:
            check_cancelled()
            raise_interrupt(error)
            if not settings.placement.continue_on_error or not error.provider or error.provider == providers.names[-1]:
                raise
            providers = providers.without(error.provider, str(error))


def _build(
    source: Source, settings: Settings, providers: ProviderList, variant: Variant | None, profiler: Profiler | None
) -> Built:
    loaded = load(source, settings.load, variant, settings.optimize.disabled)
    try:
        if profiler is not None:
            profiler.remember(loaded.model.view())
        profile = load_profile(settings.placement.profile) if settings.placement.measured else None
        prepared = prepare(loaded, settings, providers, "" if profile is None else profile.widened_for)
        declared = completed(loaded.declared, loaded.types, prepared.outputs)
        recorder = recorder_for(prepared.model.view(), settings.memory.stats_name)
        with span("session.compile"):
            assigned = assign_model(prepared, settings, providers, profile)
            compiled = compile_model(assigned, settings, prepared.defaults, profiler)
    finally:
        loaded.model.dismantle()
    return Built(
        label=prepared.model.label,
        metadata=loaded.metadata,
        inputs=prepared.inputs,
        declared=declared,
        defaults=prepared.defaults,
        executor=compiled.executor,
        bodies=compiled.bodies,
        placements=assigned.placements,
        providers=providers,
        report=prepared.report,
        recorder=recorder,
        stamps=loaded.stamps,
    )
