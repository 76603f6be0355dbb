"""One operator of a file on its way to ONNX: its inputs as values, its options, and where its outputs go.

    @imports("RELU6")
    def relu6(op: Operator) -> None:
        op.put(0, op.build.clip(op.real(0), 0, 6))

`real` gives an input as real numbers, dequantized where its integers stand for them; `raw` as the file has it. `put` and
`put_raw` are the same for outputs. An importer that needs a constant where the file has none, or finds what it does not know,
refuses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from sardonyx import errors
from sardonyx.dtypes import Array, DataType
from sardonyx.formats.flat.reader import Table
from sardonyx.formats.tflite.builder import DOMAIN, GraphBuilder
from sardonyx.formats.tflite.quantize import dequantized, quantized
from sardonyx.formats.tflite.tensors import INTEGERS, TensorInfo
from sardonyx.formats.tflite.variables import Handle, Variables
from sardonyx.ir import Value
from sardonyx.ir.attribute import AttributeValue

if TYPE_CHECKING:
    from sardonyx.formats.tflite.program import Program

__all__ = ["ACTIVATION", "IMPORTERS", "Importer", "Operator", "Options", "imports"]

ACTIVATION = "NONE RELU RELU_N1_TO_1 RELU6 TANH SIGN_BIT"
"""The names of fused activations, as the schema numbers them."""
_MOST_ELEMENTS = 1 << 24
_ACTIVATIONS: Mapping[str, Callable[[GraphBuilder, Value], Value]] = {
    "NONE": lambda build, value: value,
    "RELU": lambda build, value: build.node("Relu", value),
    "RELU_N1_TO_1": lambda build, value: build.clip(value, -1, 1),
    "RELU6": lambda build, value: build.clip(value, 0, 6),
    "TANH": lambda build, value: build.node("Tanh", value),
}


class Options:
    """The options of an operator; those that the file leaves out have the defaults of the schema."""

    def __init__(self, table: Table | None, owner: Table, name: str, defaults: Mapping[str, float]) -> None:
        """Take the table of the file, and what the fields are where there is none."""
        if table is not None and table.name != name:
            owner.refuse("builtin_options", f"it is {table.name}, and the operator takes {name}")
        self._table, self._defaults = table, defaults

    def integer(self, field: str) -> int:
        """Return a whole number."""
        return int(self._defaults[field]) if self._table is None else self._table.integer(field)

    def real(self, field: str) -> float:
        """Return a real number."""
        return self._defaults[field] if self._table is None else self._table.real(field)

    def flag(self, field: str) -> bool:
        """Return a truth value."""
        return bool(self.integer(field)) if self._table is None else self._table.flag(field)

    def choice(self, field: str, names: str) -> str:
        """Return one of `names`, which the schema numbers from 0, where the file has no options the one of the default."""
        return names.split()[int(self._defaults[field])] if self._table is None else self._table.choice(field)

    def text(self, field: str) -> str:
        """Return a text."""
        return "" if self._table is None else self._table.text(field)

    def numbers(self, field: str) -> Array:
        """Return a list of numbers."""
        return np.empty(0, np.int64) if self._table is None else self._table.numbers(field)


class Operator:
    """An operator, with what its graph has made so far."""

    def __init__(
        self,
        code: str,
        table: Table,
        build: GraphBuilder,
        inputs: list[TensorInfo | None],
        outputs: list[TensorInfo],
        values: MutableMapping[int, Value | Handle],
        program: Program,
        variables: Variables,
        subgraph: int,
    ) -> None:
        """Take what the file says of an operator.

        Args:
            code: its name.
            table: its table.
            build: the graph that nodes are appended to.
            inputs: its tensors; None for one that is left out.
            outputs: its tensors.
            values: tensor -> value in the graph.
            program: the file.
            variables: what variables are at this point.
            subgraph: the number of its subgraph.
        """
        self.code, self.table, self.build, self.inputs, self.outputs = code, table, build, inputs, outputs
        self.program, self.variables, self.subgraph = program, variables, subgraph
        self._values = values

    def options(self, name: str, field: str = "builtin_options") -> Options:
        """Return the options, which are of the table `name`."""
        return Options(self.table.union(field), self.table, name, self.program.option_defaults(name))

    def has(self, index: int) -> bool:
        """Return whether an input is given."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def info(self, index: int) -> TensorInfo:
        """Return what the file says of an input, which must be given."""
        found = self.inputs[index] if index < len(self.inputs) else None
        if found is None:
            self.refuse(f"input {index} is left out; {self.code} needs it")
        return found

    def output(self, index: int) -> TensorInfo:
        """Return what the file says of an output, which must be there."""
        if index >= len(self.outputs):
            self.refuse(f"it has {len(self.outputs)} outputs; {self.code} has output {index} too")
        return self.outputs[index]

    def raw(self, index: int) -> Value:
        """Return an input as the file has it."""
        if self.info(index).blocks is not None:
            self.unsupported(f"input {index} is quantized in blocks; FULLY_CONNECTED and EMBEDDING_LOOKUP take such a one")
        return self._raw(index)

    def blocks(self, index: int) -> tuple[Value, Value, int] | None:
        """Return the integers of an input that is quantized in blocks of a row, and its scales; None for any other.

        Returns:
            The integers (M, K); the scales, float32 (M, K / block); how many elements have one.
        """
        info = self.info(index)
        if info.blocks is None:
            return None
        if info.dtype not in INTEGERS or info.rank != 2 or info.shape[1] % info.blocks.size:
            self.refuse(f"a tensor of {info.dtype} and shape {list(info.shape)} has no blocks of {info.blocks.size} integers")
        shape = info.shape[0], info.shape[1] // info.blocks.size
        scales, points = (self._constant_of(number) for number in (info.blocks.scales, info.blocks.zero_points))
        if scales is None or scales.dtype not in (np.float16, np.float32) or scales.size != math.prod(shape):
            self.refuse(f"input {index}: tensor {info.blocks.scales} has no floats for its {math.prod(shape)} scales of blocks")
        if points is not None and points.dtype.kind in "iu" and points.size in (1, scales.size) and points.any():
            self.unsupported(f"input {index}: its blocks have zero points that are not 0; no kernel of LiteRT reads them")
        return self._raw(index), self.build.constant(scales.astype(np.float32).reshape(shape)), info.blocks.size

    def _constant_of(self, number: int) -> Array | None:
        """Return the elements of a tensor of the subgraph; None where it has none in the file."""
        found = self._values.get(number)
        return found.constant.numpy() if isinstance(found, Value) and found.constant is not None else None

    def _raw(self, index: int) -> Value:
        info = self.info(index)
        found = self._values.get(info.index)
        if not isinstance(found, Value):
            self.refuse(f"input {index} is the tensor {info.name!r}, which nothing has made before")
        return found

    def bound(self, index: int) -> Value | Handle:
        """Return an input that may be a handle."""
        found = self._values.get(self.info(index).index)
        if found is None:
            self.refuse(f"input {index} is the tensor {self.info(index).name!r}, which nothing has made before")
        return found

    def handle(self, index: int) -> str:
        """Return the name of the variable or table that an input refers to."""
        found = self._values.get(self.info(index).index)
        if not isinstance(found, Handle):
            self.refuse(f"input {index} is {self.info(index).name!r}, which refers to no variable or table")
        return found.key

    def put_handle(self, index: int, key: str) -> None:
        """Make an output refer to a variable or a table."""
        self._values[self.output(index).index] = Handle(key)

    def put_bound(self, index: int, value: Value | Handle) -> None:
        """Make an output what a subgraph gave."""
        self._values[self.output(index).index] = value

    def assign(self, index: int, value: Value) -> None:
        """Give a new value to an input that is a variable."""
        info = self.info(index)
        if not info.is_variable:
            self.refuse(f"input {index} is {info.name!r}, which is no variable")
        self._values[info.index] = value
        self.variables.write(f"{self.subgraph}:{info.index}", value)

    def real(self, index: int) -> Value:
        """Return an input as real numbers."""
        return dequantized(self.build, self.raw(index), self.info(index))

    def real_of(self, index: int, value: Value) -> Value:
        """Return elements of an input, moved but not changed, as real numbers."""
        return dequantized(self.build, value, self.info(index))

    def value(self, index: int) -> Value:
        """Return what an output was made."""
        found = self._values[self.output(index).index]
        assert isinstance(found, Value)
        return found

    def names_of(self, table: str) -> list[str]:
        """Return the fields of a table of options, in order."""
        return list(self.table.schema.fields(table))

    def constant(self, index: int) -> Array:
        """Return the elements of an input that must be a constant."""
        found = self.maybe_constant(index)
        if found is None:
            self.unsupported(f"input {index} is computed by the model; a constant is supported")
        return found

    def maybe_constant(self, index: int) -> Array | None:
        """Return the elements of an input that is a constant, else None."""
        tensor = self.raw(index).constant
        return None if tensor is None else tensor.numpy()

    def rank(self, index: int) -> int:
        """Return how many dimensions an input has."""
        info = self.info(index)
        if not info.has_shape:
            self.unsupported(f"input {index} has no shape in the file, and its rank is needed")
        return info.rank

    def put_raw(self, index: int, value: Value) -> None:
        """Make `value` an output as the file has it."""
        self._values[self.output(index).index] = value

    def put(self, index: int, value: Value) -> None:
        """Make real numbers an output, quantized where its integers stand for them."""
        info = self.output(index)
        self._values[info.index] = quantized(self.build, value, info)

    def through(self, make: Callable[..., Value], count: int, *, first: int = 0) -> None:
        """Make the only output of inputs whose elements are moved or chosen, but not changed.

        Integers stay what they are where all inputs and the output have one scale; else real numbers are moved, and quantized anew.

        Args:
            make: makes it of the inputs.
            count: how many inputs are moved.
            first: the first of them.
        """
        places = range(first, first + count)
        if all(self.info(index).same_scale(self.output(0)) for index in places):
            self.put_raw(0, make(*(self.raw(index) for index in places)))
        else:
            self.put(0, make(*(self.real(index) for index in places)))

    def own(self, name: str, *inputs: Value | None, **attributes: AttributeValue) -> Value:
        """Return the only output of an operator of the domain of TensorFlow Lite's own operators."""
        return self.build.node(name, *inputs, domain=DOMAIN, **attributes)

    def shape(self, index: int) -> Value:
        """Return an input that has sizes or places as int64 of rank 1."""
        given = self.maybe_constant(index)
        if given is not None:
            return self.build.ints(*given.reshape(-1).tolist())
        wide = self.raw(index) if self.info(index).dtype is DataType.INT64 else self.build.cast(self.raw(index), DataType.INT64)
        return wide if self.info(index).rank == 1 else self.build.reshape(wide, (-1,))

    def axes(self, index: int) -> Value:
        """Return an input that names axes as int64 of rank 1."""
        return self.shape(index)

    def number(self, index: int) -> int:
        """Return the only element of an input that must be a constant."""
        found = self.constant(index).reshape(-1)
        if len(found) != 1:
            self.refuse(f"input {index} has {len(found)} elements; expected one")
        return int(found[0])

    def activate(self, value: Value, name: str) -> Value:
        """Return `value` behind the activation function of that name."""
        found = _ACTIVATIONS.get(name)
        if found is None:
            self.unsupported(f"the fused activation {name} is not supported; no kernel of TensorFlow Lite has it")
        return found(self.build, value)

    def image(self, index: int) -> Value:
        """Return an input with its channels first, as real numbers."""
        info = self.info(index)
        return dequantized(self.build, self.build.first(self.raw(index), self.rank(index)), info)

    def put_image(self, index: int, value: Value, rank: int = 4) -> None:
        """Make real numbers whose channels are first an output."""
        info = self.output(index)
        self._values[info.index] = self.build.last(quantized(self.build, value, info), rank)

    def is_real(self, index: int = 0) -> bool:
        """Return whether an input has real numbers: floating-point ones, or integers that stand for them."""
        info = self.info(index)
        return info.is_quantized or info.dtype in (DataType.FLOAT, DataType.FLOAT16, DataType.DOUBLE, DataType.BFLOAT16)

    def check_count(self, count: int) -> None:
        """Refuse to make a constant of so many elements, where sizes of the file ask for more than any model needs."""
        if count > _MOST_ELEMENTS:
            self.unsupported(f"a constant of {count} elements would be made for it; {_MOST_ELEMENTS} are the most")

    def unsupported(self, reason: str) -> NoReturn:
        """Raise NotImplemented with the place of this operator."""
        raise errors.NotImplemented(f"{self.table.path}: {self.code}: {reason}")

    def is_hybrid(self, weights: int, data: int = 0) -> bool:
        """Return whether an input of data has real numbers, and that of weights integers around 0 that stand for such."""
        info = self.info(weights)
        is_integer = info.is_quantized and info.dtype in (DataType.INT8, DataType.INT4, DataType.INT2)
        if self.info(data).dtype is not DataType.FLOAT or info.quantization is None or not is_integer:
            return False
        return not info.quantization.zero_points.any()

    def scales(self, index: int) -> Array:
        """Return the scales of an input whose integers stand for real numbers."""
        found = self.info(index).quantization
        if found is None:
            self.refuse(f"input {index} has no scale; {self.code} needs one")
        return found.scales

    def refuse(self, reason: str) -> NoReturn:
        """Raise InvalidFlatBuffer with the place of this operator."""
        self.table.refuse("", f"{self.code}: {reason}")


Importer = Callable[[Operator], None]
IMPORTERS: dict[str, Importer] = {}
"""Operator -> what makes nodes of it."""


def imports(*names: str) -> Callable[[Importer], Importer]:
    """Register a function as what makes nodes of the operators `names`."""

    def register(importer: Importer) -> Importer:
        for name in names:
            assert name not in IMPORTERS, f"{name} has two importers"
            IMPORTERS[name] = importer
        return importer

    return register
