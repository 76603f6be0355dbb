"""What a partition is lowered to: buffers, and steps that run kernels over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Dim, Shape
from sardonyx.ir.shape import product
from sardonyx.providers.cpu.sizes import Sizes

__all__ = ["RANDOM_SOURCE", "STATUS", "Buffer", "Control", "KernelLaunch", "Mark", "Move", "Plan"]


@dataclasses.dataclass(eq=False, slots=True)
class Buffer:
    """Dense, row-major elements: a value, a packed weight, or a temporary. Compared by identity."""

    dtype: DataType
    """The element type; a bool takes a byte, and so does an integer of 2 or 4 bits, whose upper bits mean nothing."""
    shape: Shape
    """The dimensions, ints or expressions in the symbols of the partition's inputs."""
    constant: Array | None = None
    """The elements of a constant."""
    base: Buffer | None = None
    """The buffer that this one is a view of; None for one with memory of its own."""
    offset: Dim = 0
    """Where a view begins, in elements of its base."""
    pitch: Dim | None = None
    """For a view whose rows along the last dimension lie apart: from one to the next, in elements. Only its writers see it."""

    count: Buffer | None = None
    """For a result whose size only the run shows: the int64 in which a step stores how long `counted` really is; else None. The
    `shape` is then the greatest that it may have, and the elements lie densely in the first part of the memory."""
    counted: int = 0
    """The dimension whose length `count` holds."""

    @property
    def is_whole(self) -> bool:
        """Whether it covers all elements of its root."""
        return self.base is None or product(self.shape) == product(self.root.shape)

    @property
    def row(self) -> Dim:
        """From one row along the last dimension to the next, in elements."""
        return self.shape[-1] if self.pitch is None else self.pitch

    @property
    def root(self) -> Buffer:
        """The buffer whose memory this one lies in."""
        found = self
        while found.base is not None:
            found = found.base
        return found


STATUS = Buffer(DataType.INT64, (1,))
"""The word in which a kernel reports an element that it refuses, such as an index out of range: its number and 1."""

RANDOM_SOURCE = Buffer(DataType.UINT64, (2,))
"""The words of the process that kernels take streams of random numbers from, as `codegen.run.random_source` has them."""

Plan: TypeAlias = Callable[[Sizes], tuple[Sequence[int], int]]
"""From the sizes of one binding to a kernel's integer parameters and its number of tasks; it generates no code."""


class Mark:
    """What a step that others go to is recognized by; compared by identity."""

    __slots__ = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Move:
    """A buffer of a loop's body that lies elsewhere in each iteration, as `codegen.kernels.control` has it."""

    buffer: Buffer
    """The buffer; views of it move along."""
    role: int
    """SLICE, READ or WRITE."""
    number: Dim
    """Which of the loop-carried values it is of; of a slice where the first one begins, in bytes from the first element."""
    step_bytes: Dim = 0
    """For a slice: from one to the next."""


@dataclasses.dataclass(frozen=True, slots=True)
class Control:
    """What makes a step one that decides which step follows; its first parameter is how many steps it may skip."""

    mark: Mark
    """By which it is found."""
    target: Mark
    """The step that it may go to."""
    is_beyond: bool
    """Whether it goes to the step after that one."""
    moves: tuple[Move, ...] | None = None
    """For the end of a loop's body, whose target is the loop's beginning: what moves in between."""


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class KernelLaunch:
    """One launch of a kernel."""

    name: str
    """The operators that it computes, for reports."""
    place: str
    """How messages name the node that it computes."""
    symbol: str
    """The kernel."""
    buffers: tuple[Buffer, ...]
    """What the kernel finds in `buffers`, in its order."""
    writes: tuple[int, ...]
    """Which of the buffers it writes; all others it only reads."""
    plan: Plan
    """Its parameters and tasks for given sizes."""
    in_place: tuple[int, ...] = ()
    """Which of the buffers may share memory with the first one written: the kernel reads each element before it writes there."""
    pitched: bool = False
    """Whether rows of the first buffer written may lie apart: the plan asks for its `row`."""
    nodes: tuple[int, ...] = ()
    """The places of the nodes that it computes among the partition's."""
    failure: str = ""
    """The message where it reports a failure that is no index out of range, with {} for what it reported, less 1."""
    together: int = 0
    """The most tasks that may run at a time, where each has a part of a workspace, or needs results of those before; 0 for any.

    The tasks from one multiple of it to the next end before those that follow begin.
    """
    scalars: tuple[int, ...] = ()
    """Numbers of the group's expression, as words: see `codegen.emit.scalars`."""
    unless: Callable[[Sizes], bool] | None = None
    """With sizes for which it holds there is nothing to do, and the plan is not asked: another step does what this one would."""
    shares: tuple[tuple[int, int], ...] = ()
    """Which of the buffers that it reads and writes may be one memory: it then leaves there what it would have copied."""
    control: Control | None = None
    """For a step that decides which step follows: where it goes."""
