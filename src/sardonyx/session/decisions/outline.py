"""A model ready to run as plain data, but for its programs: plan, inputs and outputs, and what reports say."""

from __future__ import annotations

import functools
import marshal
from collections.abc import Mapping, Sequence
from pathlib import Path

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.formats.files import FileStamp
from sardonyx.formats.plain_graph import NoPlainForm, Plain, PlainReader, PlainWriter
from sardonyx.ir import Tensor, Value
from sardonyx.provider import HOST, Program
from sardonyx.runtime.plan import Plan, ProgramStep, Segment
from sardonyx.session.built import Built
from sardonyx.session.decisions.data_files import DataFile
from sardonyx.session.decisions.record import KeptPlacements, plain_placement
from sardonyx.session.decisions.report import plain_report, report_of
from sardonyx.session.execution import executor_for
from sardonyx.session.settings.settings import ExecutionSettings
from sardonyx.session.stages.provider_list import ProviderList
from sardonyx.session.values import ModelMetadata, NodeArg

__all__ = ["built_of", "outline_of"]

_MOST_BYTES = 16 << 20
"""The most bytes of constants that are outputs, and of defaults of inputs."""


def outline_of(built: Built) -> Plain:
    """Return what a model is, without its programs; what only reports ask for is in bytes, of which no objects are made.

    Raises:
        NoPlainForm: it is not one plan of programs on the host, or its report lists what is not kept.
    """
    (plan, *bodies), report = built.plans, plain_report(built.report())
    steps = [step for step in plan.steps if isinstance(step, ProgramStep) and step.memory is HOST]
    if bodies or plan.captures or len(steps) < len(plan.steps) or report is None or built.recorder is not None:
        raise NoPlainForm("more than a plan of programs")
    writer = PlainWriter({}, _MOST_BYTES)
    return (
        tuple((value.name, writer.type(value.type)) for value in built.inputs),
        tuple((item.name, item.type, tuple(item.shape)) for item in built.declared),
        tuple((name, writer.array(array)) for name, array in built.defaults.items()),
        tuple(getattr(built.metadata, field.name) for field in dataclasses.fields(ModelMetadata)),
        (len(built.placements), marshal.dumps(tuple(map(plain_placement, built.placements))), marshal.dumps(report)),
        tuple(
            (step.name, step.provider, step.inputs, step.outputs, step.frees, tuple(map(writer.type, step.types))) for step in steps
        ),
        tuple((part.start, part.stop, part.entries, part.trivial) for part in plan.segments),
        plan.slot_count,
        plan.inputs,
        tuple((slot, writer.array(array)) for slot, array in plan.constants),
        plan.outputs,
        plan.last_use,
        tuple(plan.fillable),
        tuple(plan.shares),
    )


def built_of(
    outline: Plain,
    programs: Sequence[Program],
    providers: ProviderList,
    stamps: Mapping[Path, FileStamp],
    data: tuple[DataFile, ...],
    settings: ExecutionSettings,
) -> Built:
    """Return the model ready to run.

    Args:
        outline: what `outline_of` returned.
        programs: of the plan, in order.
        providers: of the session.
        stamps: of the model's file, where it has one, and of those beside it.
        data: the files beside it.
        settings: of the session.

    Raises:
        LookupError, TypeError, ValueError: the outline is not as it was written.
    """
    inputs, declared, defaults, metadata, (count, placements, report), steps, segments, *rest = outline
    slot_count, read, constants, outputs, last_use, fillable, shares = rest
    reader = PlainReader(_no_tensor)
    plan = Plan(
        steps=tuple([_step(reader, program, *step) for program, step in zip(programs, steps, strict=True)]),
        segments=tuple([Segment(*part) for part in segments]),
        slot_count=slot_count,
        inputs=read,
        captures=(),
        constants=tuple([(slot, reader.array(array)) for slot, array in constants]),
        outputs=outputs,
        last_use=last_use,
        memories=(HOST,) if steps else (),
        fillable=frozenset(fillable),
        shares=frozenset(shares),
    )
    about = ModelMetadata(*metadata)
    return Built(
        label=next((path.name for path in stamps), about.graph_name or "model"),
        metadata=about,
        inputs=tuple([Value(name, reader.type(kind)) for name, kind in inputs]),
        declared=tuple([NodeArg(name, kind, list(shape)) for name, kind, shape in declared]),
        defaults={name: reader.array(array) for name, array in defaults},
        executor=executor_for(plan, settings),
        bodies=(),
        plans=(plan,),
        placements=KeptPlacements(count, functools.partial(marshal.loads, placements)),
        providers=providers,
        report=lambda: report_of(marshal.loads(report)),
        recorder=None,
        stamps=stamps,
        data=data,
    )


def _step(
    reader: PlainReader,
    program: Program,
    name: str,
    provider: str,
    inputs: tuple[int, ...],
    outputs: tuple[int, ...],
    frees: tuple[int, ...],
    types: Sequence[Plain],
) -> ProgramStep:
    kinds = tuple([reader.type(kind) for kind in types])
    return ProgramStep(program, name, provider, HOST, inputs, outputs, frees, kinds)  # type: ignore[arg-type]  # types of tensors


def _no_tensor(*about: object) -> Tensor:
    raise ValueError(f"an outline refers to a tensor of the model: {about}")
