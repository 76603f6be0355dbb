"""Variables of TensorFlow Lite models: what a model keeps from run to run, as inputs and outputs of its graph.

A variable that is read before it is assigned is an input of the main graph, with an initializer as its value in the first run; one
that is assigned is an output, which the session feeds to the next run. In bodies of If and Loop variables are values like others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidFlatBuffer
from sardonyx.formats.tflite.builder import GraphBuilder
from sardonyx.ir import Tensor, TensorType, Value

__all__ = ["Handle", "State", "Variables"]

_MOST_ELEMENTS = 1 << 28


@dataclasses.dataclass(frozen=True, slots=True)
class Handle:
    """What a tensor of the kind RESOURCE refers to."""

    key: str
    """The variable's, or the table's, name."""


@dataclasses.dataclass(slots=True)
class State:
    """A variable of the main graph."""

    input: str = ""
    """The input that is its value before a run; empty where no run reads it."""
    output: str = ""
    """The output that is its value afterwards; empty where no run assigns it."""


class Variables:
    """The values of variables at a point of a graph."""

    def __init__(self, build: GraphBuilder, outer: Variables | None = None) -> None:
        """Begin with the values of the graph around, or those before a run."""
        self._build, self._outer = build, outer
        self._values: dict[str, Value] = {}
        self._kinds: dict[str, TensorType] = {}
        self._handed_on: list[Value] = []
        self.initial: dict[str, Tensor] = outer.initial if outer is not None else {}
        """What variables are before the first run."""
        self.states: dict[str, State] = outer.states if outer is not None else {}
        """The variables of the main graph."""

    def read(self, key: str, dtype: DataType, shape: Sequence[int]) -> Value:
        """Return the value of a variable, which is zeros of this type and shape where nothing says what it is at first."""
        level: Variables | None = self
        while level is not None:
            if key in level._values:
                return level._values[key]
            if level._outer is None:
                return level._begin(key, dtype, shape)
            level = level._outer
        raise AssertionError(key)

    def write(self, key: str, value: Value, kind: TensorType | None = None) -> None:
        """Assign a variable; `kind` is what the file says of the value, where that is known."""
        self._values[key] = value
        if kind is not None:
            self._kinds[key] = kind

    def hand_on(self, value: Value) -> None:
        """Make a value of the main graph an output behind those of the file: what the caller feeds in the next run."""
        self._handed_on.append(value)

    def kind(self, key: str) -> TensorType | None:
        """Return what the file says of the value that was assigned last; None where it says nothing."""
        return self._kinds.get(key)

    @property
    def is_main(self) -> bool:
        """Whether these are the variables of the main graph."""
        return self._outer is None

    def written(self) -> list[str]:
        """Return the variables that were assigned in this body, sorted."""
        return sorted(self._values)

    def known(self) -> list[str]:
        """Return the variables that have a value here, or before the first run."""
        outer = [] if self._outer is None else self._outer.known()
        return list(dict.fromkeys([*outer, *self._values, *self.initial]))

    def finish(self) -> None:
        """Give out what was handed on and what was assigned, at the end of the main graph."""
        for value in self._handed_on:
            self._build.graph.add_output(value)
        for key, value in sorted(self._values.items()):
            state = self.states.setdefault(key, State())
            if value.name == state.input:
                continue
            made = self._build.node("Identity", value)
            made.name = state.output = self._build.name(f"state:{key}:next")
            made.type = TensorType(value.dtype) if value.dtype is not None else None
            self._build.graph.add_output(made)

    def _begin(self, key: str, dtype: DataType, shape: Sequence[int]) -> Value:
        tensor = self.initial.get(key)
        if tensor is None:
            if math.prod(shape) > _MOST_ELEMENTS:
                raise InvalidFlatBuffer(f"the variable {key!r} has shape {list(shape)}; at most {_MOST_ELEMENTS} elements are kept")
            if dtype is DataType.UNDEFINED:
                raise InvalidFlatBuffer(f"the variable {key!r} has no elements that can be kept: it is a resource or a variant")
            tensor = Tensor.from_array(np.zeros(tuple(shape), dtype.numpy))
        name = self._build.name(f"state:{key}")
        value = Value(name, TensorType(tensor.dtype, tensor.shape), tensor)
        self._build.graph.inputs.append(value)
        self._build.graph.initializers[name] = value
        self.states[key] = State(name)
        self._values[key] = value
        return value
