"""From a file to something that runs: by what a session before decided of the model, else stage by stage.

    load -> Loaded -> prepare -> Prepared -> assign_model -> Assigned -> compile_model -> Compiled

Each stage takes over the model of the one before; `stages/` has one file for each, and `whole_build.py` is the chain. Where the
decisions of an earlier session are kept, only the last stage is left (`decisions/`). Where the settings allow it, a provider that
fails on the way is left out and the chain begins anew without it.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from typing import TYPE_CHECKING

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.cancellation import check_cancelled, raise_interrupt
from sardonyx.errors import SardonyxError
from sardonyx.forks import without_fork
from sardonyx.full_collections import without_full_collections
from sardonyx.session.built import Built
from sardonyx.session.decisions.keep import Attempt, begin, find_built, find_file
from sardonyx.session.decisions.rebuild import rebuild, rebuild_known
from sardonyx.session.decisions.sharing import find_shared, share
from sardonyx.session.settings.settings import Settings
from sardonyx.session.stages.provider_list import ProviderList
from sardonyx.session.stages.source import Source
from sardonyx.trace import event

if TYPE_CHECKING:
    from sardonyx.session.profiling.profiler import Profiler
    from sardonyx.session.variant import Variant

__all__ = ["build"]

_PARTS_OF_STAGES = (
    "sardonyx.session.memory.stats",
    "sardonyx.partition.assign",
    "sardonyx.formats.onnx",
    "sardonyx.ops.shapes",
    "sardonyx.ops.infer",
    "sardonyx.optimize.guard",
    "sardonyx.optimize.rules.attention",
    "sardonyx.optimize.rules.matmul",
    "sardonyx.optimize.rules.normalize",
    "sardonyx.optimize.rules.quantize",
    "sardonyx.optimize.pipeline",
    "sardonyx.session.stages.assign",
    "sardonyx.session.context.load",
)
"""Modules that the stages import, each in some tens of milliseconds, between which a load may be ended."""


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
    attempt, file = None, None
    if variant is None and profiler is None:
        file = find_file(source, settings, providers)
        built = find_built(file, settings, providers)
        if built is not None:
            event("decisions.shared", model=built.label)
            return built
    with without_full_collections() if source.may_be_large() else contextlib.nullcontext():
        if variant is None and profiler is None:
            built = rebuild_known(source, file, settings, providers)
            if built is not None:
                return built
            attempt = begin(source, settings, providers)
            built = None if attempt is None else _known(attempt, source, settings)
            if built is not None:
                return built
        return _whole(source, settings, providers, variant, profiler, attempt)


def _whole(
    source: Source,
    settings: Settings,
    providers: ProviderList,
    variant: Variant | None,
    profiler: Profiler | None,
    attempt: Attempt | None,
) -> Built:
    """Return what all stages make of a model, without the providers that fail where the settings allow it."""
    _import_stages()
    with without_fork():
        from sardonyx.ops.session_operators import session_operators
        from sardonyx.ops.zero_sizes import with_zero_sizes
        from sardonyx.session.custom_operators import with_custom_operators
        from sardonyx.session.whole_build import build_whole  # most of the package, which a model that is known does not need

    while True:
        lookup, asked = with_custom_operators(settings, providers)
        try:
            source.check()
            with session_operators(lookup), with_zero_sizes(variant is not None and variant.has_zero_sizes):
                built = build_whole(source, settings, asked, variant, profiler, attempt)
            source.check()
            built = dataclasses.replace(built, providers=providers)
            if attempt is not None and attempt.identity is not None:
                if not built.has_contexts:
                    share(attempt.identity, built)
                attempt.keep_programs(built, settings)
            return built
        except SardonyxError as error:
            check_cancelled()
            raise_interrupt(error)
            if not settings.placement.continue_on_error or not error.provider or error.provider == providers.names[-1]:
                raise
            providers = providers.without(error.provider, str(error))


def _import_stages() -> None:
    """Import what the stages need, most of the package, when a model is built for the first time."""
    for name in _PARTS_OF_STAGES:
        check_cancelled()
        if name not in sys.modules:
            with without_fork():
                importlib.import_module(name)


def _known(attempt: Attempt, source: Source, settings: Settings) -> Built | None:
    """Return what another session of this process was built of, or what is built by the decisions of an earlier one."""
    if attempt.identity is None:
        return rebuild(attempt, source, settings)
    built = find_shared(attempt.identity)
    if built is None:
        built = rebuild(attempt, source, settings)
        if built is not None:
            share(attempt.identity, built)
    else:
        event("decisions.shared", model=built.label)
    return built
