"""Walk rows through decision trees, and add up what the leaves say.

A tree's nodes are records of two numbers of one size, a threshold and the rest:

    slot     0      1        2        3        4        5
           root  (unused)  ├ where the ┤    ├ where the ┤      the pair of the k-th inner node is at 2 (k + 1):
                           │ test of the│   │ second    │      the first of it is met where the test holds
                           │ first node │   │ inner node│
    rest = first slot of the pair, from the tree's base, << shift | feature << 2 | equality << 1 | missing

    inner:  x = row[feature]; go on at base + pair + (0 if x <= threshold else 1)
            with `equality` the test is x == threshold; with `missing` it holds for NaN too
    leaf:   rest is below 1 << shift; the threshold's bits are the leaf's value, or its number

Four vectors go down at a time, so that one waits for memory while the others compute: of rows through one tree, or, where there are
few rows, of trees for one row. The last rows of a block, where they fill no more than two vectors, go through two trees at a time.
Lanes that have met a leaf stay there until all have. The values are added in the order of the trees in each case, so a row has the
same bits in a batch as alone.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence

from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F32, F64, I32, I64, U32, U64, Type
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["MISSING", "MOST_ROWS", "PADDING", "REST_FLAGS", "ForestCode", "ForestParams", "write_forest"]

NODES, STARTS, BASES, DATA, TOTALS, TARGETS, WEIGHTS, FIRSTS, VOTE_TARGETS, VOTED = range(10)
"""The buffers: STARTS and BASES (slots) per tree, PADDING more than trees; DATA (rows, features); TOTALS (rows, targets). For
"many" TARGETS per tree, int32, and -1 at the end. For "dense" and "list" WEIGHTS: of a leaf one for each target, or the votes, of
which FIRSTS says where those of each leaf begin. VOTE_TARGETS (int64) are their targets; VOTED (rows, targets), int32, becomes 1
where there was a vote."""

_AT_ONCE = 4
MOST_ROWS = 256
"""Rows of one task at most: a tree's nodes stay in the cache while they walk."""
PADDING = 64
"""How many entries more than trees STARTS and BASES have: lanes * _AT_ONCE at most."""
REST_FLAGS = 2
"""How many bits of a record's rest are flags."""
MISSING, EQUALITY = 1, 2


@dataclass(frozen=True, slots=True)
class ForestCode:
    """What the code of the kernel depends on."""

    data: Type
    """The type of features: F32, F64, I32 or I64."""
    compared: Type
    """The type in which they are compared: F32, of records of 8 bytes, or F64, of 16."""
    total: Type
    """The type in which votes are added."""
    votes: str
    """What leaves say: "one", a value for the only target; "many", a value for the tree's target; "dense", one for each target;
    "list", any number of votes."""
    combine: str
    """How votes are combined: "sum", "min" or "max"."""
    missing: bool
    """Whether the test of some node holds for NaN."""
    equality: bool
    """Whether some node tests equality."""

    @property
    def name(self) -> str:
        """All of it, for a symbol."""
        types = "_".join(f"{kind.kind.value[0]}{kind.bits}" for kind in (self.data, self.compared, self.total))
        return f"{types}_{self.votes}_{self.combine}{'_missing' if self.missing else ''}{'_equality' if self.equality else ''}"


@dataclass(frozen=True, slots=True)
class ForestParams:
    """The integer parameters, in their order."""

    rows: int
    """How many rows there are."""
    features: int
    """How many features each has: more than any node tests."""
    trees: int
    """How many trees there are."""
    shift: int
    """Where the pair begins in a record's rest."""
    targets: int
    """How many targets there are."""
    block: int
    """Rows of one task, MOST_ROWS at most; 0 takes row after row, vectors being of trees, a task each."""

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them."""
        return [self.rows, self.features, self.trees, self.shift, self.targets, self.block]

    def tasks(self) -> int:
        """Return how many tasks it is."""
        return -(-self.rows // self.block) if self.block else self.rows


def write_forest(module: Module, symbol: str, code: ForestCode) -> None:
    """Write the kernel `symbol`."""
    with module.kernel(symbol) as b:
        forest = _Forest(b, code)
        b.branch(forest.block.eq(0), forest.walk_rows, forest.walk_blocks)


@dataclass(frozen=True, slots=True)
class _Block:
    """The rows of a task."""

    offsets: Pointer
    """Where each begins in the data."""
    sums: Pointer
    """The sum of votes of each."""
    first: Register
    """The number of the first one."""
    count: Register
    """How many there are."""
    main: Register
    """How many go through one tree at a time."""


class _Forest:
    """The kernel in the making."""

    def __init__(self, b: Kernel, code: ForestCode) -> None:
        self.b, self.code = b, code
        self.rows, self.features, self.trees, self.shift, self.targets, self.block = (b.param(place) for place in range(6))
        self.lanes = b.lanes(code.compared)
        self.step = self.lanes * _AT_ONCE
        self.index, self.rest = (I32, U32) if code.compared == F32 else (I64, U64)
        self.nodes = b.buffer(NODES, I64)
        self.starts, self.bases = b.buffer(STARTS, self.index), b.buffer(BASES, self.index)
        self.data, self.totals = b.buffer(DATA, code.data), b.buffer(TOTALS, code.total)
        self.values = b.stack(code.compared, self.step, align=64)
        self.origin = {"sum": 0.0, "min": math.inf, "max": -math.inf}[code.combine]

    def walk_rows(self) -> None:
        """Take row after row: vectors of trees."""
        b = self.b
        with b.loop(b.begin, b.end) as row:
            self._begin_totals(row, b.const(I64, 1))
            data, total = self.data.at(row * self.features), b.variable(b.const(self.code.total, self.origin))
            here = [b.const(self.index.vector(self.lanes), 0)] * _AT_ONCE
            with b.loop(0, self.trees, self.step) as tree:
                places = [tree + self.lanes * number for number in range(_AT_ONCE)]
                starts, bases = ([table.load(place, self.lanes) for place in places] for table in (self.starts, self.bases))
                self._keep(self._descend(data, here, starts, bases))
                with b.loop(0, b.min(self.trees - tree, self.step)) as lane:
                    value = self.values.load(lane)
                    if self.code.votes == "one":
                        total.set(self._combined(total.value, value.to(self.code.total)))
                    else:
                        self._vote(row, tree + lane, value)
            if self.code.votes == "one":
                self.totals.store(total.value, row)

    def walk_blocks(self) -> None:
        """Take blocks of rows: vectors of rows, one tree after another."""
        b = self.b
        offsets, sums = b.stack(self.index, MOST_ROWS + PADDING, align=64), b.stack(self.code.total, MOST_ROWS + PADDING, align=64)
        with b.loop(b.begin, b.end) as task:
            first = task * self.block
            count = b.min(self.rows - first, self.block)
            self._begin_totals(first, count)
            with b.loop(0, count, self.lanes) as row:
                place = b.min(b.iota(self.index, self.lanes) + row.to(self.index), (count - 1).to(self.index))
                offsets.store(place * self.features.to(self.index), row)
                sums.store(b.const(self.code.total.vector(self.lanes), self.origin), row)
            self._fill_rest(offsets, sums, count)
            last = count & (self.step - 1)
            block = _Block(offsets, sums, first, count, b.select(last > self.step // 2, count, count - last))
            self._walk_block(block, 1)
            with b.when(block.main < count):
                self._walk_block(block, 2)
            if self.code.votes == "one":
                for i, span in b.vectors(0, count, self.code.total):
                    self.totals.store(sums.load(i, span), first + i, span)

    def _walk_block(self, block: _Block, trees: int) -> None:
        """Take rows through `trees` trees at a time: of a block's rows the main part through one, the last ones through two."""
        b, data, vectors = self.b, self.data.at(block.first * self.features), _AT_ONCE // trees
        begin, end = (block.main, block.count) if trees > 1 else (b.const(I64, 0), block.main)
        with b.loop(0, self.trees, trees) as tree:
            start, base = (
                [table.load(tree + number).splat(self.lanes) for number in range(trees) for _ in range(vectors)]
                for table in (self.starts, self.bases)
            )
            with b.loop(begin, end, self.lanes * vectors) as row:
                rows = [block.offsets.load(row + self.lanes * number, self.lanes) for number in range(vectors)]
                found = self._descend(data, rows * trees, start, base)
                for number in range(trees):
                    with b.when(tree + number < self.trees) if number else contextlib.nullcontext():
                        self._add(block, row, tree + number, found[number * vectors : (number + 1) * vectors])
                        if self.code.votes == "many" and trees > 1:
                            self._finish_target(block, begin, end, tree + number)
            if self.code.votes == "many" and trees == 1:
                self._finish_target(block, begin, end, tree)

    def _fill_rest(self, offsets: Pointer, sums: Pointer, count: Register) -> None:
        """Let the lanes behind the last row of a block walk as its first one does."""
        b = self.b
        rounded = (count + (self.lanes - 1)) & -self.lanes
        with b.loop(rounded, (count + (self.step - 1)) & -self.step, self.lanes) as row:
            offsets.store(b.const(self.index.vector(self.lanes), 0), row)
            sums.store(b.const(self.code.total.vector(self.lanes), self.origin), row)

    def _descend(
        self, data: Pointer, offsets: Sequence[Register], starts: Sequence[Register], bases: Sequence[Register]
    ) -> list[Register]:
        """Return the thresholds' bits of the leaves that each lane reaches, for the row at its offset in `data`."""
        b, shift = self.b, self.shift.to(self.rest)
        features = (b.const(self.rest, 1) << shift) - 1
        slots = [b.variable(start) for start in starts]
        with b.repeat() as walk:
            records = [self._records(slot.value) for slot in slots]
            pairs = [rest >> shift for _, rest in records]
            inner = [pair.ne(0) for pair in pairs]
            some = inner[0]
            for other in inner[1:]:
                some = some | other
            walk.stop_if(~b.any_lane(some))
            for slot, offset, base, (threshold, rest), pair, goes_on in zip(
                slots, offsets, bases, records, pairs, inner, strict=True
            ):
                feature = ((rest & features) >> REST_FLAGS).to(self.index)
                x = self._compared(data.gather(offset + feature))
                other_one = b.select(self._holds(x, threshold, rest), b.const(self.index, 0), b.const(self.index, 1))
                slot.set(b.select(goes_on, base + pair.to(self.index) + other_one, slot.value))
        return [threshold for threshold, _ in records]

    def _records(self, slots: Register) -> tuple[Register, Register]:
        """Return the thresholds and rests of the nodes at `slots`."""
        if self.code.compared == F64:
            threshold, rest = self.nodes.gather(slots + slots), self.nodes.gather(slots + slots + 1)
            return threshold.bits_as(F64), rest.bits_as(U64)
        both = self.nodes.gather(slots).bits_as(I32.vector(2 * self.lanes))
        halves = [both.shuffle(range(half, 2 * self.lanes, 2)) for half in range(2)]
        return halves[0].bits_as(F32), halves[1].bits_as(U32)

    def _compared(self, x: Register) -> Register:
        """Return features in the type in which they are compared: 32-bit integers are rounded to float32 first."""
        return (x.to(F32) if self.code.data == I32 else x).to(self.code.compared)

    def _holds(self, x: Register, threshold: Register, rest: Register) -> Register:
        holds = x <= threshold
        if self.code.equality:
            equality = (rest & EQUALITY).ne(0)
            holds = (equality & x.eq(threshold)) | (~equality & holds)
        return holds | (self.b.is_nan(x) & (rest & MISSING).ne(0)) if self.code.missing else holds

    def _combined(self, total: Register, value: Register) -> Register:
        """Return a total with one more vote; as NumPy's minimum and maximum, NaN stays and the later one of two zeros wins."""
        if self.code.combine == "sum":
            return total + value
        wins = total < value if self.code.combine == "min" else total > value
        return self.b.select(wins | self.b.is_nan(total), total, value)

    def _begin_totals(self, first: Register, count: Register) -> None:
        """Begin the totals of `count` rows; those of one target are stored whole at the end."""
        if self.code.votes == "one":
            return
        b, totals = self.b, self.totals.at(first * self.targets)
        for i, span in b.vectors(0, count * self.targets, self.code.total):
            totals.store(self.origin, i, span)
        if self.code.votes == "list":
            voted = b.buffer(VOTED, I32).at(first * self.targets)
            for i, span in b.vectors(0, count * self.targets, I32):
                voted.store(0, i, span)

    def _keep(self, found: Sequence[Register]) -> None:
        for number, values in enumerate(found):
            self.values.store(values, self.lanes * number)

    def _add(self, block: _Block, row: Register, tree: Register, found: Sequence[Register]) -> None:
        """Add what one tree says of some rows of a block."""
        b, sums = self.b, block.sums
        if self.code.votes in ("one", "many"):
            for number, values in enumerate(found):
                place = row + self.lanes * number
                sums.store(self._combined(sums.load(place, self.lanes), values.to(self.code.total)), place)
            return
        self._keep(found)
        with b.loop(0, b.min(block.count - row, self.lanes * len(found))) as lane:
            self._vote(block.first + row + lane, tree, self.values.load(lane))

    def _finish_target(self, block: _Block, begin: Register, end: Register, tree: Register) -> None:
        """Store the totals of the tree's target after its last tree, for rows `begin` to `end` of a block."""
        b, targets = self.b, self.b.buffer(TARGETS, I32)
        target = targets.load(tree)
        with b.when(targets.load(tree + 1).ne(target)):
            totals = self.totals.at(target)
            with b.loop(begin, end) as row:
                totals.store(block.sums.load(row), (block.first + row) * self.targets)
                block.sums.store(self.origin, row)

    def _vote(self, row: Register, tree: Register, value: Register) -> None:
        """Add what one leaf says of one row to the totals."""
        votes: dict[str, Callable[[], None]] = {
            "many": lambda: self._vote_one(row, tree, value),
            "dense": lambda: self._vote_dense(row, value),
            "list": lambda: self._vote_list(row, value),
        }
        votes[self.code.votes]()

    def _vote_one(self, row: Register, tree: Register, value: Register) -> None:
        total = self.totals.at(row * self.targets + self.b.buffer(TARGETS, I32).load(tree).to(I64))
        total.store(self._combined(total.load(), value.to(self.code.total)))

    def _vote_dense(self, row: Register, value: Register) -> None:
        b, kind = self.b, self.code.total
        totals, weights = self.totals.at(row * self.targets), b.buffer(WEIGHTS, kind).at(self._leaf(value) * self.targets)
        for i, span in b.vectors(0, self.targets, kind):
            totals.store(self._combined(totals.load(i, span), weights.load(i, span)), i, span)

    def _vote_list(self, row: Register, value: Register) -> None:
        b, leaf = self.b, self._leaf(value)
        firsts, targets, weights = b.buffer(FIRSTS, I64), b.buffer(VOTE_TARGETS, I64), b.buffer(WEIGHTS, self.code.total)
        with b.loop(firsts.load(leaf), firsts.load(leaf + 1)) as vote:
            place = row * self.targets + targets.load(vote)
            self.totals.store(self._combined(self.totals.load(place), weights.load(vote)), place)
            b.buffer(VOTED, I32).store(1, place)

    def _leaf(self, value: Register) -> Register:
        """Return the number of a leaf, which stands where others have a threshold."""
        return value.bits_as(self.index).to(I64)
