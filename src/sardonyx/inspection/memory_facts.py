"""Where tensors lie in the arenas of one run, step by step."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.dtypes import OnnxValue
from sardonyx.inspection.graph_facts import Facts
from sardonyx.provider import ShowsMemory
from sardonyx.runtime.bind import Binding, segment_binder
from sardonyx.runtime.memory import arena_pools, size_bytes
from sardonyx.runtime.plan import CopyStep, Plan, ProgramStep, Segment
from sardonyx.runtime.run_step import copy, run_program, run_trivial, shape_of

__all__ = ["memory_facts"]


def memory_facts(plan: Plan, names: Sequence[Sequence[str]], inputs: Sequence[OnnxValue]) -> Facts:
    """Run a plan once, in its order, and return what lay where.

    Args:
        plan: of the main graph.
        names: for each step the names of what it makes.
        inputs: the graph's inputs.

    Returns:
        `steps`, the labels of the steps, with the kernels of programs that show them one by one; `blocks`, each with name, kind
        ("arena", or "own" for memory of its own), offset, bytes and the first and last step; and `arena_bytes`.

    Raises:
        SardonyxError: a kernel or a provider fails on these inputs.
    """
    return _Walk(plan, names).run(inputs)


class _Walk:
    def __init__(self, plan: Plan, names: Sequence[Sequence[str]]) -> None:
        self._plan, self._names = plan, names
        self._labels: list[str] = []
        self._first: list[int] = []
        self._blocks: list[Facts] = []
        self._waiting: list[tuple[Facts, int]] = []
        self._bytes = 0

    def run(self, inputs: Sequence[OnnxValue]) -> Facts:
        plan = self._plan
        frame: list[OnnxValue] = [None] * plan.slot_count
        for slot, value in (*plan.constants, *zip(plan.inputs, inputs, strict=True)):
            frame[slot] = value
        binder, pools = segment_binder(plan), arena_pools(plan)
        for segment in plan.segments:
            step = plan.steps[segment.start]
            if segment.trivial and isinstance(step, ProgramStep):
                self._begin(segment.start, [step.name])
                run_trivial(step, frame)
                self._add_own(segment.start, step, frame)
                continue
            binding = binder.find(segment, tuple(shape_of(frame[slot]) for slot in segment.entries))
            arenas = {name: pools[name].borrow(size) for name, size in binding.arena_bytes.items()}
            self._bytes = max([self._bytes, *binding.arena_bytes.values()])
            self._run_segment(segment, binding, frame, arenas)
        return self._finished()

    def _run_segment(
        self, segment: Segment, binding: Binding, frame: list[OnnxValue], arenas: dict[str, tuple[int, OnnxValue]]
    ) -> None:
        for index, sizes in zip(range(segment.start, segment.stop), binding.steps, strict=True):
            step = self._plan.steps[index]
            if isinstance(step, CopyStep) or sizes is None:
                self._begin(index, [f"copy for {step.provider}"])
                assert isinstance(step, CopyStep)
                copy(step, frame)
                continue
            shapes = tuple(shape_of(frame[slot]) for slot in step.inputs)
            shown = step.program if isinstance(step.program, ShowsMemory) else None
            first = self._begin(index, [step.name] if shown is None else shown.step_labels)
            if shown is not None and sizes.bound.scratch_bytes:
                for block in shown.memory_blocks(shapes):
                    offset = sizes.scratch_offset + block.offset_bytes
                    self._add(block.name, "arena", offset, block.size_bytes, first + block.first, first + block.last)
            elif sizes.bound.scratch_bytes:
                self._add(f"{step.name} (scratch)", "arena", sizes.scratch_offset, sizes.bound.scratch_bytes, first, first)
            run_program(step, sizes, frame, arenas)
            for place, (spec, where) in enumerate(zip(sizes.bound.outputs, sizes.offsets, strict=True)):
                if spec is not None:
                    kind = "own" if where is None else "arena"
                    self._add_output(index, place, step.outputs[place], kind, where or 0, size_bytes(spec))
        for step in self._plan.steps[segment.start : segment.stop]:
            for slot in step.frees:
                frame[slot] = None

    def _add_own(self, index: int, step: ProgramStep, frame: list[OnnxValue]) -> None:
        for place, slot in enumerate(step.outputs):
            self._add_output(index, place, slot, "own", 0, int(getattr(frame[slot], "nbytes", 0)))

    def _begin(self, index: int, labels: Sequence[str]) -> int:
        """Number the steps of step `index` of the plan, and return the first number."""
        first = len(self._labels)
        self._first.append(first)
        self._labels += labels or [self._plan.steps[index].provider]
        return first

    def _add_output(self, index: int, place: int, slot: int, kind: str, offset: int, size: int) -> None:
        names = self._names[index] if index < len(self._names) else ()
        name = names[place] if place < len(names) else ""
        block = self._add(name or "an inner value", kind, offset, size, len(self._labels) - 1, 0)
        self._waiting.append((block, self._plan.last_use[slot]))

    def _add(self, name: str, kind: str, offset: int, size: int, first: int, last: int) -> Facts:
        block: Facts = {"name": name, "kind": kind, "offset": offset, "bytes": size, "first": first, "last": last}
        if size:
            self._blocks.append(block)
        return block

    def _finished(self) -> Facts:
        """Return the facts, once it is known where each step of the plan begins and ends."""
        ends = [*(first - 1 for first in self._first[1:]), len(self._labels) - 1]
        for block, last in self._waiting:
            block["last"] = max(block["first"], ends[min(max(last, 0), len(ends) - 1)])
        return {"steps": self._labels, "blocks": self._blocks, "arena_bytes": self._bytes}
