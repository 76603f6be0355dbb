"""Calls, branches, loops, variables and hash tables."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.formats.tflite.builder import GraphBuilder
from sardonyx.formats.tflite.operator import Operator, imports
from sardonyx.formats.tflite.program import Bound
from sardonyx.formats.tflite.variables import Handle, Variables
from sardonyx.ir import Graph, TensorType, Value

__all__ = ["call", "if_", "while_"]

_MOST_BRANCHES = 256
"""Each is nested in the one before."""


@imports("CALL")
def call(op: Operator) -> None:
    """Write the nodes of a subgraph in the place of its call."""
    _give_back(op, op.program.inline(op.options("CallOptions").integer("subgraph"), op.table, op.build, op.variables, _inputs(op)))


@imports("STABLEHLO_COMPOSITE")
def composite(op: Operator) -> None:
    """Write the nodes of a decomposition in the place of the operator that it decomposes."""
    options = op.options("StableHLOCompositeOptions", "builtin_options_2")
    index = options.integer("decomposition_subgraph_index")
    _give_back(op, op.program.inline(index, op.table, op.build, op.variables, _inputs(op)))


@imports("IF")
def if_(op: Operator) -> None:
    """Compute one of two subgraphs."""
    options = op.options("IfOptions")
    bodies = [options.integer(f"{name}_subgraph_index") for name in ("then", "else")]
    _branch(op, lambda build, place: build.reshape(op.raw(0), ()), bodies)


@imports("STABLEHLO_CASE")
def case(op: Operator) -> None:
    """Compute one of several subgraphs, by number; the last one where the number is out of range."""
    options = op.table.union("builtin_options_2")
    bodies = (
        [] if options is None or options.name != "StablehloCaseOptions" else options.numbers("branch_subgraph_indices").tolist()
    )
    if not bodies:
        op.refuse("it has no branches")
    if len(bodies) > _MOST_BRANCHES:
        op.unsupported(f"it has {len(bodies)} branches; {_MOST_BRANCHES} are the most")
    kind = op.info(0).dtype.numpy

    def is_chosen(build: GraphBuilder, place: int) -> Value:
        return build.node("Equal", build.reshape(op.raw(0), ()), build.constant(np.array(place, kind)))

    _branch(op, is_chosen, bodies)


def _branch(op: Operator, is_chosen: Callable[[GraphBuilder, int], Value], indices: list[int]) -> None:
    """Compute one of several subgraphs: the first one that is chosen, else the last; `is_chosen` makes that a value of a graph."""
    inputs = _inputs(op)[1:]
    if len(indices) == 1:
        _give_back(op, op.program.inline(indices[0], op.table, op.build, op.variables, inputs))
        return
    made: list[tuple[GraphBuilder, Variables, list[Bound]]] = []
    for index in indices:
        build = GraphBuilder(f"branch_{index}", op.build)
        variables = Variables(build, op.variables)
        made.append((build, variables, op.program.inline(index, op.table, build, variables, inputs)))
    keys = sorted({key for _, variables, _ in made for key in variables.written()})
    graphs = []
    for build, variables, outputs in made:
        if len(outputs) != len(op.outputs):
            op.refuse(f"a branch has {len(outputs)} outputs; expected {len(op.outputs)}")
        values = [value for value in outputs if isinstance(value, Value)]
        values += [variables.read(key, DataType.FLOAT, ()) for key in keys]
        if len(values) != len(op.outputs) + len(keys):
            op.unsupported("a branch gives out a handle")
        graphs.append(_closed(build, values))
    count, other = len(op.outputs) + len(keys), graphs.pop()
    for place in range(len(graphs) - 1, 0, -1):
        build = GraphBuilder(f"branch_from_{place}", op.build)
        chosen = is_chosen(build, place)
        other = _closed(build, list(build.nodes("If", chosen, outputs=count, then_branch=graphs[place], else_branch=other)))
    _store(op, list(op.build.nodes("If", is_chosen(op.build, 0), outputs=count, then_branch=graphs[0], else_branch=other)), keys)


@imports("WHILE")
def while_(op: Operator) -> None:
    """Compute a subgraph again and again, as long as another says so."""
    options = op.options("WhileOptions")
    check, step = options.integer("cond_subgraph_index"), options.integer("body_subgraph_index")
    inputs = _inputs(op)
    before, after = (op.program.arguments(step, field, op.table) for field in ("inputs", "outputs"))
    if not len(inputs) == len(before) == len(after) == len(op.outputs):
        op.refuse(f"it has {len(inputs)} inputs and {len(op.outputs)} outputs, and its body {len(before)} and {len(after)}")
    keys = sorted(op.variables.known()) if op.program.changes_variables(step) or op.program.changes_variables(check) else []
    carried = [value for value in inputs if isinstance(value, Value)]
    start = [op.variables.read(key, DataType.FLOAT, ()) for key in keys]
    [first] = _one_value(op, op.program.inline(check, op.table, op.build, op.variables, inputs))
    build = GraphBuilder(f"loop_{step}", op.build)
    variables = Variables(build, op.variables)
    build.input("iteration", TensorType(DataType.INT64, ()))
    build.input("condition", TensorType(DataType.BOOL, ()))
    inner: list[Bound] = []
    for value, info, result in zip(inputs, before, after, strict=True):
        same = info.shape == result.shape and not info.is_dynamic and not result.is_dynamic
        kind = TensorType(info.dtype, info.shape if same else None)
        inner.append(build.input(info.name or "state", kind) if isinstance(value, Value) else value)
    for key, value in zip(keys, start, strict=True):
        variables.write(key, build.input(f"state:{key}", TensorType(value.dtype or DataType.FLOAT)))
    outputs = op.program.inline(step, op.table, build, variables, inner)
    [goes_on] = _one_value(op, op.program.inline(check, op.table, build, variables, outputs))
    if not set(variables.written()) <= set(keys):
        op.unsupported(f"its body assigns {sorted(set(variables.written()) - set(keys))}, which have no value before the loop")
    given = [value for value, source in zip(outputs, inputs, strict=True) if isinstance(value, Value) and isinstance(source, Value)]
    if len(given) != len(carried):
        op.unsupported("its body changes a handle")
    kept = [variables.read(key, DataType.FLOAT, ()) for key in keys]
    body = _closed(build, [build.reshape(goes_on, ()), *given, *kept])
    results = op.build.nodes(
        "Loop", None, op.build.reshape(first, ()), *carried, *start, outputs=len(carried) + len(keys), body=body
    )
    _store(op, list(results), keys, inputs)


def _inputs(op: Operator) -> list[Bound]:
    return [op.bound(index) for index in range(len(op.inputs))]


def _one_value(op: Operator, outputs: list[Bound]) -> list[Value]:
    if len(outputs) != 1 or not isinstance(outputs[0], Value):
        op.refuse(f"its condition has {len(outputs)} outputs; expected one")
    return [outputs[0]]


def _give_back(op: Operator, outputs: list[Bound]) -> None:
    if len(outputs) != len(op.outputs):
        op.refuse(f"its subgraph has {len(outputs)} outputs; expected {len(op.outputs)}")
    for index, value in enumerate(outputs):
        op.put_bound(index, value)


def _store(op: Operator, results: list[Value], keys: list[str], inputs: list[Bound] | None = None) -> None:
    """Make outputs of a node those of an operator, and of variables behind them; handles stay what they were."""
    rest = iter(results)
    for index in range(len(op.outputs)):
        source = inputs[index] if inputs is not None else None
        op.put_bound(index, source if isinstance(source, Handle) else next(rest))
    for key in keys:
        op.variables.write(key, next(rest))


def _closed(build: GraphBuilder, values: list[Value]) -> Graph:
    """Return the graph of a body with these outputs, each of which a node of it makes."""
    seen: set[Value] = set()
    for value in values:
        own = value.producer is not None and value.producer.graph is build.graph and value not in seen
        made = value if own else build.node("Identity", value)
        seen.add(made)
        build.graph.add_output(made)
    build.finish()
    return build.graph


@imports("VAR_HANDLE")
def var_handle(op: Operator) -> None:
    """Refer to a variable by its name."""
    options = op.options("VarHandleOptions")
    container = options.text("container")
    op.put_handle(0, f"{container}/{options.text('shared_name')}" if container else options.text("shared_name"))


@imports("READ_VARIABLE")
def read_variable(op: Operator) -> None:
    """Read a variable."""
    op.put_raw(0, op.variables.read(op.handle(0), op.output(0).dtype, op.output(0).shape))


@imports("ASSIGN_VARIABLE")
def assign_variable(op: Operator) -> None:
    """Assign a variable."""
    info = op.info(1)
    op.variables.write(op.handle(0), op.raw(1), TensorType(info.dtype, info.dims()))


@imports("HASHTABLE")
def hashtable(op: Operator) -> None:
    """Refer to a hash table by its number."""
    op.put_handle(0, f"table:{op.options('HashtableOptions').integer('table_id')}")


@imports("HASHTABLE_IMPORT")
def hashtable_import(op: Operator) -> None:
    """Fill a hash table with constants."""
    keys, values = op.raw(1), op.raw(2)
    if keys.constant is None or values.constant is None:
        op.unsupported("its keys or values are computed; constants are supported")
    op.program.tables.setdefault(op.handle(0), (keys.constant, values.constant))


@imports("HASHTABLE_FIND")
def hashtable_find(op: Operator) -> None:
    """Find the values of keys, and the third input for keys that are not there."""
    table, build = op.program.tables.get(op.handle(0)), op.build
    default = build.reshape(op.raw(2), ())
    if table is None or table[0].size == 0:
        op.put_raw(0, build.node("Expand", default, build.node("Shape", op.raw(1))))
        return
    keys, values = build.initializer(table[0]), build.initializer(table[1])
    asked = build.node("Unsqueeze", op.raw(1), build.ints(-1))
    equal = build.cast(build.node("Equal", asked, keys), DataType.INT32)
    found = build.node("Gather", values, build.node("ArgMax", equal, axis=-1, keepdims=0), axis=0)
    hits = build.cast(build.node("ReduceMax", equal, build.ints(-1), keepdims=0), DataType.BOOL)
    op.put_raw(0, build.node("Where", hits, found, default))


@imports("HASHTABLE_SIZE")
def hashtable_size(op: Operator) -> None:
    """Count the keys of a hash table."""
    table = op.program.tables.get(op.handle(0))
    op.put_raw(0, op.build.constant(np.array([0 if table is None else table[0].size], np.int64)))
