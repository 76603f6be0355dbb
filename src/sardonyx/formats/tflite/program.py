"""The subgraphs of a file while they become graphs: the main one, bodies of control flow, and those that are called.

A subgraph that is called is written where the call stands; a branch becomes a graph that reads the values around it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from sardonyx import errors
from sardonyx.cancellation import check_cancelled
from sardonyx.formats.flat.reader import Table
from sardonyx.formats.flat.schema import Kind, Schema
from sardonyx.formats.model_format import ModelFile
from sardonyx.formats.tflite.builder import GraphBuilder
from sardonyx.formats.tflite.constants import Buffers
from sardonyx.formats.tflite.operator import IMPORTERS, Operator
from sardonyx.formats.tflite.tensors import TensorInfo
from sardonyx.formats.tflite.variables import Handle, Variables
from sardonyx.ir import Tensor, TensorType, Value

__all__ = ["Bound", "Program"]

_GREATER_CODES = 127
_MOST_DEPTH = 32
_LEAST_OPERATORS = 20_000
_MOST_COPIES = 64
Bound: TypeAlias = Value | Handle
"""What a tensor is while a graph is made."""


class Program:
    """A file: its operators' names, its buffers, its subgraphs."""

    def __init__(self, file: ModelFile, table: Table, schema: Schema) -> None:
        """Take a file and its root table."""
        self.table, self.schema, self.file = table, schema, file
        self.buffers = Buffers(file, table)
        self._codes = [_code(entry) for entry in table.tables("operator_codes")]
        self.subgraphs = table.tables("subgraphs")
        self._infos: dict[int, list[TensorInfo]] = {}
        self._active: list[int] = []
        total = sum(len(subgraph.tables("operators")) for subgraph in self.subgraphs)
        self._left = max(_LEAST_OPERATORS, _MOST_COPIES * total)
        self.tables: dict[str, tuple[Tensor, Tensor]] = {}
        """Hash tables: name -> keys and values."""
        self.option_defaults = functools.cache(self._defaults)

    def infos(self, index: int) -> list[TensorInfo]:
        """Return the tensors of a subgraph."""
        if index not in self._infos:
            tables = self.subgraphs[index].tables("tensors")
            self._infos[index] = [TensorInfo.of(table, number) for number, table in enumerate(tables)]
        return self._infos[index]

    def tensors(self, table: Table, field: str, infos: Sequence[TensorInfo], *, optional: bool = False) -> list[int]:
        """Return a list of tensors of a subgraph, each checked to be there."""
        found: list[int] = table.numbers(field).tolist()
        for index in found:
            if not (-1 if optional else 0) <= index < len(infos):
                table.refuse(field, f"there is no tensor {index}; the subgraph has {len(infos)}")
        return found

    def arguments(self, index: int, field: str, owner: Table) -> list[TensorInfo]:
        """Return the inputs or outputs of a subgraph that `owner` names."""
        if not 0 <= index < len(self.subgraphs):
            owner.refuse("", f"there is no subgraph {index}; the model has {len(self.subgraphs)}")
        infos = self.infos(index)
        return [infos[number] for number in self.tensors(self.subgraphs[index], field, infos)]

    def main(self, index: int, build: GraphBuilder, variables: Variables) -> dict[str, dict[int, str]]:
        """Fill the graph of a model; returns the names of its inputs and outputs by tensor."""
        subgraph, infos = self.subgraphs[index], self.infos(index)
        values: dict[int, Bound] = {}
        names: dict[str, dict[int, str]] = {"inputs": {}, "outputs": {}}
        for number in self.tensors(subgraph, "inputs", infos):
            info = infos[number]
            value = build.input(info.name or f"input_{number}", TensorType(info.dtype, info.dims()))
            values[number], names["inputs"][number] = value, value.name
        outputs = self.tensors(subgraph, "outputs", infos)
        reserved = {number: build.name(infos[number].name or f"output_{number}") for number in dict.fromkeys(outputs)}
        self._operators(index, build, values, variables)
        self._give_out(subgraph, build, outputs, reserved, infos, values)
        names["outputs"] = reserved
        variables.finish()
        build.finish()
        return names

    def inline(self, index: int, owner: Table, build: GraphBuilder, variables: Variables, inputs: Sequence[Bound]) -> list[Bound]:
        """Write a subgraph into the graph that is made; returns its outputs."""
        arguments = self.arguments(index, "inputs", owner)
        outputs = self.arguments(index, "outputs", owner)
        if len(arguments) != len(inputs):
            owner.refuse("", f"subgraph {index} takes {len(arguments)} inputs, and is given {len(inputs)}")
        values: dict[int, Bound] = {info.index: value for info, value in zip(arguments, inputs, strict=True)}
        place = build.place
        with self._entered(index, owner):
            self._operators(index, build, values, variables)
        build.place = place
        missing = [info for info in outputs if info.index not in values]
        if missing:
            self.subgraphs[index].refuse("outputs", f"tensor {missing[0].index} ({missing[0].name!r}) is made by nothing")
        return [values[info.index] for info in outputs]

    def changes_variables(self, index: int, seen: frozenset[int] = frozenset()) -> bool:
        """Return whether a subgraph, or one that it calls, has operators that assign variables."""
        if not 0 <= index < len(self.subgraphs) or index in seen:
            return False
        seen |= {index}
        if any(info.is_variable for info in self.infos(index)):
            return True
        for table in self.subgraphs[index].tables("operators"):
            if self.code(table) == "ASSIGN_VARIABLE":
                return True
            options = table.union("builtin_options")
            fields = (
                [] if options is None else [name for name in options.known if name.endswith("subgraph_index") or name == "subgraph"]
            )
            if options is not None and any(self.changes_variables(options.integer(name), seen) for name in fields):
                return True
        return False

    def code(self, table: Table) -> str:
        """Return the name of an operator of a subgraph."""
        number = table.integer("opcode_index")
        if number >= len(self._codes):
            table.refuse("opcode_index", f"it is {number}, and the model has {len(self._codes)} operator codes")
        return self._codes[number]

    def signatures(self) -> dict[str, tuple[int, dict[str, int], dict[str, int]]]:
        """Return signature -> its subgraph, and tensors by the names of its inputs and of its outputs."""
        found: dict[str, tuple[int, dict[str, int], dict[str, int]]] = {}
        for table in self.table.tables("signature_defs"):
            index = table.integer("subgraph_index")
            if index >= len(self.subgraphs):
                table.refuse("subgraph_index", f"there is no subgraph {index}; the model has {len(self.subgraphs)}")
            inputs, outputs = (
                {entry.text("name"): entry.integer("tensor_index") for entry in table.tables(field)}
                for field in ("inputs", "outputs")
            )
            found[table.text("signature_key")] = index, inputs, outputs
        return found

    def _operators(self, index: int, build: GraphBuilder, values: dict[int, Bound], variables: Variables) -> None:
        subgraph, infos = self.subgraphs[index], self.infos(index)
        self._left -= len(infos) // 8
        for number, info in enumerate(infos):
            if number in values:
                continue
            if info.is_variable:
                values[number] = variables.read(f"{index}:{number}", info.dtype, info.shape)
                continue
            tensor = self.buffers.tensor(info)
            if tensor is not None:
                values[number] = build.initializer(tensor, info.name or f"tensor_{number}")
        for table in subgraph.tables("operators"):
            check_cancelled()
            self._left -= 1
            if self._left < 0:
                table.refuse("", "subgraphs are called so often that the model would have far more operators than the file")
            self._operator(index, build, table, values, variables)

    def _operator(self, index: int, build: GraphBuilder, table: Table, values: dict[int, Bound], variables: Variables) -> None:
        infos, code = self.infos(index), self.code(table)
        importer = IMPORTERS.get(code) or (IMPORTERS["CUSTOM"] if self._is_custom(table) else None)
        if importer is None:
            raise errors.NotImplemented(f"{table.path}: the operator {code} is not supported")
        inputs = [None if number == -1 else infos[number] for number in self.tensors(table, "inputs", infos, optional=True)]
        outputs = [infos[number] for number in self.tensors(table, "outputs", infos)]
        build.place = (outputs[0].name if outputs else "") or code
        try:
            importer(Operator(code, table, build, inputs, outputs, values, self, variables, index))
        except errors.SardonyxError:
            raise
        except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as error:
            # an importer takes ranks and counts of a file for granted where it does not look at them itself
            place = f"{self.file.label}: {table.path}: {code}"
            raise errors.InvalidFlatBuffer(f"{place}: its tensors and options contradict one another ({error})") from error

    def _is_custom(self, table: Table) -> bool:
        return bool(self.table.tables("operator_codes")[table.integer("opcode_index")].text("custom_code"))

    def _give_out(
        self,
        subgraph: Table,
        build: GraphBuilder,
        outputs: Sequence[int],
        names: Mapping[int, str],
        infos: Sequence[TensorInfo],
        values: Mapping[int, Bound],
    ) -> None:
        is_dynamic = any(
            value.shape is None or any(not isinstance(dim, int) for dim in value.shape) for value in build.graph.inputs
        )
        taken: set[Value] = set(build.graph.inputs)
        for index in outputs:
            value = values.get(index)
            if not isinstance(value, Value):
                subgraph.refuse("outputs", f"tensor {index} ({infos[index].name!r}) is made by nothing")
            if value in taken or value.constant is not None or value.producer is None:
                value = build.node("Identity", value)
            taken.add(value)
            info = infos[index]
            given = {other.name for other in build.graph.outputs}
            value.name = build.name(names[index]) if names[index] in given else names[index]
            sizes = info.dims()
            known = None if sizes is None or (is_dynamic and not len(info.table.numbers("shape_signature"))) else sizes
            value.type = TensorType(info.dtype, known)
            build.graph.add_output(value)

    @contextmanager
    def _entered(self, index: int, owner: Table) -> Iterator[None]:
        if index in self._active or len(self._active) >= _MOST_DEPTH:
            owner.refuse("", f"subgraph {index} is called from within itself, or subgraphs are nested deeper than {_MOST_DEPTH}")
        self._active.append(index)
        try:
            yield
        finally:
            self._active.pop()

    def _defaults(self, table: str) -> dict[str, float]:
        fields = self.schema.fields(table).values()
        return {field.name: field.default for field in fields if field.kind is Kind.NUMBER}


def _code(table: Table) -> str:
    """Return the name of an operator."""
    number = table.integer("builtin_code")
    older = table.integer("deprecated_builtin_code")
    if 0 <= number < _GREATER_CODES and older != _GREATER_CODES:
        number = max(number, older) if older >= 0 else number
    names = table.schema.enum("BuiltinOperator")
    if number not in names:
        table.refuse("builtin_code", f"{number} is no operator of {table.schema.name}")
    return table.text("custom_code") if names[number] == "CUSTOM" else names[number]
