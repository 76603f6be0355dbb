"""A session by what one before it decided: weights are packed and kernels linked, nothing is optimized or partitioned."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

from sardonyx.cancellation import check_cancelled, raise_interrupt
from sardonyx.errors import describe
from sardonyx.formats.files import FileStamp
from sardonyx.ir import Graph
from sardonyx.partition.part import Cut
from sardonyx.provider import Body, Program
from sardonyx.runtime.plan import make_plan
from sardonyx.session.built import Built
from sardonyx.session.decisions.data_files import DataFile, are_as_before
from sardonyx.session.decisions.keep import Attempt, find_known
from sardonyx.session.decisions.known_files import SettledFile, remember_digests
from sardonyx.session.decisions.outline import built_of
from sardonyx.session.decisions.programs import KeptPrograms, find_programs, restored_programs
from sardonyx.session.decisions.record import Restored
from sardonyx.session.decisions.report import report_of
from sardonyx.session.decisions.sharing import identity_with, share
from sardonyx.session.execution import executor_for
from sardonyx.session.model_files import check_unchanged, read_attributes
from sardonyx.session.settings.settings import Settings
from sardonyx.session.stages.provider_list import ProviderList
from sardonyx.session.stages.source import Source
from sardonyx.trace import event, span

__all__ = ["rebuild", "rebuild_known"]


def rebuild_known(source: Source, file: SettledFile | None, settings: Settings, providers: ProviderList) -> Built | None:
    """Return a model whose file is known, ready to run by the programs that an earlier process kept; None where there are none.

    Args:
        source: the model.
        file: what `find_file` found.
        settings: of the session.
        providers: of the session.

    Raises:
        Fail: the model's file is not what it was when it was read before.
        SardonyxError: the load was cancelled.
    """
    source.check()
    known = find_known(source, file, settings, providers)
    if known is None:
        return None
    _, stamp, _ = known.file
    stamps = {known.path: stamp, **{Path(item.file[0]): item.file[1] for item in known.data}}
    found = _restored(known.programs_key, settings, providers, stamps, known.data, known.kept)
    if found is None:
        return None
    built, kept_bytes = found
    remember_digests(known.file, known.message, known.content)
    share(identity_with(known.key, *known.file, known.content), built, kept_bytes)
    return built


def rebuild(attempt: Attempt, source: Source, settings: Settings) -> Built | None:
    """Return the model ready to run by what a session before decided; None where nothing is kept, or it did not work.

    Raises:
        Fail: the model's file is not what it was when it was read before.
        SardonyxError: the load was cancelled.
    """
    source.check()
    path, stamp, key = attempt.opened.path, attempt.opened.stamp, attempt.programs_key
    stamps: Mapping[Path, FileStamp] = {} if path is None or stamp is None else {path: stamp}
    found = None if key is None else _restored(key, settings, attempt.providers, stamps)
    if found is not None:
        attempt.remember(settings)
        return found[0]
    restored = attempt.restored()
    if restored is None:
        return None
    try:
        built = _compiled(attempt, restored, settings)
        check_unchanged(built.stamps)
    except Exception as error:  # noqa: BLE001  whoever builds the whole says what is wrong, if anything is
        _note(attempt.key, error)
        return None
    finally:
        restored.graph.dismantle()
    attempt.keep_programs(built, settings)
    return built


def _restored(
    key: str,
    settings: Settings,
    providers: ProviderList,
    stamps: Mapping[Path, FileStamp],
    data: tuple[DataFile, ...] = (),
    found: KeptPrograms | None = None,
) -> tuple[Built, int] | None:
    """Return the model whose programs are kept under `key`, with the bytes that these take; None where they cannot be used.

    They are not looked up where they were `found` already.
    """
    try:
        kept = find_programs(key) if found is None else found
        if kept is None:
            return None
        with span("session.restore"):
            programs = restored_programs(kept, providers.all)
            built = built_of(kept.outline, programs, providers, stamps, data, settings.execution)
        check_unchanged(stamps)
        if not are_as_before(data):
            return None
    except Exception as error:  # noqa: BLE001  as above
        _note(key, error)
        return None
    event("placement.done", model=built.label, placements=built.placements, copies=0)
    return built, kept.size_bytes


def _note(key: str, error: Exception) -> None:
    check_cancelled()
    raise_interrupt(error)
    event("decisions.failed", key=key, error=describe(error))


def _compiled(attempt: Attempt, restored: Restored, settings: Settings) -> Built:
    path, stamp = attempt.opened.path, attempt.opened.stamp
    label = path.name if path is not None else restored.metadata.graph_name or "model"
    own: Mapping[Path, FileStamp] = {} if path is None or stamp is None else {path: stamp}
    with span("session.compile"):
        plan = make_plan(restored.graph, (), restored.cuts, _program_of)
    event("placement.done", model=label, placements=restored.placements, copies=0)
    read_attributes(restored.graph)
    stamps = {**own, **restored.stamps}
    return Built(
        label=label,
        metadata=restored.metadata,
        inputs=restored.inputs,
        declared=restored.declared,
        defaults=restored.defaults,
        executor=executor_for(plan, settings.execution),
        bodies=(),
        plans=(plan,),
        placements=restored.placements,
        providers=attempt.providers,
        report=functools.partial(report_of, restored.report),
        recorder=None,
        stamps=stamps,
        data=attempt.data_files(restored.locations, stamps),
    )


def _program_of(part: Cut) -> Program:
    return part.provider.compile(part.partition, _no_body)


def _no_body(graph: Graph) -> Body:
    raise ValueError(f"the subgraph {graph.name!r} was not kept")
