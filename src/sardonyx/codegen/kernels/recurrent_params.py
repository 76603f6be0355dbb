"""What a recurrent kernel depends on: its cell, the sizes of a call, and how a call is cut into tasks; see `recurrent`."""

from __future__ import annotations

import enum

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import ElementExpr
from sardonyx.codegen.emit.types import Type
from sardonyx.codegen.kernels.gemm_params import TASK_PRODUCTS, chain_for
from sardonyx.codegen.target import Target

__all__ = ["PARAMS", "PLANES", "Cell", "Phase", "Plane", "RecurrentParams", "Work", "together"]

ROUND_PRODUCTS = 1 << 24
"""Multiplications of one unit of work in one round, about a millisecond: a run can only be ended between tasks."""

SHARED_PRODUCTS = 1 << 17
"""Multiplications of a phase for each of the threads that share its panels: much longer than a round, some microseconds."""

SHARED_WEIGHTS = 1 << 18
"""Elements of R beyond which threads share panels rather than rows: each reads only a part of what its cache cannot hold."""


class Plane(enum.IntEnum):
    """A plane of the state."""

    HIDDEN = 0
    """The hidden state, in two planes."""
    CELL = 2
    """The state of a cell with another one than the hidden state."""
    UPDATE = 3
    """What a phase keeps for the next one: the update gate."""
    RESET = 4
    """What a phase multiplies next: the hidden state times the reset gate."""


PLANES = 5
"""How many planes of memory there are."""


@dataclasses.dataclass(frozen=True, slots=True)
class Phase:
    """A product of a step and what is stored of its sums.

    The arguments of an expression: the sums of the gates, their projected inputs, the columns of the cell, the elements.
    """

    gates: int
    """How many sums there are for each unit."""
    source: Plane
    """What is multiplied."""
    elements: tuple[Plane, ...]
    """What is read at the unit's own place."""
    stores: tuple[tuple[Plane, ElementExpr], ...]
    """What is written there; the hidden state goes to Y too."""


@dataclasses.dataclass(frozen=True, slots=True)
class Cell:
    """What the code of a kernel depends on."""

    phases: tuple[Phase, ...]
    """The products of a step, in order."""
    units: int
    """Vectors of units that lie together: a low tile's; a tall one has some of them."""
    columns: int
    """Numbers that each unit has besides: weights of peepholes, biases."""
    states: tuple[Plane, ...]
    """What begins with an input and ends in an output."""
    is_ragged: bool
    """Whether sequences have lengths of their own."""

    @property
    def name(self) -> str:
        """It as a part of a symbol, but for the expressions."""
        phases = [[phase.gates, phase.source, *phase.elements, *(plane for plane, _ in phase.stores)] for phase in self.phases]
        words = ["".join(str(int(number)) for number in (*phase, 9)) for phase in phases]
        states = "".join(str(int(plane)) for plane in self.states)
        return "_".join([*words, f"{self.units}x{self.columns}s{states}", *(["ragged"] if self.is_ragged else [])])

    @property
    def expressions(self) -> list[ElementExpr]:
        """All that is stored."""
        return [expr for phase in self.phases for _, expr in phase.stores]

    @property
    def kind(self) -> Type:
        """The type of all elements and sums, F32 or F64."""
        return self.expressions[0].type

    @property
    def gates(self) -> int:
        """Gates of all phases together."""
        return sum(phase.gates for phase in self.phases)

    def panel_units(self, number: int) -> int:
        """Return the vectors of units in a panel of a phase: four vectors wide, or three."""
        return min(self.units, 4 // self.phases[number].gates)

    def padded(self, target: Target, H: int) -> int:
        """Return the units of whole panels."""
        width = self.units * target.lanes(self.kind.bits)
        return -(-H // width) * width


@dataclasses.dataclass(frozen=True, slots=True)
class Work:
    """How a call is cut: units of work, and ticks of a round."""

    rows: int
    """Rows of the batch in one unit of work."""
    row_blocks: int
    """How many units of work share the rows."""
    panels: int
    """Panels in one unit of work."""
    column_blocks: int
    """How many units of work share the panels; more than one makes each tick a round."""
    ticks: int
    """Ticks of one round."""
    parts: int
    """Tasks of one round: a multiple of how many run together."""


@dataclasses.dataclass(frozen=True, slots=True)
class RecurrentParams:
    """The sizes of one call. Strides count elements."""

    N: int
    """Rows of the batch."""
    T: int
    """Steps."""
    H: int
    """Units of the hidden state."""
    padded: int
    """Units of whole panels."""
    directions: int
    """How many directions lie in the buffers."""
    first: int
    """The first direction of the call."""
    count: int
    """How many directions the call is about."""
    backward: int
    """The directions that run from the last step to the first, as bits."""
    projected: tuple[int, int]
    """From one step and one row of the batch to the next, in what was projected."""
    y: tuple[int, int, int]
    """From one step, one row and one direction to the next, in Y; steps may lie in one place."""
    last: tuple[int, int]
    """From one row and one direction to the next, in the last states."""
    initial: tuple[int, int]
    """The same in the initial hidden state; 0 takes the same one."""
    initial_cell: tuple[int, int]
    """The same in the other initial state."""

    def cut(self, target: Target, cell: Cell, threads: int) -> Work:
        """Return how to cut the call: rows of the batch among the threads, panels where there are too few rows and steps are long.

        Panels that are shared make each tick a round; else a round is as many ticks as take about a millisecond.
        """
        panels, weights = self.padded // (cell.units * target.lanes(cell.kind.bits)), self.H * self.padded * cell.gates
        share = -(-threads // max(self.count, 1))
        by_columns = min(share, self.N * weights // (len(cell.phases) * SHARED_PRODUCTS), panels)
        if weights <= SHARED_WEIGHTS and share <= self.N:
            by_columns = 1
        columns = -(-panels // max(by_columns, 1))
        column_blocks = -(-panels // columns)
        wanted = max(-(-share // column_blocks), -(-self.N * weights // TASK_PRODUCTS))
        rows = -(-self.N // min(wanted, max(self.N, 1)))
        row_blocks = -(-self.N // rows) if rows else 0
        ticks = max(1, ROUND_PRODUCTS // max(rows * weights, 1)) * len(cell.phases) if column_blocks == 1 else 1
        units = self.count * row_blocks * column_blocks
        tasks = units if threads > 1 or self.count * self.N * weights > TASK_PRODUCTS else 1
        return Work(rows, row_blocks, columns, column_blocks, ticks, -(-max(tasks, 1) // together(threads)) * together(threads))

    def words(self, work: Work) -> list[int]:
        """Return the parameters as the kernel reads them."""
        units = self.count * work.row_blocks * work.column_blocks
        sizes = [self.N, self.T, self.H, self.padded, self.directions, self.first, self.backward, chain_for(self.H)]
        cut = [units, work.rows, work.row_blocks, work.panels, work.column_blocks, work.ticks, work.parts]
        return [*sizes, *cut, *self.projected, *self.y, *self.last, *self.initial, *self.initial_cell]

    def tasks(self, cell: Cell, work: Work) -> int:
        """Return how many tasks it is."""
        return -(-(self.T * len(cell.phases) + 2) // work.ticks) * work.parts


PARAMS = (
    "N T H padded directions first backward chain units rows row_blocks panels column_blocks ticks parts "
    "projected_t projected_n y_t y_n y_d last_n last_d initial_n initial_d initial_cell_n initial_cell_d"
).split()
"""The integer parameters of the kernel, in their order."""


def together(threads: int) -> int:
    """Return how many tasks run at a time; each round is a multiple of them."""
    return threads
