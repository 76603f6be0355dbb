"""Support vector machines: kernel values of rows with vectors, weighted sums of them per class, decisions and votes.

    k[v] = value(x · v)  or  value(|x - v|²)                    for all vectors v
    t[r, c] = sum of k[v] * weight[r, v]                        over the vectors v of class c, in float64
    d[i, j] = t[j - 1, i] + t[i, j] + rho                       for each pair of classes i < j; positive for class i

The vectors of a class lie in panels of one register's lanes, the last one filled up; lanes run along the vectors:

    VECTORS   [panel][feature][lane]             WEIGHTS   [panel][r][lane]

Some rows go at a time through all panels of a class, so that a panel is read once for all of them; a row alone goes by several
panels, so that their latencies overlap. Dot products are sums of blocks of features. What a row's sums are does not depend on the
rows beside it.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Sequence

import numpy as np

from sardonyx.codegen.emit.builder import Variable
from sardonyx.codegen.emit.expr import ElementExpr
from sardonyx.codegen.emit.expr_llvm import write_expressions
from sardonyx.codegen.emit.folds import in_turns
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F32, F64, I64
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["FIRST_NUMBER", "MachineParams", "Outcome", "pack_panels", "panel_table", "scratch_elements", "write_machine"]

X, VECTORS, WEIGHTS, PANELS, RHO, SCRATCH, SCORES, LABELS, CHOSEN = range(9)
"""The buffers of the kernel; the last two only where labels are chosen."""

FIRST_NUMBER = 7
"""The first of three parameters, as `float_word`, that are the arguments 1 to 3 of `value`."""

FEATURE_BLOCK = 256
"""Features of one sum; those of several blocks are added."""

_TASK_PRODUCTS = 1 << 20
_PANELS_OF_A_ROW = 4


class Outcome(enum.Enum):
    """What is made of the sums."""

    SUM = "sum"
    """t + rho, of one class: float32 (N, 1)."""
    SIGN = "sign"
    """1 where that is positive, else -1."""
    DECISIONS = "decisions"
    """d of each pair, float32 (N, pairs), and the label of the class that wins most pairs, the first of several."""
    PAIR = "pair"
    """The same for two classes, with -d and d as scores: (N, 2)."""


def _rows(target: Target) -> int:
    """Return how many rows go at a time."""
    return 8 if target.registers >= 32 else 4


def scratch_elements(target: Target, classes: int) -> int:
    """Return how many float64 one task works in."""
    weights = max(classes - 1, 1)
    return _rows(target) * weights * (target.lanes(64) + classes) + classes


@dataclass(frozen=True, slots=True)
class MachineParams:
    """The integer parameters of the kernel, in their order; then the numbers of `value`."""

    rows: int
    features: int
    classes: int
    """How many classes; 1 for a regressor."""
    weights: int
    """How many weights a vector has: classes - 1, at least 1."""
    block: int
    """Rows of one task."""
    together: int
    """The most tasks that run at a time."""
    scratch: int
    """Elements of the scratch memory of one task."""

    @staticmethod
    def blocked(target: Target, rows: int, features: int, classes: int, vectors: int, together: int) -> MachineParams:
        """Return the parameters with tasks of about equal work."""
        step = _rows(target)
        fitting = _TASK_PRODUCTS // max(vectors * features, 1) // step * step
        block = max(step, min(fitting, 1 << 12))
        return MachineParams(rows, features, classes, max(classes - 1, 1), block, together, scratch_elements(target, classes))

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them."""
        return [getattr(self, name) for name in type(self).__dataclass_fields__]

    def tasks(self) -> int:
        """Return how many tasks it is."""
        return -(-self.rows // self.block)


def pack_panels(rows: Array, counts: Sequence[int], lanes: int) -> Array:
    """Return numbers of vectors (K, V), of classes with so many vectors each, as float32 [panel][K][lane]; zeros fill panels up."""
    panels = [-(-count // lanes) for count in counts]
    packed = np.zeros((sum(panels), len(rows), lanes), np.float32)
    begin = first = 0
    for count, size in zip(counts, panels, strict=True):
        part = np.zeros((len(rows), size * lanes), np.float32)
        part[:, :count] = rows[:, begin : begin + count]
        packed[first : first + size] = part.reshape(len(rows), size, lanes).transpose(1, 0, 2)
        begin, first = begin + count, first + size
    return packed


def panel_table(counts: Sequence[int], lanes: int) -> Array:
    """Return the first panel of each class and the number of panels, then how many vectors each class has."""
    panels = [-(-count // lanes) for count in counts]
    return np.array([0, *np.cumsum(panels), *counts], np.int64)


def write_machine(module: Module, symbol: str, *, is_distance: bool, value: ElementExpr, outcome: Outcome) -> None:
    """Write the kernel `symbol`.

    Args:
        module: where to write.
        symbol: the name of the kernel.
        is_distance: whether kernel values are made of the squared distance, or of the dot product.
        value: the kernel value, of argument 0, which is that, and of three numbers.
        outcome: what is made of the sums.
    """
    with module.kernel(symbol) as b:
        writer = _Writer(b, is_distance, value, outcome)
        count, block = b.param(0), b.param(4)
        step = _rows(b.target)
        with b.loop(b.begin, b.end) as task:
            writer.scratch = b.buffer(SCRATCH, F64).at(task % b.param(5) * b.param(6))
            first = task * block
            last = b.min(first + block, count)
            whole = first + ((last - first) & -step)
            with b.loop(first, whole, step) as row:
                writer.write_rows(row, step)
            with b.loop(whole, last) as row:
                writer.write_rows(row, 1)


class _Writer:
    """The parts of one kernel."""

    scratch: Pointer

    def __init__(self, b: Kernel, is_distance: bool, value: ElementExpr, outcome: Outcome) -> None:
        self._b, self._is_distance, self._value, self._outcome = b, is_distance, value, outcome
        self._features, self._classes, self._weights = (b.param(place) for place in (1, 2, 3))
        self._numbers = [b.param_float(FIRST_NUMBER + place) for place in range(3)]
        self._lanes, self._half = b.lanes(F32), b.lanes(F64)

    def write_rows(self, row: Register, rows: int) -> None:
        """Compute the results of some rows."""
        b, weights, half = self._b, self._weights, self._half
        totals = self.scratch.at(weights * (_rows(b.target) * half))
        table = b.buffer(PANELS, I64)
        with b.loop(0, self._classes) as c:
            begin, end, count = table.load(c), table.load(c + 1), table.load(self._classes + 1 + c)
            with b.loop(0, weights * rows) as place:
                self.scratch.store(b.const(F64.vector(half), 0), place * half, half)
            start = begin
            for width in (1,) if rows > 1 else (_PANELS_OF_A_ROW, 1):
                whole = start + ((end - start) & -width)
                with b.loop(start, whole, width) as panel:
                    left = [count - (panel + u - begin) * self._lanes for u in range(width)]
                    self._add_panels(row, rows, panel, left)
                start = whole
            with b.loop(0, weights) as r:
                for k in range(rows):
                    total = b.sum_lanes(self.scratch.load((weights * k + r) * half, half))
                    totals.store(total, (weights * k + r) * self._classes + c)
        for k in range(rows):
            self._finish(row + k, totals.at(weights * self._classes * k), totals.at(weights * self._classes * _rows(b.target)))

    def _add_panels(self, row: Register, rows: int, panel: Register, left: Sequence[Register]) -> None:
        """Add what some panels give to the sums of all weights; `left` is how many vectors the class has from each panel on."""
        b, lanes, half, weights = self._b, self._lanes, self._half, self._weights
        values = self._values(row, rows, panel, len(left))
        masks = [b.tail_mask(b.min(number, lanes), lanes) for number in left]
        halves = [
            [self._halves(b.select(mask, value, value.like(0))) for mask, value in zip(masks, of_row, strict=True)]
            for of_row in values
        ]
        table = b.buffer(WEIGHTS, F32)
        with b.loop(0, weights) as r:
            factors = [self._halves(table.load(((panel + u) * weights + r) * lanes, lanes)) for u in range(len(left))]
            for k, of_row in enumerate(halves):
                place = (weights * k + r) * half
                total = self.scratch.load(place, half)
                for parts, pair in zip(of_row, factors, strict=True):
                    for part, factor in zip(parts, pair, strict=True):
                        total = b.fma(part, factor, total)
                self.scratch.store(total, place, half)

    def _halves(self, vector: Register) -> list[Register]:
        """Return the lower and the upper lanes as float64."""
        return [vector.shuffle(range(start, start + self._half)).to(F64) for start in (0, self._half)]

    def _values(self, row: Register, rows: int, panel: Register, width: int) -> list[list[Register]]:
        """Return the kernel values of each row with the vectors of each of `width` panels."""
        b, lanes, features = self._b, self._lanes, self._features
        x, vectors = b.buffer(X, F32), b.buffer(VECTORS, F32)
        zero = b.const(F32.vector(lanes), 0)
        totals, sums = ([b.variable(zero) for _ in range(rows * width)] for _ in range(2))
        lines = [x.at((row + k) * features) for k in range(rows)]
        panels = [vectors.at((panel + u) * features * lanes) for u in range(width)]
        for total in totals:
            total.set(zero)
        with b.loop(0, features, FEATURE_BLOCK) as first:
            for part in sums:
                part.set(zero)
            with b.loop(first, b.min(first + FEATURE_BLOCK, features)) as f:
                elements = [line.load(f).splat(lanes) for line in lines]
                loaded = [pointer.load(f * lanes, lanes) for pointer in panels]
                for place, part in enumerate(sums):
                    part.set(self._term(elements[place // width], loaded[place % width], part.value))
            for total, part in zip(totals, sums, strict=True):
                total.add(part.value)
        made = in_turns(b, [functools.partial(self._value_of, total) for total in totals])
        return [made[k * width : (k + 1) * width] for k in range(rows)]

    def _value_of(self, total: Variable) -> Register:
        return write_expressions(self._b, [self._value], [total.value, *self._numbers])[0]

    def _term(self, element: Register, vector: Register, total: Register) -> Register:
        if not self._is_distance:
            return self._b.fma(element, vector, total)
        difference = element - vector
        return self._b.fma(difference, difference, total)

    def _finish(self, row: Register, totals: Pointer, words: Pointer) -> None:
        """Write the results of one row: `totals` are its t, `words` is memory for votes."""
        b, rho, scores = self._b, self._b.buffer(RHO, F32), self._b.buffer(SCORES, F32)
        if self._outcome in (Outcome.SUM, Outcome.SIGN):
            score = (totals.load() + rho.load().to(F64)).to(F32)
            signed = b.select(score > 0, score.like(1), score.like(-1))
            scores.store(signed if self._outcome is Outcome.SIGN else score, row)
            return
        classes, votes = self._classes, words.of(I64)
        pairs = classes * (classes - 1) // 2
        with b.loop(0, classes) as i:
            votes.store(b.const(I64, 0), i)
        pair = b.variable(b.const(I64, 0))
        pair.set(b.const(I64, 0))
        with b.loop(0, classes) as i, b.loop(i + 1, classes) as j:
            decision = totals.load((j - 1) * classes + i) + totals.load(i * classes + j) + rho.load(pair.value).to(F64)
            self._store_decision(scores, row, pairs, pair.value, decision.to(F32))
            votes.store(votes.load(i) + b.select(decision > 0, b.const(I64, 1), 0), i)
            votes.store(votes.load(j) + b.select(decision <= 0, b.const(I64, 1), 0), j)
            pair.add(1)
        b.buffer(CHOSEN, I64).store(b.buffer(LABELS, I64).load(self._winner(votes)), row)

    def _store_decision(self, scores: Pointer, row: Register, pairs: Register, pair: Register, decision: Register) -> None:
        if self._outcome is Outcome.PAIR:
            scores.store(-decision, row * 2)
            scores.store(decision, row * 2 + 1)
        else:
            scores.store(decision, row * pairs + pair)

    def _winner(self, votes: Pointer) -> Register:
        """Return the first of the greatest votes."""
        b = self._b
        best, most = b.variable(b.const(I64, 0)), b.variable(votes.load())
        best.set(b.const(I64, 0))
        most.set(votes.load())
        with b.loop(1, self._classes) as i:
            found = votes.load(i)
            more = found > most.value
            best.set(b.select(more, i, best.value))
            most.set(b.select(more, found, most.value))
        return best.value
