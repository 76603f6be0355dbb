"""Recorded bindings as instructions that need no Python.

sizes of the inputs  ─►  conditions: the shapes are like the recorded ones, temporaries have enough space  ─►  words of the table
"""

from __future__ import annotations

from sardonyx.native_program import NativeGrowth
from sardonyx.providers.cpu.placed import ArenaPlaces
from sardonyx.providers.cpu.recorded import Recorded
from sardonyx.providers.cpu.recording import Recording

__all__ = ["growth_of"]

_AS_THEY_ARE = frozenset(("==", "!=", "<", "<="))
_SWAPPED = {">": "<", ">=": "<="}
_NEGATED = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def growth_of(recording: Recording, places: ArenaPlaces) -> NativeGrowth | None:
    """Return how a table with temporaries in `places` is written for other sizes; None where that needs Python."""
    if recording.asked or recording.dims is None:
        return None
    inputs, outputs = recording.dims
    found: dict[str, int] = {}
    for place, size in enumerate(inputs):
        if isinstance(size, Recorded) and size.is_symbol:
            found.setdefault(size.name, place)
    if len(found) < len(recording.names):
        return None
    code = _Code(len(inputs), found)
    for place, size in enumerate(inputs):
        if isinstance(size, int):
            code.add("==", place, code.register(size))
    for operation in recording.operations:
        code.do(operation.name, operation.sign, operation.left, operation.right, holds=operation.holds)
    for place, size in enumerate(inputs):
        if isinstance(size, Recorded) and found.get(size.name) != place:
            code.add("==", place, code.register(size.name))
    for have, number in zip(places.capacities, recording.blocks, strict=True):
        if number is not None:
            code.add("<=", code.register(recording.results[number].name), code.register(have))
    moves = _moves(recording, places)
    writes = []
    for number, word in zip(recording.words[1].tolist(), recording.words[0].tolist(), strict=True):
        register, move = code.register(recording.results[number].name), moves.get(word, 0)
        writes.append((code.add("+", register, code.register(move)) if move else register, word))
    dims = [[code.register(size.name if isinstance(size, Recorded) else size) for size in shape] for shape in outputs]
    return NativeGrowth(
        id(recording),
        places,
        list(code.constants),
        [(sign, code.place(left), code.place(right)) for sign, left, right in code.instructions],
        [(code.place(register), word) for register, word in writes],
        [[code.place(register) for register in shape] for shape in dims],
    )


def _moves(recording: Recording, places: ArenaPlaces) -> dict[int, int]:
    """Return by how many bytes the words that point into the arena differ from those that were recorded."""
    known = recording.base.places.offsets
    words = zip(recording.pointers[0].tolist(), recording.pointers[1].tolist(), strict=True)
    return {word: places.offsets[target] - known[target] for word, target in words}


class _Code:
    """Instructions as they are made.

    Until all are known, registers are numbered so: inputs 0, 1, …; constants -1, -2, …; results from the number of inputs on.
    """

    def __init__(self, inputs: int, symbols: dict[str, int]) -> None:
        self.instructions: list[tuple[str, int, int]] = []
        self.constants: dict[int, int] = {}
        self._inputs = inputs
        self._registers = dict(symbols)

    def register(self, number: str | int) -> int:
        """Return the register of a recorded number by its name, or of a constant."""
        if isinstance(number, str):
            return self._registers[number]
        return self.constants.setdefault(number, -1 - len(self.constants))

    def add(self, sign: str, left: int, right: int) -> int:
        """Add an instruction; returns the register of its result."""
        self.instructions.append((sign, left, right))
        return self._inputs + len(self.instructions) - 1

    def do(self, name: str, sign: str, left: str | int, right: str | int, *, holds: bool) -> None:
        """Add a recorded operation, whose result gets a name, or a condition, which has none."""
        first, second = self.register(left), self.register(right)
        if name:
            self._registers[name] = self.add(sign, first, second)
            return
        sign = sign if holds else _NEGATED[sign]
        if sign in _AS_THEY_ARE:
            self.add(sign, first, second)
        else:
            self.add(_SWAPPED[sign], second, first)

    def place(self, register: int) -> int:
        """Return the final number of a register."""
        if register < 0:
            return self._inputs - 1 - register
        return register if register < self._inputs else register + len(self.constants)
