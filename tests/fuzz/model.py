"""A model in the making, with what is fed to it: sizes that are declared in any way, and integers that no file should have."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from fuzz.draw import Draw
from support.models import model

from sardonyx.dtypes import Array
from sardonyx.formats.onnx import to_bytes

__all__ = ["HOSTILE", "BodyText", "Case", "Making"]

HOSTILE = (7, 33, -9, 1000, 1 << 20, -(1 << 20), (1 << 31) - 1, 1 << 31, -(1 << 31), 1 << 40, 1 << 62, (1 << 63) - 1, -(1 << 63))
_SIZES = (3, 2, 1, 4, 0, 5, 6, 8, 9, 16, 17, 33)
_TYPES: dict[str, Any] = {
    "float": np.float32,
    "double": np.float64,
    "float16": np.float16,
    "int64": np.int64,
    "int32": np.int32,
    "uint8": np.uint8,
    "int8": np.int8,
    "bool": np.bool_,
}


class BodyText(str):
    """A graph in the text form, as an attribute."""

    __slots__ = ()


@dataclasses.dataclass(frozen=True)
class Case:
    """A model and its feeds."""

    text: str
    """The graph in the text form."""
    opset: int
    feeds: dict[str, Array]

    def content(self) -> bytes:
        """The bytes of the model."""
        return to_bytes(model(self.text, opset=self.opset))

    def __str__(self) -> str:
        feeds = {name: f"{array.dtype}{list(array.shape)}" for name, array in self.feeds.items()}
        integers = {name: array.tolist() for name, array in self.feeds.items() if array.dtype.kind == "i" and array.size <= 16}
        return f"opset {self.opset}\n{self.text}\nfeeds {feeds}\nof which {integers}"


class Making:
    """Inputs, constants and nodes, as they are drawn."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.opset = draw.pick((21, 23, 24, 18, 17, 13, 11))
        self._inputs: list[str] = []
        self._lines: list[str] = []
        self._feeds: dict[str, Array] = {}
        self._count = 0
        self.is_float = True
        """Whether all that is fed is float, apart from indices and conditions."""

    def case(self, outputs: Sequence[str]) -> Case:
        """What was made."""
        declared = [self._declared(name) for name in outputs]
        return Case(
            f"graph({', '.join(self._inputs)}) -> ({', '.join(declared)}) {{\n    " + "\n    ".join(self._lines) + "\n}",
            self.opset,
            self._feeds,
        )

    def _declared(self, name: str) -> str:
        """An output, of which the file may say what is not so."""
        if not self.draw.chance(6):
            return name
        return f"{name}: float[{', '.join(str(self.draw.pick((2, 1, 4, 1000, 'q'))) for _ in range(self.draw.below(4)))}]"

    # Numbers.

    def size(self) -> int:
        """How long an axis is."""
        return self.draw.pick(_SIZES)

    def small(self, least: int = 0, most: int = 4) -> int:
        """A plausible number."""
        return least + self.draw.below(most - least + 1)

    def number(self, least: int = 0, most: int = 4) -> int:
        """A plausible number, mostly."""
        return self.draw.pick(HOSTILE) if self.draw.chance(12) else self.small(least, most)

    def numbers(self, count: int, least: int = 0, most: int = 4) -> list[int]:
        """Plausible numbers, mostly so many of them."""
        count += self.draw.chance(40)
        return [self.number(least, most) for _ in range(count)]

    def shape(self, rank: int) -> list[int]:
        """The sizes of a tensor."""
        return [self.size() for _ in range(rank)]

    def near(self, shape: Sequence[int]) -> list[int]:
        """The shape, or one that differs here and there."""
        found = [self.draw.pick((1, self.size())) if self.draw.chance(10) else size for size in shape]
        return found[1:] if self.draw.chance(20) else found

    def axis(self, rank: int) -> int:
        """An axis, counted from either end."""
        axis = self.draw.below(max(rank, 1))
        return self.number(-rank, rank) if self.draw.chance(12) else axis - rank if self.draw.chance(3) else axis

    # Values.

    def feed(self, shape: Sequence[int], kind: str = "float", *, most: int | None = None) -> str:
        """An input of the graph, declared with its sizes, with symbols, or with symbols that other inputs have too."""
        array = self._filled(shape, kind, most)
        name = self.name("x")
        is_fixed = not self.draw.chance(2)
        dims = [str(size) if is_fixed else self._dim(size, f"{name}_{axis}") for axis, size in enumerate(shape)]
        self.is_float = self.is_float and kind in ("float", "int64", "bool")
        self._inputs.append(f"{name}: {kind}[{', '.join(dims)}]")
        self._feeds[name] = array
        return name

    def _dim(self, size: int, own: str) -> str:
        return self.draw.pick((str(size), own, f"s{size}" if not self.draw.chance(20) else "s"))

    def weight(self, shape: Sequence[int], kind: str = "float", *, most: int | None = None) -> str:
        """A constant, or an input."""
        if self.draw.chance(4) or np.prod(shape, dtype=float) > 5000:
            return self.feed(shape, kind, most=most)
        array = self._filled(shape, kind, most)
        name = self.name("c")
        self._lines.append(f"{name}: {kind}[{', '.join(map(str, array.shape))}] = {_text(array)}")
        return name

    def ints(self, values: Sequence[int], *, scalar: bool = False, kind: str = "int64") -> str:
        """Integers as a constant, as an input, or computed from a shape."""
        limited = [min(max(value, -(1 << 63)), (1 << 63) - 1) for value in values]
        array = np.array(limited[0] if scalar else limited, np.int64)
        if kind == "int32":
            array = np.clip(array, -(1 << 31), (1 << 31) - 1).astype(np.int32)
        if self.draw.chance(6):
            name = self.name("i")
            self._inputs.append(f"{name}: {kind}[{', '.join(map(str, array.shape))}]")
            self._feeds[name] = array
            return name
        name = self.name("k")
        self._lines.append(f"{name}: {kind}[{', '.join(map(str, array.shape))}] = {_text(array)}")
        if array.shape == (1,) and kind == "int64" and self.draw.chance(5):
            return self._from_shape(name, int(array[0]))
        return name

    def _from_shape(self, name: str, value: int) -> str:
        """The same number as a size of an input plus something."""
        size = self.size()
        source = self.feed([size])
        if not -(1 << 62) < value < 1 << 62:
            return name
        shape = self.call("Shape", [source])
        return self.call("Add", [shape, self._constant([value - size])])

    def flag(self, holds: bool) -> str:
        """A condition that is constant."""
        name = self.name("k")
        self._lines.append(f"{name}: bool[] = {int(holds)}")
        return name

    def floats(self, values: Sequence[float]) -> str:
        """Floats as a constant, as an input, or as quotients, which may be of 0."""
        way = self.draw.below(6)
        name = self.name("f")
        if way == 5:
            self._inputs.append(f"{name}: float[{len(values)}]")
            self._feeds[name] = np.array(values, np.float32)
            return name
        self._lines.append(f"{name}: float[{len(values)}] = {_text(list(values))}")
        if way < 4:
            return name
        zero = self.name("f")
        self._lines.append(f"{zero}: float[{len(values)}] = {_text([float(self.draw.below(2)) for _ in values])}")
        return self.call("Div", [name, zero])

    def _constant(self, values: Sequence[int]) -> str:
        name = self.name("k")
        self._lines.append(f"{name}: int64[{len(values)}] = [{', '.join(map(str, values))}]")
        return name

    def call(self, op: str, inputs: Sequence[str | None], outputs: int = 1, **attributes: Any) -> str:
        """A node; the name of its first output, the others follow by a comma."""
        names = [self.name("v") for _ in range(outputs)]
        told = ", ".join(f"{name} = {_text(value)}" for name, value in attributes.items() if value is not None)
        given = ", ".join("_" if name is None else name for name in inputs)
        self._lines.append(f"{', '.join(names)} = {op}({given})" + (f" {{{told}}}" if told else ""))
        return ", ".join(names)

    def name(self, prefix: str) -> str:
        """A name that nothing else has."""
        self._count += 1
        return f"{prefix}{self._count}"

    def _filled(self, shape: Sequence[int], kind: str, most: int | None) -> Array:
        generator = np.random.default_rng(self._count)
        if kind == "int8":
            return generator.integers(-128, 128, shape).astype(np.int8)
        if kind in ("int64", "int32", "uint8"):
            low = 0 if kind == "uint8" else -1 if most is None else -most
            array = generator.integers(low, 3 if most is None else max(most, 1), shape)
            if array.size and self.draw.chance(12):
                array.reshape(-1)[self.draw.below(array.size)] = min(self.number(), 255) if kind == "uint8" else self.number()
            limits = np.iinfo(_TYPES[kind])
            return np.clip(array, limits.min, limits.max).astype(_TYPES[kind])
        if kind == "bool":
            return generator.integers(0, 2, shape).astype(np.bool_)
        return generator.standard_normal(shape).astype(_TYPES[kind])


def _text(value: Any) -> str:
    if isinstance(value, np.generic):
        return _text(value.item())
    if isinstance(value, np.ndarray):
        return _text(value.tolist()) if value.ndim == 0 else f"[{', '.join(_text(item) for item in value.reshape(-1).tolist())}]"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, BodyText):
        return value
    return f'"{value}"' if isinstance(value, str) else repr(value)
