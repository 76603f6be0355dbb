"""Regular expressions as automata: whether a text matches, and where, in time linear in its length whatever the pattern.

A pattern is made of pieces. They are compiled to instructions (Thompson's construction); all that may hold at a place of the text
are followed at once. Sets of instructions are states, and what a character makes of a state is kept, so that most characters cost
one look-up. Sources: K. Thompson, CACM 11(6), 1968; R. Cox, "Regular Expression Matching in the Wild", 2010.
"""

from __future__ import annotations

import dataclasses
import enum
import re

from sardonyx.cancellation import check_cancelled, checked
from sardonyx.errors import InvalidArgument

__all__ = ["Automaton", "Chain", "Choice", "Edge", "EdgeKind", "One", "Piece", "Repeat"]

_MOST_INSTRUCTIONS = 200_000
"""Counted repeats multiply a pattern; larger ones are refused."""
_CHECKED_CHARACTERS = 1 << 14
"""How many characters are read between two checks of whether the run is to end."""
_STEPS_PER_CHARACTER = 8
"""How many characters a search may read for each one of the text before it follows all beginnings together."""
_MOST_KEPT = 1_000_000
"""Beyond this states are forgotten and found anew."""


class EdgeKind(enum.Enum):
    """Where between two characters a pattern may ask to be."""

    BEGIN = 0
    END = 1
    LINE_BEGIN = 2
    LINE_END = 3
    WORD = 4
    NOT_WORD = 5


@dataclasses.dataclass(frozen=True, slots=True)
class One:
    """One character of a class."""

    matcher: re.Pattern[str]
    """What matches the character; it is asked once for each character of a state."""


@dataclasses.dataclass(frozen=True, slots=True)
class Edge:
    """A place between characters."""

    kind: EdgeKind
    """Which."""


@dataclasses.dataclass(frozen=True, slots=True)
class Chain:
    """One piece behind the other."""

    pieces: tuple[Piece, ...]
    """The pieces, in order."""


@dataclasses.dataclass(frozen=True, slots=True)
class Choice:
    """One of several pieces."""

    pieces: tuple[Piece, ...]
    """The pieces."""


@dataclasses.dataclass(frozen=True, slots=True)
class Repeat:
    """A piece several times."""

    piece: Piece
    """The piece."""
    low: int
    """How often at least."""
    high: int | None
    """How often at most; None for no limit."""


Piece = One | Edge | Chain | Choice | Repeat

_Instruction = re.Pattern[str] | EdgeKind | None
"""What must match before the next places; None for nothing."""


@dataclasses.dataclass(slots=True)
class _State:
    """A set of instructions that wait for the next character, and what is before them."""

    waiting: tuple[int, ...]
    before: str
    after: dict[str, _State]
    is_match: bool | None


class Automaton:
    """A compiled pattern; any number of threads may match with it."""

    def __init__(self, piece: Piece, most_kept: int = _MOST_KEPT) -> None:
        """Compile; raises InvalidArgument for a pattern that repeats itself to too great a length.

        `most_kept` bounds the instructions and ways in the states that are kept.
        """
        self._most_kept = most_kept
        self._instructions: list[_Instruction] = []
        self._next: list[tuple[int, ...]] = []
        self._accept = self._add(None, ())
        self._start = self._compile(piece, self._accept)
        self._looks_around = any(isinstance(item, EdgeKind) for item in self._instructions)
        self._states: dict[tuple[tuple[int, ...], str], _State] = {}
        self._kept = 0
        self._first = self._state((self._start,), "")

    def fullmatch(self, text: str) -> bool:
        """Return whether the whole of `text` matches."""
        state = self._first
        for start in range(0, len(text), _CHECKED_CHARACTERS):
            check_cancelled()
            for character in text[start : start + _CHECKED_CHARACTERS]:
                found = state.after.get(character)
                if found is None:
                    found = self._advance(state, character)
                if not found.waiting:
                    return False
                state = found
        return self._is_match(state, "")

    def search(self, text: str, start: int = 0) -> tuple[int, int] | None:
        """Return the first match at or behind `start`, the longest of those that begin where it does, as its ends.

        From each place a match is tried, which is over at once where none begins; where many begin in vain, all are followed
        together instead, so that the time stays linear in the length of the text.
        """
        steps, most = 0, _STEPS_PER_CHARACTER * (len(text) - start + 1)
        begins_at_once = not self._looks_around and not self._is_match(self._first, "")
        for first in range(start, len(text) + 1):
            if not first % _CHECKED_CHARACTERS:
                check_cancelled()
            if begins_at_once and not self._may_begin(text[first : first + 1]):
                continue
            end, taken = self._longest(text, first)
            if end is not None:
                return first, end
            steps += taken
            if steps > most:
                return self._search_together(text, first + 1)
        return None

    def _may_begin(self, character: str) -> bool:
        """Return whether a match may begin with `character`, of a pattern that matches no empty text and does not look around."""
        state = self._first.after.get(character) or self._advance(self._first, character)
        return bool(state.waiting)

    def _longest(self, text: str, first: int) -> tuple[int | None, int]:
        """Return the end of the longest match that begins at `first`, and how many characters were read."""
        state = self._state((self._start,), text[first - 1 : first]) if self._looks_around else self._first
        end = None
        for place in range(first, len(text)):
            if not place % _CHECKED_CHARACTERS:
                check_cancelled()
            if self._is_match(state, text[place]):
                end = place
            state = state.after.get(text[place]) or self._advance(state, text[place])
            if not state.waiting:
                return end, place - first + 1
        return (len(text) if self._is_match(state, "") else end), len(text) - first

    def _is_match(self, state: _State, following: str) -> bool:
        """Return whether the text before `following` may end here; only a pattern that looks around asks what follows."""
        if following and self._looks_around:
            return self._accept in self._closure(state.waiting, state.before, following)
        if state.is_match is None:
            state.is_match = self._accept in self._closure(state.waiting, state.before, "")
        return state.is_match

    def _search_together(self, text: str, start: int) -> tuple[int, int] | None:
        """Return the same as `search`, with all beginnings followed at once.

        Each instruction knows the earliest that leads to it.
        """
        waiting: dict[int, int] = {}
        best: tuple[int, int] | None = None
        for place in checked(range(start, len(text) + 1)):
            if best is None:
                waiting.setdefault(self._start, place)
            before, after = text[place - 1 : place], text[place : place + 1]
            here = self._earliest(waiting, before, after)
            if self._accept in here and (best is None or here[self._accept] <= best[0]):
                best = here[self._accept], place
            waiting = {}
            for index, begun in here.items():
                matcher = self._instructions[index]
                if (best is None or begun <= best[0]) and isinstance(matcher, re.Pattern) and after and matcher.fullmatch(after):
                    for target in self._next[index]:
                        waiting[target] = min(begun, waiting.get(target, begun))
            if not waiting and best is not None:
                break
        return best

    def _earliest(self, waiting: dict[int, int], before: str, after: str) -> dict[int, int]:
        """Return the instructions that are reached without a character, each with the earliest beginning that leads there."""
        reached: dict[int, int] = {}
        for index, begun in sorted(waiting.items(), key=lambda item: item[1]):
            for place in self._closure((index,), before, after) - reached.keys() if index not in reached else ():
                reached[place] = begun
        return reached

    def _advance(self, state: _State, character: str) -> _State:
        """Return the state behind `character`, kept for the next time."""
        here = self._closure(state.waiting, state.before, character)
        places = {
            place
            for index in here
            if isinstance(matcher := self._instructions[index], re.Pattern) and matcher.fullmatch(character)
            for place in self._next[index]
        }
        found = self._state(tuple(sorted(places)), character if self._looks_around else "")
        state.after[character] = found
        self._note(1)
        return found

    def _state(self, waiting: tuple[int, ...], before: str) -> _State:
        key = (waiting, _kind(before))
        found = self._states.get(key)
        if found is None:
            self._note(len(waiting) + 1)
            found = self._states[key] = _State(waiting, before, {}, None)
        return found

    def _note(self, size: int) -> None:
        """Count what is kept; when it is too much forget all states. Those that a thread stands on stay valid for it."""
        self._kept += size
        if self._kept > self._most_kept:
            self._states, self._kept = {}, 0
            self._first = _State((self._start,), "", {}, None)

    def _closure(self, places: tuple[int, ...], before: str, after: str) -> set[int]:
        """Return the instructions that are reached without a character, between these two characters."""
        reached = set(places)
        stack = list(places)
        while stack:
            index = stack.pop()
            instruction = self._instructions[index]
            if isinstance(instruction, re.Pattern) or (instruction is not None and not _holds(instruction, before, after)):
                continue
            for place in self._next[index]:
                if place not in reached:
                    reached.add(place)
                    stack.append(place)
        return reached

    def _add(self, instruction: _Instruction, places: tuple[int, ...]) -> int:
        if len(self._instructions) >= _MOST_INSTRUCTIONS:
            raise InvalidArgument(
                f"the pattern is too large: with its repeats written out it has more than {_MOST_INSTRUCTIONS} steps"
            )
        self._instructions.append(instruction)
        self._next.append(places)
        return len(self._instructions) - 1

    def _compile(self, piece: Piece, target: int) -> int:
        """Compile instructions for `piece` that end at `target`; returns where they begin."""
        match piece:
            case One(matcher):
                return self._add(matcher, (target,))
            case Edge(kind):
                return self._add(kind, (target,))
            case Choice(pieces):
                return self._add(None, tuple([self._compile(item, target) for item in pieces]))
            case Chain(pieces):
                for item in reversed(pieces):
                    target = self._compile(item, target)
                return target
            case Repeat(inner, low, high):
                return self._compile_repeat(inner, low, high, target)

    def _compile_repeat(self, inner: Piece, low: int, high: int | None, target: int) -> int:
        if high is None:
            loop = self._add(None, ())
            self._next[loop] = (self._compile(inner, loop), target)
            target = loop
        else:
            end = target
            for _ in range(high - low):
                target = self._add(None, (self._compile(inner, target), end))
        for _ in range(low):
            target = self._compile(inner, target)
        return target


def _kind(before: str) -> str:
    """Return what a pattern can know of the character before: nothing there, a new line, part of a word, or any other."""
    return before if before in ("", "\n") else "w" if _is_word(before) else "-"


def _is_word(character: str) -> bool:
    return character == "_" or (character.isascii() and character.isalnum())


def _holds(kind: EdgeKind, before: str, after: str) -> bool:
    """Return whether a place between two characters, "" where the text ends, is of a kind."""
    match kind:
        case EdgeKind.BEGIN:
            return before == ""
        case EdgeKind.END:
            return after == ""
        case EdgeKind.LINE_BEGIN:
            return before in ("", "\n")
        case EdgeKind.LINE_END:
            return after in ("", "\n")
        case EdgeKind.WORD:
            return _is_word(before) != _is_word(after)
        case EdgeKind.NOT_WORD:
            return _is_word(before) == _is_word(after)
