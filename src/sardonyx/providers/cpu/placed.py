"""What a binding is: steps with their sizes, places in the arena, and the table that the driver reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.run.step_table import KernelCall, StepTable
from sardonyx.providers.cpu.storage import Storage

__all__ = ["ArenaPlaces", "Placed", "Planned", "PlannedStep"]

_LEAST_USED = 4
"""Places stay where they are while no more than one in so many bytes is not used."""
_GROWTH = 8
"""A place that has grown gets a part of its size besides."""
_LEAST_GROWTH = 4096
"""And at least so many bytes."""


@dataclasses.dataclass(frozen=True, slots=True)
class ArenaPlaces:
    """Where the places in the arena are."""

    blocks: Sequence[int]
    """The bytes that each place was to have."""
    capacities: Sequence[int]
    """The bytes that it has."""
    offsets: Sequence[int]
    """Where it begins."""
    arena_bytes: int
    """How large the arena is."""

    @staticmethod
    def of(storage: Storage, blocks: Sequence[int]) -> ArenaPlaces:
        """Return places of just these sizes."""
        return ArenaPlaces(blocks, blocks, *storage.place(blocks))

    def for_blocks(self, storage: Storage, blocks: Sequence[int]) -> ArenaPlaces:
        """Return places for other sizes: these where they will do, else such that those which have grown can grow on."""
        if self._hold(blocks):
            return self
        capacities = [
            need + max(need // _GROWTH, _LEAST_GROWTH) if old < need < 2 * old else need
            for need, old in zip(blocks, self.blocks, strict=True)
        ]
        return ArenaPlaces(blocks, capacities, *storage.place(capacities))

    def _hold(self, blocks: Sequence[int]) -> bool:
        """Return whether each place is large enough, and all together are not much too large."""
        if blocks == self.blocks:
            return True
        if not all(need <= have for need, have in zip(blocks, self.capacities, strict=True)):
            return False
        whole = sum(self.capacities)
        return whole - sum(blocks) <= max(whole // _LEAST_USED, _LEAST_GROWTH * len(blocks))


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedStep:
    """What one step does for given sizes."""

    call: KernelCall
    """The kernel with its buffers and parameters."""
    symbols: frozenset[str]
    """The symbols that decide these, besides places in the arena."""


@dataclasses.dataclass(frozen=True, slots=True)
class Placed:
    """A binding."""

    places: ArenaPlaces
    """Where temporaries are."""
    table: StepTable
    """The steps as the driver reads them."""


@dataclasses.dataclass(frozen=True, slots=True)
class Planned(Placed):
    """A binding whose plans were asked."""

    symbols: Mapping[str, int]
    """The sizes."""
    steps: Sequence[PlannedStep]
    """What each step does."""
