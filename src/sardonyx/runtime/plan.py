"""The plan: programs and copies in their final order, over numbered slots.

Every (value, memory) that a run touches has a slot. A step reads slots, fills slots, and names the slots that nobody reads after
it. The plan is cut into segments at steps whose outputs have shapes that only the run shows: within a segment all
shapes follow from the shapes that enter it, so a segment is bound as a whole.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array
from sardonyx.ir import Graph, Shape, TensorType, Value
from sardonyx.partition.part import Cut
from sardonyx.partition.transfers import Stage, Transfer, ValueInMemory
from sardonyx.provider import HOST, BindsShapes, Memory, Partition, Program, SharesMemory

__all__ = ["CopyStep", "Plan", "ProgramStep", "Segment", "Step", "make_plan", "needs_no_shapes"]

_OUR_PROVIDERS = "sardonyx.providers."


@dataclasses.dataclass(frozen=True, slots=True)
class ProgramStep:
    """Run a program."""

    program: Program
    """What to run."""
    name: str
    """The partition's name, for messages and reports."""
    provider: str
    """Who compiled it."""
    memory: Memory
    """Where its inputs and outputs live."""
    inputs: tuple[int, ...]
    """Slots that it reads."""
    outputs: tuple[int, ...]
    """Slots that it fills."""
    frees: tuple[int, ...]
    """Slots that nothing reads afterwards."""
    types: tuple[TensorType | None, ...] = ()
    """For each output what the graph says of it; None where that is not known, or is no tensor. What a model says of the shapes of
    its outputs need not hold, so it is left out."""
    makers: tuple[str, ...] = ()
    """For each output the node that makes it, for messages; empty for programs that are part of sardonyx."""
    reads: tuple[Shape | None, ...] = ()
    """For each input the shape that the graph says of it, by which sizes of outputs are checked; empty where `makers` is."""

    @property
    def part(self) -> str:
        """What messages call the partition: its name, with the last node in it."""
        return f"partition {self.name} ({self.makers[-1]})" if self.makers else f"partition {self.name}"


@dataclasses.dataclass(frozen=True, slots=True)
class CopyStep:
    """Copy a tensor between the host and a device."""

    source: int
    """Slot to read."""
    target: int
    """Slot to fill."""
    source_memory: Memory
    """Where the tensor is."""
    target_memory: Memory
    """Where it goes; one of the two is the host's."""
    provider: str
    """A provider of the other memory."""
    frees: tuple[int, ...]
    """Slots that nothing reads afterwards."""
    type: TensorType | None = None
    """What the graph says of it, as for a program's outputs."""


Step: TypeAlias = ProgramStep | CopyStep
"""One step of a run."""


@dataclasses.dataclass(frozen=True, slots=True)
class Segment:
    """Steps whose shapes all follow from the shapes that enter."""

    start: int
    """Index of the first step."""
    stop: int
    """Index after the last step."""
    entries: tuple[int, ...]
    """Slots whose shapes decide all shapes of the segment."""
    trivial: bool
    """Whether it is one program that makes its own outputs, so that shapes need not be read."""


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """All that an executor needs; immutable."""

    steps: tuple[Step, ...]
    """The steps in their order."""
    segments: tuple[Segment, ...]
    """The steps' segments in their order, covering all."""
    slot_count: int
    """How many slots a frame has."""
    inputs: tuple[int, ...]
    """Slots of the graph's inputs."""
    captures: tuple[int, ...]
    """Slots of the captured values on the host, and of their copies on devices; empty for the main graph."""
    constants: tuple[tuple[int, Array], ...]
    """Slots that hold constants: those that the graph gives out as they are."""
    outputs: tuple[int, ...]
    """Slots of the graph's outputs, on the host."""
    last_use: tuple[int, ...]
    """For each slot the last step that reads it; the number of steps for the graph's outputs, -1 where none does."""
    memories: tuple[Memory, ...]
    """Every memory that a step uses."""
    fillable: frozenset[int] = frozenset()
    """Slots of the host that programs fill: an array that lies in one before the run is filled in place where it fits."""
    shares: frozenset[tuple[int, int]] = frozenset()
    """(output, input) of the graph, by number, that may be one and the same array."""


def make_plan(
    graph: Graph,
    captures: Sequence[Value],
    stages: Sequence[Stage],
    compile_part: Callable[[Cut], Program],
    entered: Sequence[Transfer] = (),
) -> Plan:
    """Compile the parts among `stages`, in their order, and lay them out over slots.

    Args:
        graph: the graph that the stages compute.
        captures: values of outer graphs that it reads.
        stages: partitions and transfers in the order in which they run.
        compile_part: makes a part's program.
        entered: copies of captured values that are made before each run, or before many; their results follow those on the host.
    """
    slots: dict[ValueInMemory, int] = {}

    def slot(value: Value, memory: Memory = HOST) -> int:
        return slots.setdefault((value, memory.name), len(slots))

    inputs = tuple(slot(value) for value in graph.inputs)
    captured = (*(slot(value) for value in captures), *(slot(copy.value, copy.target) for copy in entered))
    constants = tuple((slot(value), value.constant.numpy()) for value in dict.fromkeys(graph.outputs) if value.constant is not None)
    drafts = [_draft(stage, graph, slot, compile_part) for stage in stages]
    outputs = tuple(slot(value) for value in graph.outputs)
    last = _last_uses(drafts, len(slots), outputs)
    kept = {*inputs, *captured, *(index for index, _ in constants)}
    steps = tuple(dataclasses.replace(step, frees=_frees(step, index, last, kept)) for index, step in enumerate(drafts))
    memories = {step.memory.name: step.memory for step in steps if isinstance(step, ProgramStep)}
    return Plan(
        steps=steps,
        segments=tuple(_segments(steps)),
        slot_count=len(slots),
        inputs=inputs,
        captures=captured,
        constants=constants,
        outputs=outputs,
        last_use=tuple(last.get(index, -1) for index in range(len(slots))),
        memories=tuple(memories.values()),
        fillable=_fillable(steps),
        shares=_shares(steps, inputs, outputs),
    )


def _fillable(steps: Sequence[Step]) -> frozenset[int]:
    programs = [step for step in steps if isinstance(step, ProgramStep) and step.memory is HOST and not step.program.makes_outputs]
    return frozenset(slot for step in programs for slot in step.outputs)


def _shares(steps: Sequence[Step], inputs: Sequence[int], outputs: Sequence[int]) -> frozenset[tuple[int, int]]:
    """Return which outputs may lie in the memory of which inputs: their program allows it, and no other step reads the input."""
    readers = collections.Counter(slot for step in steps for slot in _read_by(step))
    pairs = {
        (step.outputs[output], step.inputs[input])
        for step in steps
        if isinstance(step, ProgramStep) and step.memory is HOST and isinstance(step.program, SharesMemory)
        for output, input in step.program.shares
        if readers[step.inputs[input]] == 1 and step.inputs[input] not in outputs
    }
    return frozenset((outputs.index(output), inputs.index(slot)) for output, slot in pairs if output in outputs and slot in inputs)


def _read_by(step: Step) -> Sequence[int]:
    return step.inputs if isinstance(step, ProgramStep) else (step.source,)


def _draft(stage: Stage, graph: Graph, slot: Callable[[Value, Memory], int], compile_part: Callable[[Cut], Program]) -> Step:
    if not isinstance(stage, Cut):
        source, target = slot(stage.value, stage.source), slot(stage.value, stage.target)
        return CopyStep(source, target, stage.source, stage.target, stage.provider, (), _type_of(stage.value, graph))
    part, memory = stage.partition, stage.provider.memory
    is_ours = type(stage.provider).__module__.startswith(_OUR_PROVIDERS)
    return ProgramStep(
        program=compile_part(stage),
        name=part.name,
        provider=stage.provider.name,
        memory=memory,
        inputs=tuple(slot(value, memory) for value in part.inputs),
        outputs=tuple(slot(value, memory) for value in part.outputs),
        frees=(),
        types=tuple(_type_of(value, graph) for value in part.outputs),
        makers=() if is_ours else _makers(part),
        reads=() if is_ours else tuple(value.shape for value in part.inputs),
    )


def _makers(part: Partition) -> tuple[str, ...]:
    made_by = {value: node.place for node in part.nodes for value in node.outputs}
    return tuple(made_by.get(value, "") for value in part.outputs)


def _type_of(value: Value, graph: Graph) -> TensorType | None:
    if not isinstance(value.type, TensorType):
        return None
    return TensorType(value.type.dtype) if value in graph.outputs else value.type


def _reads(step: Step) -> tuple[int, ...]:
    return step.inputs if isinstance(step, ProgramStep) else (step.source,)


def _writes(step: Step) -> tuple[int, ...]:
    return step.outputs if isinstance(step, ProgramStep) else (step.target,)


def _last_uses(steps: Sequence[Step], slot_count: int, outputs: Sequence[int]) -> dict[int, int]:
    last: dict[int, int] = {}
    for index, step in enumerate(steps):
        last.update((slot, index) for slot in (*_reads(step), *_writes(step)))
    last.update((slot, len(steps)) for slot in outputs)
    return last


def _frees(step: Step, index: int, last: Mapping[int, int], kept: set[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(slot for slot in (*_reads(step), *_writes(step)) if last[slot] == index and slot not in kept))


def _segments(steps: Sequence[Step]) -> list[Segment]:
    segments: list[Segment] = []
    start = 0
    for index, step in enumerate(steps):
        if index == len(steps) - 1 or (isinstance(step, ProgramStep) and step.program.makes_outputs):
            segments.append(_segment(steps, start, index + 1))
            start = index + 1
    return segments


def _segment(steps: Sequence[Step], start: int, stop: int) -> Segment:
    made: set[int] = set()
    entries: dict[int, None] = {}
    for step in steps[start:stop]:
        entries.update((slot, None) for slot in _reads(step) if slot not in made)
        made.update(_writes(step))
    return Segment(start, stop, tuple(entries), stop - start == 1 and needs_no_shapes(steps[start]))


def needs_no_shapes(step: Step) -> bool:
    """Return whether a step, run by itself, needs no shapes: its program makes its outputs, and is not bound."""
    if not isinstance(step, ProgramStep) or not step.program.makes_outputs:
        return False
    return not (isinstance(step.program, BindsShapes) and step.program.binds_shapes)
