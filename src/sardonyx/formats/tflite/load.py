"""TensorFlow Lite and Circle files to models.

Metadata of the file that is text becomes metadata of the model under its own name, text files that come with it under `file:`
and their names; signatures and variables become JSON there.
"""

from __future__ import annotations

import json

from sardonyx.formats.flat.blocks import in_blocks
from sardonyx.formats.flat.reader import read_root
from sardonyx.formats.flat.schema import Schema
from sardonyx.formats.model_format import ModelFile
from sardonyx.formats.tflite import SIGNATURES, STATES
from sardonyx.formats.tflite.associated import texts
from sardonyx.formats.tflite.builder import DOMAIN, OPSET, GraphBuilder
from sardonyx.formats.tflite.operators import load_all
from sardonyx.formats.tflite.operators.custom import CUSTOM_DOMAIN
from sardonyx.formats.tflite.program import Program
from sardonyx.formats.tflite.variables import Variables
from sardonyx.ir import Model

__all__ = ["load"]

_VERSION = 3


def load(file: ModelFile, schema: Schema, subgraph: int = 0) -> Model:
    """Read a model.

    Args:
        file: the file.
        schema: of TensorFlow Lite or of Circle.
        subgraph: which of its subgraphs is the main graph.

    Raises:
        InvalidFlatBuffer: the file contradicts itself or the format; file, table and field are in the message.
        NotImplemented: it has an operator, a type or a form of one that is not known here.
    """
    load_all()
    table = read_root(in_blocks(file.content), schema, file.label)
    version = table.integer("version")
    if schema.identifier == b"TFL3" and version != _VERSION:
        table.refuse("version", f"it is {version}; files of version {_VERSION} are read")
    program = Program(file, table, schema)
    if not 0 <= subgraph < len(program.subgraphs):
        table.refuse("subgraphs", f"the model has {len(program.subgraphs) or 'none'}; number {subgraph} was asked for")
    build = GraphBuilder(program.subgraphs[subgraph].text("name") or "main")
    variables = Variables(build)
    try:
        names = program.main(subgraph, build, variables)
    except BaseException:
        build.graph.dismantle()
        raise
    model = Model(build.graph, {"": OPSET, DOMAIN: 1, CUSTOM_DOMAIN: 1}, ir_version=10)
    model.producer_name, model.doc = schema.name, table.text("description")
    model.metadata = _metadata(program, variables, subgraph, names)
    return model


def _metadata(program: Program, variables: Variables, subgraph: int, names: dict[str, dict[int, str]]) -> dict[str, str]:
    found = {f"file:{name}": text for name, text in texts(program.file.content).items()}
    for table in program.table.tables("metadata"):
        data = program.buffers.data(table.integer("buffer"), table)
        text = data.rstrip(b"\0")
        if text.isascii() and text.decode("ascii").isprintable():
            found[table.text("name")] = text.decode("ascii")
    signatures = {
        key: {
            "subgraph": index,
            "inputs": {name: names["inputs"].get(tensor, "") if index == subgraph else "" for name, tensor in inputs.items()},
            "outputs": {name: names["outputs"].get(tensor, "") if index == subgraph else "" for name, tensor in outputs.items()},
        }
        for key, (index, inputs, outputs) in program.signatures().items()
    }
    if signatures:
        found[SIGNATURES] = json.dumps(signatures)
    if variables.states:
        found[STATES] = json.dumps([[key, state.input, state.output] for key, state in sorted(variables.states.items())])
    return found
