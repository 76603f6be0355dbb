"""The step table of a binding, of which each run that goes on at the same time takes a copy."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.run.driver import Call, Driver
from sardonyx.codegen.run.step_table import StepTable
from sardonyx.errors import SardonyxError
from sardonyx.providers.cpu.placed import ArenaPlaces
from sardonyx.providers.cpu.sizes import Sizes

__all__ = ["Tables", "TakenTable"]


@dataclasses.dataclass(frozen=True, slots=True)
class TakenTable:
    """A step table with its call; one run uses it at a time."""

    table: StepTable
    """The steps."""
    call: Call
    """What runs them."""


class Tables:
    """Copies of one table, so that concurrent runs have one each."""

    __slots__ = ("_driver", "_idle", "_table", "blocks", "broken", "has_long_task", "places", "sizes")

    def __init__(
        self,
        table: StepTable,
        runner: Driver,
        blocks: Sequence[int],
        sizes: Sizes,
        broken: Mapping[int, SardonyxError],
        places: ArenaPlaces | None = None,
        *,
        has_long_task: bool | None = None,
    ) -> None:
        """Begin with one table, which is nobody else's."""
        self.blocks = blocks
        """Where memory is fenced, the bytes of each place in the arena."""
        self.sizes = sizes
        """What symbolic dimensions are in this binding."""
        self.broken = broken
        """The errors of steps that cannot run with these sizes."""
        self.places = places
        """Where temporaries are, in a binding that others may be made of."""
        self.has_long_task = has_long_task
        """Whether a task may take so long that nobody is heard meanwhile; None while nobody has asked."""
        self._table = table
        self._driver = runner
        self._idle: collections.deque[TakenTable] = collections.deque((TakenTable(table, runner.prepare(table)),), maxlen=8)

    @property
    def tasks(self) -> Sequence[int]:
        """How many tasks each step is."""
        return self._table.tasks

    @property
    def size_bytes(self) -> int:
        """How long the words of all copies are."""
        return self._table.size_bytes * max(len(self._idle), 1)

    def take(self) -> TakenTable:
        """Return an idle copy, or a new one."""
        try:
            return self._idle.pop()
        except IndexError:
            table = self._table.copy()
            return TakenTable(table, self._driver.prepare(table))

    def copy(self) -> StepTable:
        """Return a copy for a caller of its own."""
        return self._table.copy()

    def give_back(self, entry: TakenTable) -> None:
        """Return what `take` gave."""
        self._idle.append(entry)
