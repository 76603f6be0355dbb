"""Write equations of tensor products in full: with a result, a letter for each dimension, and none twice in an operand.

    Einsum(a, b) {"ij,jk"}             ->      Einsum(a, b) {"ij,jk->ik"}
    Einsum(a, b) {"...i,...i->..."}    ->      Einsum(a, b) {"ABi,ABi->AB"}
    Einsum(a) {"bii->bi"}              ->      Einsum(GatherND(Transpose(a), (0, 0) … (n, n))) {"ib->bi"}

so that `expand_einsum` and `split_einsum` see what it is. Where dots stand for dimensions of 1 beside others, which broadcasts,
these are squeezed out.

Left alone:
    equations that are written so; such that do not fit their operands, and results with an index that no operand has
    a diagonal whose sizes are not known to be one
"""

from __future__ import annotations

import string
from collections import Counter

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.ir import Value
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import standard
from sardonyx.optimize.terms import Term

__all__ = ["SPELL_EINSUM"]

_DOTS = "..."
_AXES_ARE_INPUTS = 13
"""From this version of ai.onnx on Squeeze has its axes as an input."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Equation:
    """The indices of operands and result, a letter each."""

    operands: tuple[str, ...]
    result: str
    squeezed: tuple[tuple[int, ...], ...]
    """For each operand the dimensions of 1 that are squeezed out before; the letters of these are not in `operands`."""


def _pattern(op: PatternBuilder, a: Term) -> Term:
    return op.Einsum(a, op.rest("operands"))


def _operands(match: Match) -> list[Value]:
    return [match["a"], *(value for value in match.rest("operands") if value is not None)]


def _check(match: Match) -> str | _Equation:
    values, text = _operands(match), match.root.text("equation", "").replace(" ", "")
    given, arrow, result = text.partition("->")
    parts = given.split(",")
    if any(value.shape is None for value in values) or len(parts) != len(values):
        return f"{text} is about other operands, or such of unknown rank"
    if arrow and _DOTS not in text and all(len(set(part)) == len(part) for part in parts):
        return "it is written in full"
    hidden = [len(value.shape or ()) - len(part.replace(_DOTS, "")) for part, value in zip(parts, values, strict=True)]
    if any(count < 0 or (count and _DOTS not in part) for count, part in zip(hidden, parts, strict=True)):
        return f"{text} does not fit operands of these ranks"
    if len({count for count, part in zip(hidden, parts, strict=True) if _DOTS in part}) > 1:
        return f"what {text} leaves out has different ranks"
    free = [letter for letter in string.ascii_uppercase + string.ascii_lowercase if letter not in text]
    most = max(hidden, default=0)
    if most > len(free) or any(part.replace(_DOTS, "", 1).count(".") for part in (*parts, result)):
        return f"{text} has too many indices, or dots in other places"
    dots = "".join(free[:most])
    spelled = [part.replace(_DOTS, dots) for part in parts]
    if arrow:
        result = result.replace(_DOTS, dots)
    else:
        counts = Counter("".join(part.replace(_DOTS, "") for part in parts))
        result = dots + "".join(sorted(letter for letter, count in counts.items() if count == 1))
    if not set(result) <= set("".join(spelled)) or len(set(result)) != len(result):
        return f"{text} has a result of other indices than its operands"
    return _without_ones(spelled, values, result, dots)


def _without_ones(spelled: list[str], values: list[Value], result: str, dots: str) -> str | _Equation:
    """Return the equation without dimensions of 1 where others have more, or why there is none."""
    sizes: dict[str, set[object]] = {}
    for part, value in zip(spelled, values, strict=True):
        own: dict[str, object] = {}
        for letter, dim in zip(part, value.shape or (), strict=True):
            sizes.setdefault(letter, set()).add(dim)
            if own.setdefault(letter, dim) != dim:
                return f"a diagonal of {own[letter]} and {dim} elements"
    if any(
        len({dim for dim in dims if isinstance(dim, int)} - ({1} if letter in dots else set())) > 1
        for letter, dims in sizes.items()
    ):
        return "an index counts different sizes"
    kept, squeezed = [], []
    for part, value in zip(spelled, values, strict=True):
        ones = [
            place
            for place, (letter, dim) in enumerate(zip(part, value.shape or (), strict=True))
            if letter in dots and dim == 1 and sizes[letter] != {1}
        ]
        squeezed.append(tuple(ones))
        kept.append("".join(letter for place, letter in enumerate(part) if place not in ones))
    return _Equation(tuple(kept), result, tuple(squeezed))


def _replace(op: Builder, match: Match, equation: _Equation) -> Value:
    values, parts = [], []
    for value, part, ones in zip(_operands(match), equation.operands, equation.squeezed, strict=True):
        if ones:
            value = op.Squeeze(value, np.array(ones, np.int64), _version=max(op.version(), _AXES_ARE_INPUTS))
        for letter in dict.fromkeys(part):
            value, part = _diagonal(op, value, part, letter)
        values.append(value)
        parts.append(part)
    return op.Einsum(*values, equation=f"{','.join(parts)}->{equation.result}")


def _diagonal(op: Builder, value: Value, part: str, letter: str) -> tuple[Value, str]:
    """Return the elements whose indices of one letter are equal, with a single dimension for these, the first."""
    places = [place for place, other in enumerate(part) if other == letter]
    if len(places) == 1:
        return value, part
    rest = [place for place in range(len(part)) if place not in places]
    moved = op.Transpose(value, perm=[*places, *rest])
    size = op.Gather(op.Shape(value), np.array(places[0], np.int64))
    numbers = op.Unsqueeze(op.Range(np.array(0, np.int64), size, np.array(1, np.int64)), np.array([1], np.int64))
    indices = op.Concat(*[numbers] * len(places), axis=1)
    return op.GatherND(moved, indices), letter + "".join(part[place] for place in rest)


SPELL_EINSUM = Rule(
    "spell_einsum",
    _pattern,
    _replace,
    _check,
    takes_apart=standard("Einsum"),
    takes_legal_apart=True,
)
