"""What an executor keeps between runs: the memory of its programs, arenas, and bindings."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping, Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.held_memory import HeldKind, HeldMemory, held_array
from sardonyx.provider import HOST, ReportsMemory
from sardonyx.runtime.bind import Binding
from sardonyx.runtime.memory import ArenaPool, size_bytes
from sardonyx.runtime.plan import Plan, ProgramStep
from sardonyx.runtime.result_memory import ResultMemory

__all__ = ["ExecutorMemory", "executor_memory", "joined"]


@dataclasses.dataclass(frozen=True, slots=True)
class ExecutorMemory:
    """The memory of one executor, or of several."""

    held: tuple[HeldMemory, ...] = ()
    """Blocks of weights and of code, on the host; some may be the same."""
    arenas: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """Memory -> the bytes of its arenas, idle ones and those in use, and of blocks that results lay in and the next ones will."""
    shared_arena_bytes: int = 0
    """Those of arenas that other sessions use too, not in `arenas`."""
    bindings: int = 0
    """How many sets of shapes are known, over all parts."""
    binding_bytes: int = 0
    """What is kept for them."""
    output_bytes: int = 0
    """What the outputs of a run with the latest shapes take, as far as shapes are known before it; they are the caller's."""
    silent: tuple[str, ...] = ()
    """Providers whose programs do not say what they keep."""


def executor_memory(plan: Plan, pools: Mapping[str, ArenaPool], results: ResultMemory, known: Sequence[Binding]) -> ExecutorMemory:
    """Return what an executor of `plan` keeps in its `pools`, for `results`, and for what is `known` of shapes, the latest last."""
    steps = [step for step in plan.steps if isinstance(step, ProgramStep)]
    constants = [held_array(array, HeldKind.WEIGHTS) for _, array in plan.constants]
    programs = [block for step in steps if isinstance(step.program, ReportsMemory) for block in step.program.memory_held()]
    arenas = collections.Counter({HOST.name: results.idle_bytes})
    arenas.update({name: pool.held_bytes for name, pool in pools.items() if not pool.is_shared})
    return ExecutorMemory(
        held=(*constants, *programs),
        arenas={name: size for name, size in arenas.items() if size},
        shared_arena_bytes=max((pool.held_bytes for pool in pools.values() if pool.is_shared), default=0),
        bindings=len(known),
        binding_bytes=sum(_binding_bytes(plan, binding) for binding in known),
        output_bytes=_output_bytes(plan, known),
        silent=tuple(dict.fromkeys(step.provider for step in steps if not isinstance(step.program, ReportsMemory))),
    )


def joined(parts: Iterable[ExecutorMemory]) -> ExecutorMemory:
    """Return the memory of several executors, the first of which makes the outputs."""
    every = list(parts)
    arenas: collections.Counter[str] = collections.Counter()
    for part in every:
        arenas.update(part.arenas)
    return ExecutorMemory(
        held=tuple(block for part in every for block in part.held),
        arenas=dict(arenas),
        shared_arena_bytes=max((part.shared_arena_bytes for part in every), default=0),
        bindings=sum(part.bindings for part in every),
        binding_bytes=sum(part.binding_bytes for part in every),
        output_bytes=every[0].output_bytes if every else 0,
        silent=tuple(dict.fromkeys(name for part in every for name in part.silent)),
    )


def _binding_bytes(plan: Plan, binding: Binding) -> int:
    sizes = 0
    for step, bound in binding.programs:
        program = plan.steps[step]
        if isinstance(program, ProgramStep) and isinstance(program.program, ReportsMemory):
            sizes += program.program.binding_bytes(bound.bound)
    return sizes


def _output_bytes(plan: Plan, known: Sequence[Binding]) -> int:
    sizes: dict[int, int] = {}
    for binding in known:
        for step, bound in binding.programs:
            program = plan.steps[step]
            slots = program.outputs if isinstance(program, ProgramStep) else ()
            sizes.update(
                (slot, size_bytes(spec)) for slot, spec in zip(slots, bound.bound.outputs, strict=True) if spec is not None
            )
    return sum(sizes.get(slot, 0) for slot in set(plan.outputs))
