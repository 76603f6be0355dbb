"""Providers with a planted error, and models of many nodes to plant it in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sardonyx.ir import Graph, Model, Tensor
from sardonyx.ir.text import parse_model
from sardonyx.provider import HOST, Body, Bound, Capability, Claims, GraphView, Layout, Memory, Partition, Program
from sardonyx.providers.reference.program import ReferenceProgram

ERROR = 1e-2
"""What is added to the first output."""


class PlantedProvider:
    """Runs the nodes of some names by the reference kernels, and adds an error to what they make: each alone, or all as one unit."""

    preferred_layout = Layout.NCHW
    memory: Memory = HOST

    def __init__(self, *names: str, fused: bool = False, name: str = "Planted") -> None:
        self.name, self._names, self._fused = name, names, fused

    def capabilities(self, view: GraphView) -> Claims:
        mine = tuple(node for node in view.nodes if node.name in self._names)
        if self._fused:
            return Claims([Capability(mine, fused=True, name="planted")] if len(mine) == len(self._names) else [])
        return Claims([Capability((node,)) for node in mine])

    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> Program:
        return _Wrong(ReferenceProgram(partition.nodes, partition.inputs, partition.constants, partition.outputs, bodies))


class _Wrong:
    makes_outputs = True

    def __init__(self, inner: ReferenceProgram) -> None:
        self._inner = inner

    def bind(self, shapes: tuple[tuple[int, ...] | None, ...]) -> Bound:
        return self._inner.bind(shapes)

    def run(self, bound: Any, inputs: Sequence[Any], outputs: Sequence[Any], scratch: Any) -> list[Any]:
        first, *others = self._inner.run(bound, inputs, outputs, scratch)
        return [np.asarray(first + np.asarray(ERROR, first.dtype)), *others]


def chain(layers: int, gain: float = 1.0, width: int = 8) -> Model:
    """A chain of MatMul, Add and Tanh, three nodes a layer, named after operator and layer; `gain` scales each layer."""
    lines, value = [], "x"
    for layer in range(layers):
        lines += [
            f"w{layer}: float[{width}, {width}] = ... {layer}",
            f"b{layer}: float[{width}] = ... {layer + 1}",
            f"p{layer} = MatMul({value}, w{layer}) @MatMul{layer}",
            f"s{layer} = Add(p{layer}, b{layer}) @Add{layer}",
            f"r{layer} = Tanh(s{layer}) @Tanh{layer}",
        ]
        value = f"r{layer}"
    body = "\n".join(lines)
    made = parse_model(f"ir_version 10\nopset 21\ngraph main(x: float[n, {width}]) -> ({value}: float[n, {width}]) {{\n{body}\n}}")
    for weight in made.graph.initializers.values():
        if weight.constant is not None and weight.name.startswith("w"):
            array = weight.constant.numpy() * np.float32(gain / width**0.5)
            weight.constant = Tensor.from_array(array, weight.name)
    return made


def rows(count: int = 4, width: int = 8) -> dict[str, Any]:
    """A feed of `chain`."""
    return {"x": np.random.default_rng(0).standard_normal((count, width)).astype(np.float32)}
