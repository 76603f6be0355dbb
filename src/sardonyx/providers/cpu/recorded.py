"""Integers that record how they are computed, so that a plan made for one size can be computed for others without it.

    sizes(n)  ─►  Recorded 7  ─►  plan  ─►  words, some Recorded  ─►  function(n): the words for another n, or None

A plan is Python, and decides by comparisons. Each comparison of a recorded number is a condition of the function: where it would
turn out otherwise, the function gives None and the plan has to be asked. What cannot be recorded (a number that is used as an
index, as a key or as a float) raises TypeError.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, cast

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.float_words import float_word
from sardonyx.ir import Dim, Expr
from sardonyx.providers.cpu.sizes import Sizes

__all__ = ["FLOAT", "Operation", "Recorded", "RecordedSizes", "Recorder", "Replay"]

Replay: TypeAlias = Callable[..., "tuple[int, ...] | None"]
"""A function of the symbols' values, in their order; None where a comparison turns out otherwise than it did."""

FLOAT = "float"
"""The sign of what makes of a number the word of a float64, by its left operand alone."""
_SURE = 1 << 62
"""A bound that is compared with only to refuse what does not fit 64 bits, which is found out where the words are written."""


@dataclasses.dataclass(frozen=True, slots=True)
class Operation:
    """One thing that is done with recorded numbers: `name = left sign right`, or a condition."""

    name: str
    """What its result is called; "" for a condition."""
    sign: str
    """What is done, as Python writes it."""
    left: str | int
    """The name of a number, or a number."""
    right: str | int
    """The same."""
    holds: bool = True
    """Of a condition, whether it must hold rather than not."""

    @property
    def text(self) -> str:
        """Its right side as Python writes it."""
        if self.sign == FLOAT:
            return f"float_word({_written(self.left)})"
        return f"{_written(self.left)} {self.sign} {_written(self.right)}"


class Recorder:
    """The operations and comparisons on recorded numbers, in their order, each once."""

    def __init__(self) -> None:
        """Have recorded nothing yet."""
        self.operations: list[Operation] = []
        """What has been recorded, in order."""
        self._known: dict[tuple[str, str | int, str | int], str] = {}
        self._symbols: list[str] = []

    def symbol(self, value: int) -> Recorded:
        """Return the next argument of the function, whose value is now `value`."""
        self._symbols.append(f"s{len(self._symbols)}")
        return Recorded(self, self._symbols[-1], value)

    def operation(self, sign: str, left: str | int, right: str | int, value: int) -> Recorded:
        """Return the result of an operation on numbers or their names."""
        key = sign, left, right
        name = self._known.get(key)
        if name is None:
            name = self._known[key] = f"v{len(self._known)}"
            self.operations.append(Operation(name, *key))
        return Recorded(self, name, value)

    def comparison(self, sign: str, left: str | int, right: str | int, *, holds: bool) -> bool:
        """Record how a comparison turns out; returns it."""
        key = sign, left, right
        if key not in self._known:
            self._known[key] = ""
            self.operations.append(Operation("", *key, holds))
        return holds

    def function(self, results: Sequence[Recorded]) -> Replay:
        """Return the function of the symbols' values that gives the values of `results`."""
        lines = [*map(_line, self.operations), f"return ({''.join(f'{result.name}, ' for result in results)})"]
        source = f"def replay({', '.join(self._symbols)}):\n" + "".join(f"  {line}\n" for line in lines)
        made: dict[str, Replay] = {}
        exec(compile(source, "<recorded plan>", "exec"), {"float_word": float_word}, made)
        return made["replay"]


def _line(operation: Operation) -> str:
    if operation.name:
        return f"{operation.name} = {operation.text}"
    return f"if {f'not ({operation.text})' if operation.holds else operation.text}: return None"


def _written(number: str | int) -> str:
    return f"({number})" if isinstance(number, int) and number < 0 else str(number)


class Recorded:
    """A number with the name that the function has for it; arithmetic with it gives such numbers, a comparison a condition."""

    __slots__ = ("_recorder", "name", "value")
    __hash__ = None  # type: ignore[assignment]  # as a key it would be a number that nothing recorded

    def __init__(self, recorder: Recorder, name: str, value: int) -> None:
        """Make a number; see `Recorder`."""
        self._recorder, self.name, self.value = recorder, name, value

    @property
    def is_symbol(self) -> bool:
        """Whether it is an argument of the function."""
        return self.name.startswith("s")

    def _operation(self, sign: str, left: int | Recorded, right: int | Recorded, value: int) -> Recorded:
        return self._recorder.operation(sign, _name(left), _name(right), value)

    def __add__(self, other: int | Recorded) -> Recorded:
        return self if _is(other, 0) else self._operation("+", self, other, self.value + _value(other))

    __radd__ = __add__

    def __sub__(self, other: int | Recorded) -> Recorded:
        return self if _is(other, 0) else self._operation("-", self, other, self.value - _value(other))

    def __rsub__(self, other: int) -> Recorded:
        return self._operation("-", other, self, other - self.value)

    def __mul__(self, other: int | Recorded) -> Recorded:
        return self if _is(other, 1) else self._operation("*", self, other, self.value * _value(other))

    __rmul__ = __mul__

    def __floordiv__(self, other: int | Recorded) -> Recorded:
        return self if _is(other, 1) else self._operation("//", self, other, self.value // _value(other))

    def __rfloordiv__(self, other: int) -> Recorded:
        return self._operation("//", other, self, other // self.value)

    def __mod__(self, other: int | Recorded) -> Recorded:
        return self._operation("%", self, other, self.value % _value(other))

    def __rmod__(self, other: int) -> Recorded:
        return self._operation("%", other, self, other % self.value)

    def __and__(self, other: int | Recorded) -> Recorded:
        return self._operation("&", self, other, self.value & _value(other))

    __rand__ = __and__

    def __lshift__(self, other: int | Recorded) -> Recorded:
        return self._operation("<<", self, other, self.value << _value(other))

    def __rshift__(self, other: int | Recorded) -> Recorded:
        return self._operation(">>", self, other, self.value >> _value(other))

    def __neg__(self) -> Recorded:
        return self._operation("-", 0, self, -self.value)

    def __bool__(self) -> bool:
        return self._recorder.comparison("!=", self.name, 0, holds=self.value != 0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int | Recorded) and self._compare("==", other, self.value == _value(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: int | Recorded) -> bool:
        return self._compare("<", other, self.value < _value(other))

    def __le__(self, other: int | Recorded) -> bool:
        return self._compare("<=", other, self.value <= _value(other))

    def __gt__(self, other: int | Recorded) -> bool:
        return self._compare(">", other, self.value > _value(other))

    def __ge__(self, other: int | Recorded) -> bool:
        return self._compare(">=", other, self.value >= _value(other))

    def _compare(self, sign: str, other: int | Recorded, holds: bool) -> bool:
        is_sure = isinstance(other, int) and abs(other) >= _SURE
        return holds if is_sure else self._recorder.comparison(sign, self.name, _name(other), holds=holds)


def _is(number: int | Recorded, wanted: int) -> bool:
    return not isinstance(number, Recorded) and number == wanted


def _value(number: int | Recorded) -> int:
    return number.value if isinstance(number, Recorded) else number


def _name(number: int | Recorded) -> str | int:
    return number.name if isinstance(number, Recorded) else operator.index(number)


class RecordedSizes(Sizes):
    """Sizes of which some symbols are recorded."""

    __slots__ = ("_leaves", "_made", "_recorder")

    def __init__(self, symbols: dict[str, int], names: Sequence[str], recorder: Recorder) -> None:
        """Make sizes from the value of each symbol; those of `names` are the arguments of the function, in this order."""
        super().__init__(symbols)
        self._recorder = recorder
        self._leaves: Mapping[str, Recorded] = {name: recorder.symbol(symbols[name]) for name in names}
        self._made: dict[Dim, int | Recorded] = {}

    def __call__(self, dim: Dim) -> int:
        """Return the value of `dim`, which is no int but acts like one where a recorded symbol decides it."""
        return cast(int, self._number(dim))

    def float_word(self, dim: Dim) -> int:
        """Return the value of `dim` as a parameter that is a float64, recorded where the value is."""
        number = self._number(dim)
        if not isinstance(number, Recorded):
            return float_word(number)
        return cast(int, self._recorder.operation(FLOAT, number.name, 0, float_word(number.value)))

    def _number(self, dim: Dim) -> int | Recorded:
        if not isinstance(dim, Expr):
            return dim
        found = self._made.get(dim)
        if found is None:
            found = self._made[dim] = self._evaluate(dim)
        return found

    def _evaluate(self, dim: Expr) -> int | Recorded:
        total: int | Recorded = 0
        for monomial, factor in dim.terms:
            term: int | Recorded = factor
            for atom, power in monomial:
                for _ in range(power):
                    term = term * self._atom(atom.kind, atom.name, atom.left, atom.right)
            total = total + term
        return total

    def _atom(self, kind: str, name: str, left: Dim, right: Dim) -> int | Recorded:
        if kind == "symbol":
            return self._leaves[name] if name in self._leaves else self.symbols[name]
        first, second = self._number(left), self._number(right)
        if kind in ("max", "min"):
            return max(first, second) if kind == "max" else min(first, second)
        if kind == "mul":
            return first * second
        if second == 0:
            return 0
        return first // second if kind == "floordiv" else first % second
