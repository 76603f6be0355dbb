"""Binding: for one set of shapes, the sizes and arena offsets of a part of a plan, kept in a bounded least-recently-used table.

A new set of shapes costs one `bind` per step and one placement; a known one costs a look-up. No code is generated here.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeAlias, TypeVar

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.arena import Lifetime, place
from sardonyx.dtypes import OnnxValue
from sardonyx.forks import new_lock
from sardonyx.provider import HOST, Bound, DeviceBuffer, Memory, ReportsMemory, TensorSpec
from sardonyx.runtime.failures import blame, check_bound, check_sizes
from sardonyx.runtime.memory import out_of_memory, size_bytes
from sardonyx.runtime.plan import Plan, ProgramStep, Segment
from sardonyx.runtime.result_memory import LEAST_BYTES, ResultMemory
from sardonyx.trace import span

__all__ = ["Binder", "Binding", "BoundStep", "Shapes", "Tenant", "bind_steps", "segment_binder"]

_SMALL_BYTES = 1 << 23
"""How many bytes bindings may keep before there are no more than the table is for: a text needs as many as it has tokens."""
_LEAST_KEPT_BYTES, _KEPT_BYTES_OF_OUTPUT = 4096, 1024
"""What a step keeps for one set of shapes besides what its program says, about."""
_ALIGNED_FROM_BYTES = 4096
"""From which size on a tensor of the host is worth aligning."""

Shapes: TypeAlias = tuple[tuple[int, ...] | None, ...]
"""The shapes of values in order; None for what is no tensor."""


@dataclasses.dataclass(frozen=True, slots=True)
class BoundStep:
    """A program's step with its sizes."""

    bound: Bound
    """What the program's `bind` returned."""
    offsets: tuple[int | None, ...]
    """For each output its offset in the arena; None where it gets memory of its own or the program makes it."""
    makers: tuple[Callable[[], OnnxValue] | None, ...]
    """For each output what makes a tensor with memory of its own, opaque to the runtime; None where the program makes it."""
    scratch_offset: int
    """Where its scratch memory lies in the arena."""


@dataclasses.dataclass(frozen=True, slots=True)
class Binding:
    """A part of a plan bound to shapes."""

    steps: tuple[BoundStep | None, ...]
    """For each step of the part its sizes; None for a copy."""
    arena_bytes: dict[str, int]
    """How much memory one run of the part needs, by the memory's name."""
    indices: tuple[int, ...]
    """The numbers of the steps in the plan."""
    kept_bytes: int = 0
    """What programs keep for it, about."""

    @property
    def programs(self) -> list[tuple[int, BoundStep]]:
        """The steps that are no copies, with their numbers."""
        return [(index, step) for index, step in zip(self.indices, self.steps, strict=True) if step is not None]


class _Part(Protocol):
    """Steps that are bound as a whole."""

    @property
    def start(self) -> int:
        """Index of its first step, which names it."""


PartT = TypeVar("PartT", bound=_Part)


class Binder(Generic[PartT]):
    """The bindings of the parts of one plan: `capacity` of them, or more while all are small. Safe for threads."""

    def __init__(self, bind: Callable[[PartT, Shapes], Binding], capacity: int = 64) -> None:
        """Make an empty table of what `bind` makes of a part and the shapes that enter it."""
        self._bind = bind
        self._capacity = capacity
        self._kept_bytes = 0
        self._table: collections.OrderedDict[tuple[int, Shapes], Binding] = collections.OrderedDict()
        self._latest: dict[int, tuple[Shapes, Binding]] = {}
        self._lock = new_lock()

    def __len__(self) -> int:
        return len(self._table)

    def find(self, part: PartT, shapes: Shapes) -> Binding:
        """Return the binding of `part` for `shapes` of its entries, making it where it is new."""
        latest = self._latest.get(part.start)
        if latest is not None and latest[0] == shapes:
            return latest[1]
        binding = self._look_up(part, shapes)
        self._latest[part.start] = shapes, binding
        return binding

    def _look_up(self, part: PartT, shapes: Shapes) -> Binding:
        key = part.start, shapes
        with self._lock:
            found = self._table.pop(key, None)
            if found is not None:
                self._table[key] = found  # as the latest
                return found
        with span("runtime.bind", shapes=shapes):
            made = self._bind(part, shapes)
        with self._lock:
            replaced = self._table.pop(key, None)
            self._kept_bytes += made.kept_bytes - (0 if replaced is None else replaced.kept_bytes)
            self._table[key] = made
            while len(self._table) > self._capacity and self._kept_bytes > _SMALL_BYTES:
                self._kept_bytes -= self._table.popitem(last=False)[1].kept_bytes
        return made

    def known(self) -> list[Binding]:
        """Return the bindings, the latest used last."""
        with self._lock:
            return list(self._table.values())

    def clear(self) -> None:
        """Forget all bindings."""
        with self._lock:
            self._table.clear()
            self._latest.clear()
            self._kept_bytes = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Tenant:
    """What wants a place in the arena of a part of a plan."""

    size_bytes: int
    """How much."""
    step: int
    """The step that fills it."""
    slot: int | None
    """The slot that it is the value of; None for scratch memory, which only its step uses."""


def segment_binder(plan: Plan, results: ResultMemory | None = None, capacity: int = 64) -> Binder[Segment]:
    """Return the bindings of the segments of `plan`, whose large results lie in `results`, or in memory that nobody keeps.

    Steps run in their order, so memory is free after the last step that reads it.
    """
    return Binder(functools.partial(_bind_segment, plan, results or ResultMemory(0)), capacity)


def _bind_segment(plan: Plan, results: ResultMemory, segment: Segment, shapes: Shapes) -> Binding:
    def place_in_order(tenants: Sequence[Tenant]) -> tuple[list[int], int]:
        ends = [tenant.step if tenant.slot is None else plan.last_use[tenant.slot] for tenant in tenants]
        return place([Lifetime(tenant.size_bytes, tenant.step, end) for tenant, end in zip(tenants, ends, strict=True)])

    known, indices = dict(zip(segment.entries, shapes, strict=True)), range(segment.start, segment.stop)
    return bind_steps(plan, indices, known, lambda slot: plan.last_use[slot] < segment.stop, place_in_order, results)


def bind_steps(
    plan: Plan,
    indices: Sequence[int],
    known: dict[int, tuple[int, ...] | None],
    is_local: Callable[[int], bool],
    place_tenants: Callable[[Sequence[Tenant]], tuple[list[int], int]],
    results: ResultMemory,
) -> Binding:
    """Bind some steps of a plan.

    Args:
        plan: the plan.
        indices: which steps, such that what one reads is known or made before.
        known: the shapes of what they read from elsewhere, by slot; those that they make are added.
        is_local: whether a slot is read by these steps only.
        place_tenants: gives those of one memory their offsets, and the size of all.
        results: what large tensors of the host lie in that leave these steps.
    """
    bounds: list[Bound | None] = []
    wanted: dict[str, list[Tenant]] = {}
    may_escape = _may_escape(plan, indices)
    for index in indices:
        step = plan.steps[index]
        if not isinstance(step, ProgramStep):
            known[step.target] = known[step.source]
            bounds.append(None)
            continue
        bound = _bind_step(step, tuple(known[slot] for slot in step.inputs))
        bounds.append(bound)
        tenants = wanted.setdefault(step.memory.name, [])
        for slot, spec in zip(step.outputs, bound.outputs, strict=True):
            known[slot] = None if spec is None else spec.shape
            if spec is not None and is_local(slot) and slot not in may_escape:
                tenants.append(Tenant(size_bytes(spec), index, slot))
        if bound.scratch_bytes:
            tenants.append(Tenant(bound.scratch_bytes, index, None))
    offsets: dict[tuple[int, int | None], int] = {}
    arena_bytes: dict[str, int] = {}
    for name, tenants in wanted.items():
        placed, total = place_tenants(tenants)
        offsets.update(zip(((tenant.step, tenant.slot) for tenant in tenants), placed, strict=True))
        if total:
            arena_bytes[name] = total
    pairs = zip(indices, bounds, strict=True)
    steps = tuple(None if bound is None else _bound_step(plan, index, bound, offsets, results) for index, bound in pairs)
    return Binding(
        steps, arena_bytes, tuple(indices), sum([_kept_bytes(plan, *pair) for pair in zip(indices, bounds, strict=True)])
    )


def _kept_bytes(plan: Plan, index: int, bound: Bound | None) -> int:
    """Return about how much a step keeps for one set of shapes."""
    step = plan.steps[index]
    if bound is None or not isinstance(step, ProgramStep):
        return 0
    own = step.program.binding_bytes(bound) if isinstance(step.program, ReportsMemory) else _SMALL_BYTES
    return own + _LEAST_KEPT_BYTES + _KEPT_BYTES_OF_OUTPUT * len(step.outputs)


def _bind_step(step: ProgramStep, shapes: Shapes) -> Bound:
    try:
        bound = step.program.bind(shapes)
    except Exception as error:
        blame(error, step, f"bind its {step.part} to {shapes}")
        raise
    check_bound(bound, step)
    if step.reads:
        check_sizes(step, shapes, [None if spec is None else spec.shape for spec in bound.outputs])
    return bound


def _may_escape(plan: Plan, indices: Sequence[int]) -> set[int]:
    """Return slots read by programs that make their outputs, which may be views of what they read and outlive the arena."""
    steps = [plan.steps[index] for index in indices]
    return {slot for step in steps if isinstance(step, ProgramStep) and step.program.makes_outputs for slot in step.inputs}


def _bound_step(
    plan: Plan, index: int, bound: Bound, offsets: dict[tuple[int, int | None], int], results: ResultMemory
) -> BoundStep:
    step = plan.steps[index]
    if not isinstance(step, ProgramStep):
        raise ValueError("a copy is not bound")
    places = tuple(offsets.get((index, slot)) for slot in step.outputs)
    made = {id(spec): _maker(step.memory, spec, results) for spec in {id(spec): spec for spec in bound.outputs}.values()}
    makers = tuple([made[id(spec)] for spec in bound.outputs])
    return BoundStep(bound, places, makers, offsets.get((index, None), 0))


def _maker(memory: Memory, spec: TensorSpec | None, results: ResultMemory) -> Callable[[], OnnxValue] | None:
    """Return what makes a tensor with a buffer of its own.

    Small ones of the host are plain arrays: aligning them would cost more.
    """
    if spec is None:
        return None
    size = size_bytes(spec)
    if memory is not HOST:
        return functools.partial(_make, memory.allocate, memory, size, spec)
    if size < _ALIGNED_FROM_BYTES:
        return functools.partial(np.empty, spec.shape, spec.dtype.numpy)
    return functools.partial(_make, memory.allocate if size < LEAST_BYTES else results.take, memory, size, spec)


def _make(allocate: Callable[[int], DeviceBuffer], memory: Memory, size: int, spec: TensorSpec) -> OnnxValue:
    try:
        return memory.view(allocate(size), 0, spec.dtype, spec.shape)
    except MemoryError as error:
        raise out_of_memory(f"a tensor {spec.dtype}{list(spec.shape)}, {size} bytes") from error
