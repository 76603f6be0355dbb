"""From the totals of a forest's votes to scores and labels, a vector of rows at a time.

    total = 0 without a vote           / trees for an average           + base value
    label = that of the greatest total with a vote       scores = post transform of the totals of a row

The rules for one or two classes are those of TreeEnsembleClassifier as ONNX Runtime applies them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from sardonyx.codegen.emit import mathlib
from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import BOOL, F32, I32, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["ScoresCode", "ScoresParams", "write_scores"]

TOTALS, VOTED, BASE, SCORES, LABELS, CHOICE = range(6)
"""The buffers: TOTALS (rows, targets), which are overwritten; VOTED, int32, per row or once for all; BASE values per target, -0
where there is none; SCORES (rows, targets); and for classes LABELS (int64) of each, CHOICE (rows,) of them."""

_SOME = 1e-7
"""SOFTMAX_ZERO leaves scores alone that are no further from 0."""


@dataclass(frozen=True, slots=True)
class ScoresCode:
    """What the code of the kernel depends on."""

    total: Type
    """The type of the totals, in which is computed."""
    score: Type
    """The type of the scores."""
    rule: str
    """"targets" of a regression, "classes", "one" class, or "binary": two classes, votes for one of them only."""
    transform: str
    """The post transform."""
    voted: str
    """Which totals have a vote: "all", those that VOTED says for all rows ("fixed"), or for each row ("rows")."""
    average: bool
    """Whether totals are divided by the number of trees."""
    bases: int
    """How many base values there are: for more than 2 what matters is that there are some."""
    is_probability: bool
    """For "binary": whether no weight is negative."""

    @property
    def name(self) -> str:
        """All of it, for a symbol."""
        flags = f"{'_average' if self.average else ''}{'_probability' if self.is_probability else ''}"
        kinds = f"f{self.total.bits}_f{self.score.bits}"
        return f"{kinds}_{self.rule}_{self.transform.lower()}_{self.voted}_{self.bases}{flags}"


@dataclass(frozen=True, slots=True)
class ScoresParams:
    """The integer parameters, in their order."""

    rows: int
    """How many rows there are."""
    targets: int
    """How many totals and scores each has."""
    bases: int
    """How many base values there are."""
    trees: int
    """How many trees there are."""
    block: int
    """Rows of one task."""

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them."""
        return [self.rows, self.targets, self.bases, self.trees, self.block]

    def tasks(self) -> int:
        """Return how many tasks it is."""
        return -(-self.rows // self.block)


def write_scores(module: Module, symbol: str, code: ScoresCode) -> None:
    """Write the kernel `symbol`."""
    with module.kernel(symbol) as b:
        rows, block = b.param(0), b.param(4)
        for row, span in b.vectors(b.begin * block, b.min(b.end * block, rows), code.total):
            scores = _Scores(b, code, row, span)
            scores.choose_of_two() if code.rule == "binary" else scores.choose()


class _Table:
    """Numbers of some rows: those of column t, one in each lane."""

    def __init__(self, b: Function, pointer: Pointer, stride: Register, span: Span) -> None:
        self._pointer, self._span = pointer, span
        self._places = b.iota(I32, span.lanes) * stride.to(I32)

    def load(self, column: Register) -> Register:
        """Return a column."""
        if self._span.lanes == 1:
            return self._pointer.load(column)
        return self._pointer.at(column).gather(self._places, self._span.mask)

    def store(self, value: Register, column: Register) -> None:
        """Write a column."""
        if self._span.lanes == 1:
            self._pointer.store(value, column)
        else:
            self._pointer.at(column).scatter(value, self._places, self._span.mask)


class _Scores:
    """The scores of some rows, one in each lane."""

    def __init__(self, b: Kernel, code: ScoresCode, row: Register, span: Span) -> None:
        self.b, self.code, self.row, self.span = b, code, row, span
        self.kind = code.total.vector(span.lanes)
        self.targets = b.param(1)
        self.totals = _Table(b, b.buffer(TOTALS, code.total).at(row * self.targets), self.targets, span)
        self.scores = _Table(b, b.buffer(SCORES, code.score).at(row * self.targets), self.targets, span)
        self.voted = b.buffer(VOTED, I32)
        self.voted_of_rows = _Table(b, self.voted.at(row * self.targets), self.targets, span)
        self.base = b.buffer(BASE, code.total)

    def choose(self) -> None:
        """Store label and scores: the greatest total of a class with a vote or a base value wins, NaN over all numbers."""
        b, code = self.b, self.code
        best, label = b.variable(b.const(self.kind, -math.inf)), b.variable(b.const(I64.vector(self.span.lanes), 0))
        top = b.variable(b.const(self.kind, -math.inf))
        with b.loop(0, self.targets) as target:
            total, voted = self._total(target)
            if code.rule == "classes":
                rated = b.select(voted | (target < b.param(2)), total, -math.inf)
                wins = (rated > best.value) | (b.is_nan(rated) & ~b.is_nan(best.value))
                best.set(b.select(wins, rated, best.value))
                label.set(b.select(wins, target.splat(self.span.lanes), label.value))
            if code.rule == "one":
                label.set(b.select(total > 0, label.value.like(1), label.value.like(0)))
            if code.transform in _ALONE:
                self._store(_ALONE[code.transform](b, total), target)
            else:
                self.totals.store(total, target)
                top.set(b.select(b.is_nan(top.value) | (top.value > total), top.value, total))
        if code.transform not in _ALONE:
            self._normalize(top.value)
        if code.rule != "targets":
            self._label(label.value)

    def choose_of_two(self) -> None:
        """Store label and scores of two classes, votes for one of them only; `tree_classes` of the reference provider says how."""
        b, code = self.b, self.code
        zero, one = b.const(I64, 0), b.const(I64, 1)
        (first, has_first), (second, has_second) = (self._voted_total(column) for column in (zero, one))
        none = b.const(self.kind, 0.0)
        if code.bases == 2:
            sum_of_second = b.select(has_second, first + self.base.load(1), none)
            first = b.select(has_first, b.select(has_second, -sum_of_second, first + self.base.load(0)), none)
            second = sum_of_second
        elif code.bases == 1:
            first = first + self.base.load(0)
        deciding = b.select(has_second, second, b.select(has_first, first, none))
        chosen = deciding > (0.5 if code.is_probability else 0.0)
        both = self._transformed_pair(b.select(has_first, first, none), second)
        if code.bases != 2:
            spread = self._spread(first)
            both = (b.select(has_second, both[0], spread[0]), b.select(has_second, both[1], spread[1]))
        for column, score in zip((zero, one), both, strict=True):
            self._store(score, column)
        self._label(b.select(chosen, b.const(I64.vector(self.span.lanes), 1), b.const(I64.vector(self.span.lanes), 0)))

    def _voted_total(self, target: Register) -> tuple[Register, Register]:
        total = self.totals.load(target)
        if self.code.voted == "all":
            return total, self.b.const(BOOL.vector(self.span.lanes), True)
        found = self.voted_of_rows.load(target) if self.code.voted == "rows" else self.voted.load(target).splat(self.span.lanes)
        return self.b.select(found.ne(0), total, 0.0), found.ne(0)

    def _total(self, target: Register) -> tuple[Register, Register]:
        """Return a total as the post transform takes it, and whether there is a vote."""
        total, voted = self._voted_total(target)
        if self.code.average:
            total = total / self.b.param(3).to(self.code.total)
        return total + self.base.load(target) if self.code.bases else total, voted

    def _transformed_pair(self, first: Register, second: Register) -> tuple[Register, Register]:
        b, transform = self.b, self.code.transform
        if transform in _ALONE:
            return _ALONE[transform](b, first), _ALONE[transform](b, second)
        top = b.select(b.is_nan(first) | (first > second), first, second)
        powers, counts = zip(*(self._power(total, top) for total in (first, second)), strict=True)
        sum_of_both = counts[0] + counts[1]
        return powers[0] / sum_of_both, powers[1] / sum_of_both

    def _spread(self, score: Register) -> tuple[Register, Register]:
        """Return the one score of a binary classifier as one for each class."""
        b = self.b
        if self.code.transform == "LOGISTIC":
            return _logistic(b, -score), _logistic(b, score)
        pair = (score.like(1) - score if self.code.is_probability else -score, score)
        return (_probit(b, pair[0]), _probit(b, pair[1])) if self.code.transform == "PROBIT" else pair

    def _normalize(self, top: Register) -> None:
        """Make a softmax of the totals."""
        b = self.b
        total = b.variable(b.const(self.kind, 0.0))
        with b.loop(0, self.targets) as target:
            power, counted = self._power(self.totals.load(target), top)
            total.add(counted)
            self.totals.store(power, target)
        with b.loop(0, self.targets) as target:
            self._store(self.totals.load(target) / total.value, target)

    def _power(self, total: Register, top: Register) -> tuple[Register, Register]:
        """Return the numerator of a softmax, and what it adds to the denominator."""
        b = self.b
        power = mathlib.exp(b, total - top)
        if self.code.transform == "SOFTMAX":
            return power, power
        some = b.abs(total) > _SOME
        return b.select(some, power, total * mathlib.exp(b, -top)), b.select(some, power, 0.0)

    def _store(self, score: Register, target: Register) -> None:
        self.scores.store(score.to(self.code.score), target)

    def _label(self, choice: Register) -> None:
        labels = self.b.buffer(LABELS, I64)
        found = labels.load(choice) if self.span.lanes == 1 else labels.gather(choice, self.span.mask)
        self.b.buffer(CHOICE, I64).store(found, self.row, self.span)


def _logistic(b: Function, x: Register) -> Register:
    """Return 1 / (1 + exp(-x)), of a negative x as 1 less that of -x, as ONNX Runtime does."""
    positive = x.like(1) / (mathlib.exp(b, -b.abs(x)) + 1)
    return b.select(x < 0, x.like(1) - positive, positive)


def _probit(b: Function, x: Register) -> Register:
    """Return the quantile of the normal distribution by Winitzki's formula with a = 0.147, in float32.

    The constants are those of ONNX Runtime. Relative error up to 2e-3. 0 gives -inf, 1 gives inf, outside [0, 1] NaN.
    """
    y = (x * 2 - 1).to(F32)
    log = mathlib.log(b, (y.like(1) - y) * (y + 1))
    half = log * 0.5 + 2 / (3.14159 * 0.147)
    size = b.sqrt(-half + b.sqrt(half * half - log * (1 / 0.147)))
    return (b.select(y < 0, -size, size) * 1.41421356).to(x.type)


_ALONE: Mapping[str, Callable[[Function, Register], Register]] = {
    "NONE": lambda b, total: total,
    "LOGISTIC": _logistic,
    "PROBIT": _probit,
}
"""The post transforms of one score by itself."""
