"""TensorFlow Lite and Circle files to models."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from sardonyx import errors
from sardonyx.cancellation import check_cancelled
from sardonyx.formats.flat.blocks import in_blocks
from sardonyx.formats.flat.reader import Table, read_root
from sardonyx.formats.flat.schema import Kind, Schema
from sardonyx.formats.model_format import ModelFile
from sardonyx.formats.tflite.builder import DOMAIN, OPSET, GraphBuilder
from sardonyx.formats.tflite.constants import Buffers
from sardonyx.formats.tflite.operator import IMPORTERS, Operator
from sardonyx.formats.tflite.operators import load_all
from sardonyx.formats.tflite.tensors import TensorInfo
from sardonyx.ir import Model, TensorType, Value

__all__ = ["load"]

_GREATER_CODES = 127
_VERSION = 3


def load(file: ModelFile, schema: Schema) -> Model:
    """Read a model.

    Args:
        file: the file.
        schema: of TensorFlow Lite or of Circle.

    Raises:
        InvalidFlatBuffer: the file contradicts itself or the format; file, table and field are in the message.
        NotImplemented: it has an operator, a type or a form of one that is not known here.
    """
    load_all()
    table = read_root(in_blocks(file.content), schema, file.label)
    return _Reader(file, table, schema).model()


class _Reader:
    def __init__(self, file: ModelFile, table: Table, schema: Schema) -> None:
        self._table, self._schema = table, schema
        self._buffers = Buffers(file, table)
        self._codes = [_code(entry) for entry in table.tables("operator_codes")]
        self._option_defaults = functools.cache(self._defaults)

    def model(self) -> Model:
        version = self._table.integer("version")
        if self._schema.name == "TensorFlow Lite" and version != _VERSION:
            self._table.refuse("version", f"it is {version}; files of version {_VERSION} are read")
        subgraphs = self._table.tables("subgraphs")
        if not subgraphs:
            self._table.refuse("subgraphs", "the model has none")
        build = GraphBuilder(subgraphs[0].text("name") or "main")
        try:
            self._fill(build, subgraphs[0])
        except BaseException:
            build.graph.dismantle()
            raise
        model = Model(build.graph, {"": OPSET, DOMAIN: 1}, ir_version=10)
        model.producer_name, model.doc = self._schema.name, self._table.text("description")
        return model

    def _fill(self, build: GraphBuilder, subgraph: Table) -> None:
        infos = [TensorInfo.of(table, index) for index, table in enumerate(subgraph.tables("tensors"))]
        values: dict[int, Value] = {}
        numbers = self._numbers(subgraph, "inputs", infos)
        for index in numbers:
            values[index] = build.input(infos[index].name or f"input_{index}", TensorType(infos[index].dtype, infos[index].dims()))
        outputs = self._numbers(subgraph, "outputs", infos)
        names = {index: build.name(infos[index].name or f"output_{index}") for index in dict.fromkeys(outputs)}
        for index, info in enumerate(infos):
            tensor = self._buffers.tensor(info) if index not in values else None
            if tensor is not None:
                values[index] = build.initializer(tensor, info.name or f"tensor_{index}")
        for table in subgraph.tables("operators"):
            check_cancelled()
            self._operator(build, subgraph, table, infos, values)
        self._give_out(build, subgraph, outputs, names, infos, values)

    def _give_out(
        self,
        build: GraphBuilder,
        subgraph: Table,
        outputs: Sequence[int],
        names: Mapping[int, str],
        infos: Sequence[TensorInfo],
        values: Mapping[int, Value],
    ) -> None:
        is_dynamic = any(
            value.shape is None or any(not isinstance(dim, int) for dim in value.shape) for value in build.graph.inputs
        )
        taken: set[Value] = set(build.graph.inputs)
        for index in outputs:
            value = values.get(index)
            if value is None:
                subgraph.refuse("outputs", f"tensor {index} ({infos[index].name!r}) is made by nothing")
            if value in taken or value.constant is not None or value.producer is None:
                value = build.node("Identity", value)
            taken.add(value)
            info = infos[index]
            value.name = (
                names[index] if names[index] not in [other.name for other in build.graph.outputs] else build.name(names[index])
            )
            sizes = info.dims()
            known = None if sizes is None or (is_dynamic and not len(info.table.numbers("shape_signature"))) else sizes
            value.type = TensorType(info.dtype, known)
            build.graph.add_output(value)
        build.finish()

    def _operator(
        self, build: GraphBuilder, subgraph: Table, table: Table, infos: Sequence[TensorInfo], values: dict[int, Value]
    ) -> None:
        number = table.integer("opcode_index")
        if number >= len(self._codes):
            table.refuse("opcode_index", f"it is {number}, and the model has {len(self._codes)} operator codes")
        code = self._codes[number]
        importer = IMPORTERS.get(code)
        if importer is None:
            raise errors.NotImplemented(f"{table.path}: the operator {code} is not supported")
        inputs = [None if index == -1 else infos[index] for index in self._numbers(table, "inputs", infos, optional=True)]
        outputs = [infos[index] for index in self._numbers(table, "outputs", infos)]
        build.place = (outputs[0].name if outputs else "") or code
        importer(Operator(code, table, build, inputs, outputs, values, self._option_defaults))

    def _numbers(self, table: Table, field: str, infos: Sequence[TensorInfo], *, optional: bool = False) -> list[int]:
        """Return a list of tensors."""
        found: list[int] = table.numbers(field).tolist()
        for index in found:
            if not (-1 if optional else 0) <= index < len(infos):
                table.refuse(field, f"there is no tensor {index}; the subgraph has {len(infos)}")
        return found

    def _defaults(self, table: str) -> dict[str, float]:
        fields = self._schema.fields(table).values()
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
