"""Plans of steps as data, so that a process which restored a program lowers nothing for sizes that are new to it.

    plan, some likely sizes  ─►  for each what the plan did with them: arithmetic, and conditions under which it does the same

A recipe is what was recorded for some sizes; it gives None where one of its conditions does not hold. A plan has a few; where none
of them holds, or it did what cannot be recorded, the plan itself is read.
"""

from __future__ import annotations

import marshal
import operator
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from sardonyx.errors import SardonyxError
from sardonyx.formats.plain_graph import Plain
from sardonyx.ir import Dim
from sardonyx.providers.cpu.recorded import FLOAT, Recorded, RecordedSizes, Recorder
from sardonyx.providers.cpu.sizes import Sizes

__all__ = ["Recipes", "likely_sizes", "write_recipes"]

_LIKELY = (1, 2, 7, 16, 45, 128, 512)
"""Batches, rows of tables and lengths of texts, below and above where plans decide otherwise."""
_MOST_SYMBOLS = 4
"""With more, no mixed sizes are tried."""
_UNFIT = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, struct.error, SardonyxError)
_SIGNS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "&": operator.and_,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "!=": operator.ne,
    "==": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_Words: TypeAlias = tuple[int, ...]


def likely_sizes(names: Sequence[str]) -> list[dict[str, int]]:
    """Return sizes for which recipes are worth having: all symbols alike, and where they are few, each of them 1 beside others."""
    alike = [dict.fromkeys(names, size) for size in _LIKELY]
    if not 1 < len(names) <= _MOST_SYMBOLS:
        return alike
    return [*alike, *({**dict.fromkeys(names, 128), name: 1} for name in names)]


def write_recipes(function: Callable[[Sizes], _Words], guesses: Sequence[Mapping[str, int]]) -> bytes:
    """Return the recipes of a function; b"" where it does what cannot be recorded.

    Args:
        function: gives words for sizes.
        guesses: sizes for which it is recorded.
    """
    found: list[Plain] = []
    for guess in guesses:
        if any(_words(recipe, [guess[name] for name in recipe[0]], _no_word) is not None for recipe in found):
            continue
        recipe = _recorded(function, guess)
        if recipe is not None:
            found.append(recipe)
    return marshal.dumps(tuple(found)) if found else b""


def _recorded(function: Callable[[Sizes], _Words], guess: Mapping[str, int]) -> Plain:
    """Return the symbols that a function asks for, what it does with them, and its words; None where that cannot be recorded."""
    recorder, names = Recorder(), tuple(guess)
    try:
        expected = tuple(map(int, function(Sizes(dict(guess)))))
        words = cast("Sequence[int | Recorded]", function(RecordedSizes(dict(guess), names, recorder)))
        values = tuple([word.value if isinstance(word, Recorded) else int(word) for word in words])
    except _UNFIT:
        return None
    if values != expected:
        return None
    plain = tuple([word.name if isinstance(word, Recorded) else int(word) for word in words])
    operations = tuple([(each.name, each.sign, each.left, each.right, each.holds) for each in recorder.operations])
    read = {item for item in plain if isinstance(item, str)}.union(*(each[2:4] for each in operations))
    symbols = [number for number in range(len(names)) if f"s{number}" in read]
    return tuple([names[number] for number in symbols]), tuple([f"s{number}" for number in symbols]), operations, plain


def _words(recipe: Plain, values: Sequence[int], float_word: Callable[[int], int]) -> _Words | None:
    """Return what a recipe gives for the values of its symbols; None where a condition does not hold."""
    _, arguments, operations, words = recipe
    known: dict[str, int] = dict(zip(arguments, values, strict=True))
    for name, sign, left, right, holds in operations:
        first = known[left] if type(left) is str else left
        if sign == FLOAT:
            known[name] = float_word(first)
            continue
        try:
            made = _SIGNS[sign](first, known[right] if type(right) is str else right)
        except ArithmeticError:
            return None
        if name:
            known[name] = made
        elif made is not holds:
            return None
    return tuple([known[word] if type(word) is str else word for word in words])


def _no_word(number: int) -> int:
    return 0


class Recipes:
    """The recipes of a function, read when one is asked for."""

    __slots__ = ("_content", "_recipes", "_symbol")

    def __init__(self, content: bytes, symbol: Callable[[str], Dim]) -> None:
        """Take what `write_recipes` returned, and what a symbol of the file is here."""
        self._content, self._symbol = content, symbol
        self._recipes: list[tuple[Plain, list[Dim]]] | None = None

    def words(self, sizes: Sizes) -> _Words | None:
        """Return what the function gives for sizes, which are asked as it would ask them; None where no recipe holds."""
        if self._recipes is None:
            plain = marshal.loads(self._content) if self._content else ()
            self._recipes = [(recipe, [self._symbol(name) for name in recipe[0]]) for recipe in plain]
        symbols = sizes.symbols
        for recipe, dims in self._recipes:
            values = [symbols.get(str(dim)) for dim in dims]
            if all(value is not None for value in values) and _words(recipe, cast("list[int]", values), _no_word) is not None:
                return _words(recipe, [sizes(dim) for dim in dims], sizes.float_word)
        return None
