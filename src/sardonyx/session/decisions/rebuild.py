"""A session by what one before it decided: weights are packed and kernels linked, nothing is optimized or partitioned."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path

from sardonyx.cancellation import check_cancelled, raise_interrupt
from sardonyx.errors import describe
from sardonyx.formats.files import FileStamp
from sardonyx.ir import Graph
from sardonyx.partition.part import Cut
from sardonyx.provider import Body, Program
from sardonyx.runtime.plan import make_plan
from sardonyx.session.built import Built
from sardonyx.session.decisions.keep import Attempt
from sardonyx.session.decisions.programs import KeepsForProcesses, KeptPrograms, find_programs
from sardonyx.session.decisions.record import Restored
from sardonyx.session.decisions.report import report_of
from sardonyx.session.execution import executor_for
from sardonyx.session.model_files import check_unchanged, read_attributes
from sardonyx.session.settings.settings import Settings
from sardonyx.session.stages.source import Source
from sardonyx.trace import event, span

__all__ = ["rebuild"]


def rebuild(attempt: Attempt, source: Source, settings: Settings) -> Built | None:
    """Return the model ready to run by what a session before decided; None where nothing is kept, or it did not work.

    Raises:
        Fail: the model's file is not what it was when it was read before.
        SardonyxError: the load was cancelled.
    """
    source.check()
    record = attempt.record()
    if record is None:
        return None
    programs = _kept(attempt)
    built = None if programs is None else _rebuilt(attempt, record, programs, settings)
    if built is None:
        built = _rebuilt(attempt, record, None, settings)
        if built is not None:
            attempt.keep_programs(built)
    return built


def _kept(attempt: Attempt) -> KeptPrograms | None:
    key = attempt.programs_key
    try:
        return None if key is None else find_programs(key)
    except (EOFError, LookupError, TypeError, ValueError) as error:
        event("decisions.failed", key=key, error=describe(error))
        return None


def _rebuilt(attempt: Attempt, record: bytes, programs: KeptPrograms | None, settings: Settings) -> Built | None:
    """Return the model ready to run: of kept programs, or compiled; None where that did not work."""
    restored = attempt.restored(record, claims=programs is None)
    if restored is None:
        return None
    try:
        built = _compiled(attempt, restored, programs, settings)
        check_unchanged(built.stamps)
    except Exception as error:  # noqa: BLE001  whoever builds the whole says what is wrong, if anything is
        check_cancelled()
        raise_interrupt(error)
        event("decisions.failed", key=attempt.key, error=describe(error))
        return None
    finally:
        restored.graph.dismantle()
    return built


def _compiled(attempt: Attempt, restored: Restored, programs: KeptPrograms | None, settings: Settings) -> Built:
    path, stamp = attempt.opened.path, attempt.opened.stamp
    label = path.name if path is not None else restored.metadata.graph_name or "model"
    stamps: Mapping[Path, FileStamp] = {} if path is None or stamp is None else {path: stamp}
    compile_part = _program_of if programs is None else _restorer(programs)
    with span("session.compile"):
        plan = make_plan(restored.graph, (), restored.cuts, compile_part)
    event("placement.done", model=label, placements=restored.placements, copies=0)
    read_attributes(restored.graph)
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
    )


def _program_of(part: Cut) -> Program:
    return part.provider.compile(part.partition, _no_body)


def _restorer(programs: KeptPrograms) -> Callable[[Cut], Program]:
    """Return what makes the programs of partitions, asked for in their order, of those that are kept."""
    rest = iter(programs.programs)

    def program_of(part: Cut) -> Program:
        name, kept = next(rest)
        provider = part.provider
        if name != provider.name or not isinstance(provider, KeepsForProcesses):
            raise ValueError(f"a program of {name} was kept for a partition of {provider.name}")
        return provider.restore(kept)

    return program_of


def _no_body(graph: Graph) -> Body:
    raise ValueError(f"the subgraph {graph.name!r} was not kept")
