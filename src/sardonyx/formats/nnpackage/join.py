"""Several models as one: their nodes in one graph, outputs of one model read as inputs of others.

Each input of a model is an input of the whole, or read from one output; the models come in an order in which they can run. Names
of values, nodes and functions that an earlier model has get the number of their model behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sardonyx.errors import InvalidGraph
from sardonyx.formats.nnpackage.manifest import Connection, End
from sardonyx.ir import Function, Graph, Model, Node, TensorType, Value
from sardonyx.ir.order import topological_order
from sardonyx.ir.walk import nested_graphs

__all__ = ["join"]


def join(models: Sequence[Model], inputs: Sequence[End], outputs: Sequence[End], connections: Sequence[Connection]) -> Model:
    """Return one model, made of `models`, which are taken apart.

    Args:
        models: in the order of the manifest.
        inputs: which inputs of models are those of the whole.
        outputs: which outputs of models are those of the whole.
        connections: which outputs are read by which inputs.

    Raises:
        InvalidGraph: an input has no source or several, an end is not there, types do not fit, or models wait for one another.
    """
    sources = _sources(models, inputs, connections)
    for end in (*outputs, *(edge.source for edge in connections)):
        _value(models, end, is_input=False)
    joined = _Joined(models)
    for index in _order(models, connections):
        joined.add(index, {place: joined.outputs[edge] for place, edge in sources[index].items() if edge is not None})
    for end in inputs:
        joined.graph.inputs.append(_value(models, end, is_input=True))
    for end in outputs:
        joined.graph.add_output(joined.outputs[end])
    joined.graph.remove(joined.last)
    return joined.model


def _sources(models: Sequence[Model], inputs: Sequence[End], connections: Sequence[Connection]) -> list[dict[int, End | None]]:
    """Return for each model where its inputs come from: an output, or None for the outside."""
    found: list[dict[int, End | None]] = [{} for _ in models]
    for target, source in [*((end, None) for end in inputs), *((edge.target, edge.source) for edge in connections)]:
        value = _value(models, target, is_input=True)
        if target.place in found[target.model]:
            raise InvalidGraph(f"input {target} of the package's models ({value.name!r}) has two sources; expected one")
        found[target.model][target.place] = source
        if source is not None:
            _check_types(_value(models, source, is_input=False), value, source, target)
    for index, model in enumerate(models):
        for place, value in enumerate(model.graph.inputs):
            if place not in found[index] and value.constant is None:
                raise InvalidGraph(
                    f"input {End(index, place)} of the package's models ({value.name!r} of {model.label}) has no source: "
                    "it is none of pkg-inputs, and no connection leads to it"
                )
    return found


def _value(models: Sequence[Model], end: End, *, is_input: bool) -> Value:
    graph = models[end.model].graph
    values = graph.inputs if is_input else graph.outputs
    if end.place >= len(values):
        side = "inputs" if is_input else "outputs"
        raise InvalidGraph(f"{end} names none of the {len(values)} {side} of model {models[end.model].label}")
    return values[end.place]


def _check_types(source: Value, target: Value, start: End, end: End) -> None:
    if not isinstance(source.type, TensorType) or not isinstance(target.type, TensorType):
        return
    dtypes_fit = source.type.dtype is target.type.dtype
    one, other = source.type.shape, target.type.shape
    sizes_fit = (
        one is None
        or other is None
        or (
            len(one) == len(other)
            and all(
                left == right or not isinstance(left, int) or not isinstance(right, int)
                for left, right in zip(one, other, strict=True)
            )
        )
    )
    if not dtypes_fit or not sizes_fit:
        raise InvalidGraph(
            f"the connection {start} -> {end} does not fit: {source.name!r} is {source.type}{_shown(source)}, and "
            f"{target.name!r} is {target.type}{_shown(target)}"
        )


def _shown(value: Value) -> str:
    return "" if value.shape is None else f" of shape [{', '.join(map(str, value.shape))}]"


def _order(models: Sequence[Model], connections: Sequence[Connection]) -> list[int]:
    needed: dict[int, dict[int, None]] = {index: {} for index in range(len(models))}
    for edge in connections:
        needed[edge.target.model][edge.source.model] = None
    order, stuck = topological_order(list(range(len(models))), lambda index: list(needed[index]))
    if stuck:
        names = ", ".join(models[index].label for index in stuck[:10])
        raise InvalidGraph(f"the package's models wait for one another: {names}; connections may not go in circles")
    return list(order)


class _Joined:
    """The whole while models are added to it."""

    def __init__(self, models: Sequence[Model]) -> None:
        self._models = models
        self.graph = Graph("package")
        self.model = Model(self.graph, {}, ir_version=max(model.ir_version for model in models))
        self.outputs: dict[End, Value] = {}
        """What each output of a model that was added is."""
        self.last = self.graph.append(Node("Identity", (), 0, version=1))
        """Stands behind all nodes."""
        self._values: set[str] = set()
        self._nodes: set[str] = set()

    def add(self, index: int, read: Mapping[int, Value]) -> None:
        """Add a model, some of whose inputs are values that are there already, by their places."""
        model = self._models[index]
        graph = model.graph
        self._add_functions(model, index)
        for domain, version in model.opset_imports.items():
            self.model.opset_imports[domain] = max(version, self.model.opset_imports.get(domain, 0))
        for key, text in model.metadata.items():
            self.model.metadata.setdefault(key, text)
        values = list(graph.outputs)
        graph.clear_outputs()
        for place, source in read.items():
            target = graph.inputs[place]
            target.replace_all_uses_with(source)
            values = [source if value is target else value for value in values]
        own = [value for place, value in enumerate(graph.inputs) if place not in read]
        self._rename((*own, *graph.initializers.values(), *(value for node in graph for value in node.outputs)), index)
        for value in graph.initializers.values():
            self.graph.initializers[value.name] = value
        for node in list(graph):
            if node.name and node.name in self._nodes:
                node.name = f"{node.name}_{index}"
            self._nodes.add(node.name)
            self.graph.move_before(self.last, node)
        self.outputs.update({End(index, place): value for place, value in enumerate(values)})

    def _rename(self, values: Sequence[Value], index: int) -> None:
        for value in dict.fromkeys(values):
            name, serial = value.name, index
            while value.name and value.name in self._values:
                value.name = f"{name}_{serial}"
                serial += 1
            self._values.add(value.name)

    def _add_functions(self, model: Model, index: int) -> None:
        taken: dict[tuple[str, str, str], Function] = {}
        for key, function in model.functions.items():
            if key in self.model.functions:
                function.overload = f"{function.overload}model{index}"
                taken[key] = function
            self.model.functions[function.id] = function
        if taken:
            for root in (model.graph, *(function.graph for function in model.functions.values())):
                for graph in nested_graphs(root):
                    for node in graph:
                        called = taken.get((node.domain, node.op_type, node.overload))
                        node.overload = node.overload if called is None else called.overload
