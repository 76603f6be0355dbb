"""Models that are mutated: the standard's own cases, which have every operator, and windows of networks.

A window is a few nodes of a network, one after another, whose open inputs become inputs of a graph of their own, of small sizes.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper
from support.backend_suite import SuiteCase, cases_of
from support.contrib_cases import contrib_cases
from support.light_model import read_light
from support.models import model

from sardonyx.formats.onnx import to_bytes

__all__ = ["Seed", "standard_seeds", "windows"]

_MOST_BYTES = 200_000
_MOST_ELEMENTS = 1 << 16
_WINDOW_NODES = 8
_WINDOWS_PER_MODEL = 24


@dataclasses.dataclass(frozen=True, slots=True)
class Seed:
    """A model that can be run."""

    name: str
    """Where it comes from."""
    content: bytes
    """A serialized ModelProto."""
    feeds: Mapping[str, Any]
    """An input for each name."""


@functools.cache
def standard_seeds() -> tuple[Seed, ...]:
    """The node cases of `onnx.backend.test` and its small models, a case of each operator that it lacks: all operators."""
    suite = [*cases_of("node"), *cases_of("simple"), *cases_of("pytorch-operator"), *contrib_cases()]
    return (*_from_suite(suite), *map(_from_text, _OTHERS))


_OTHERS = (
    "7: graph(x: float[2, 3]) -> (y) {\ny = Affine(x) {alpha = 2.0, beta = 0.5}\n}",
    "7: graph(x: float[1, 2, 4, 5]) -> (y) {\ny = Crop(x) {border = [1, 1, 1, 1]}\n}",
    "9: graph(x: float[3, 4], a: int64[2], b: int64[2]) -> (y) {\ny = DynamicSlice(x, a, b)\n}",
    "21: graph(x: float[1, 2, 3, 4]) -> (y) {\ny = GlobalLpPool(x) {p = 2}\n}",
    "7: graph(x: float[1, 2, 3, 4]) -> (y) {\ny = ImageScaler(x) {bias = [0.5, 1.5], scale = 2.0}\n}",
    "21: graph(x: float[1, 2, 6, 6], r: float[2, 5]) -> (y) {\ny = MaxRoiPool(x, r) {pooled_shape = [2, 2]}\n}",
    "21: graph(x: float[2, 3]) -> (y) {\ny = Multinomial(x) {sample_size = 4}\n}",
    "21: graph(x: float[2]) -> (y) {\no = Optional(x)\ny = OptionalGetElement(o)\n}",
    "7: graph(x: float[2, 3]) -> (y) {\ny = ParametricSoftplus(x) {alpha = 2.0, beta = 0.5}\n}",
    "21: graph(x: float[2]) -> (y) {\nr = RandomNormal() {shape = [2]}\ny = Add(x, r)\n}",
    "21: graph(x: float[2]) -> (y) {\nr = RandomNormalLike(x)\ny = Add(x, r)\n}",
    "21: graph(x: float[2]) -> (y) {\nr = RandomUniform() {shape = [2]}\ny = Add(x, r)\n}",
    "7: graph(x: float[2, 3]) -> (y) {\ny = Scale(x) {scale = 2.0}\n}",
    "7: graph(x: float[2, 3]) -> (y) {\ny = ScaledTanh(x) {alpha = 2.0, beta = 0.5}\n}",
    "21: graph(x: float[2, 3], i: int64[]) -> (y) {\ns = SequenceConstruct(x, x)\ny = SequenceAt(s, i)\n}",
    "21: graph(x: float[2, 3], i: int64[]) -> (y) {\ns = SequenceConstruct(x, x)\ny = SequenceErase(s, i)\n}",
    "21: graph(x: float[2, 3], w: float[3]) -> (y) {\ny = SimplifiedLayerNormalization(x, w)\n}",
    "9: graph(x: float[1, 1, 2, 2], s: float[4]) -> (y) {\ny = Upsample(x, s)\n}",
    "9: graph(x: float[2, 3], i: int64[1, 3], u: float[1, 3]) -> (y) {\ny = Scatter(x, i, u)\n}",
)
"""Operators that no case has, each as an opset and a graph in the text form."""


def _from_text(text: str) -> Seed:
    opset, _, graph = text.partition(": ")
    held = model(graph, opset=int(opset))
    feeds = {}
    for value in held.graph.inputs:
        shape = tuple(dim if isinstance(dim, int) else 2 for dim in value.shape or ())
        assert value.dtype is not None
        feeds[value.name] = np.ones(shape, value.dtype.numpy)
    return Seed(graph.split(" = ")[-1].partition("(")[0], to_bytes(held), feeds)


def _from_suite(cases: Sequence[SuiteCase]) -> Iterator[Seed]:
    for case in cases:
        proto, inputs = case.proto, case.data_sets[0][0]
        content = proto.SerializeToString()
        names = [value.name for value in proto.graph.input]
        if len(content) <= _MOST_BYTES and len(names) == len(inputs) and all(map(_is_small, inputs)):
            yield Seed(case.name, content, dict(zip(names, inputs, strict=True)))


def _is_small(value: Any) -> bool:
    return not isinstance(value, np.ndarray) or value.size <= _MOST_ELEMENTS


@functools.cache
def windows(folder: Path) -> tuple[Seed, ...]:
    """Windows of the models in `folder`, which may lack their weights; none where there is no such folder."""
    found: list[Seed] = []
    for path in sorted(folder.glob("*.onnx")) if folder.is_dir() else []:
        if os.path.getsize(path) <= 8 << 20:
            found.extend(_windows_of(path))
    return tuple(found)


def _windows_of(path: Path) -> Iterator[Seed]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = onnx.shape_inference.infer_shapes(read_light(path))
        except Exception:  # noqa: BLE001  a model that the standard's inference cannot read is no seed
            return
    graph = model.graph
    types = {value.name: value for value in [*graph.input, *graph.value_info, *graph.output]}
    constants = {tensor.name: tensor for tensor in graph.initializer}
    step = max(1, len(graph.node) // _WINDOWS_PER_MODEL)
    for begin in range(0, len(graph.node), step):
        made = _window(graph.node[begin : begin + 2 + begin % _WINDOW_NODES], types, constants, model)
        if made is not None:
            yield Seed(f"{path.stem}:{begin}", *made)


def _window(
    nodes: Sequence[Any], types: Mapping[str, Any], constants: Mapping[str, Any], model: Any
) -> tuple[bytes, dict[str, Any]] | None:
    """The model of some nodes, with feeds; None where a type is not known or a tensor is large."""
    if any(attribute.HasField("g") for node in nodes for attribute in node.attribute):
        return None
    made = {name for node in nodes for name in node.output if name}
    read = dict.fromkeys(name for node in nodes for name in node.input if name)
    used = {name for node in nodes for name in node.input}
    inputs, feeds = [], {}
    for name in read:
        if name in made or name in constants:
            continue
        array = _filled(types.get(name))
        if array is None:
            return None
        inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
        feeds[name] = array
    last = [name for name in made if name not in used] or sorted(made)[-1:]
    outputs = [onnx.ValueInfoProto(name=name) for name in sorted(last)]
    kept = [constants[name] for name in read if name in constants]
    graph = helper.make_graph(list(nodes), "window", inputs, outputs, kept)
    window = helper.make_model(
        graph, opset_imports=model.opset_import, functions=model.functions, ir_version=min(model.ir_version, 10)
    )
    content = window.SerializeToString()
    return (content, feeds) if len(content) <= _MOST_BYTES else None


def _filled(value: Any) -> Any:
    """An array of the declared type, with 2 for each open dimension; None where the type is unknown, or the array large."""
    if value is None or not value.type.HasField("tensor_type") or not value.type.tensor_type.elem_type:
        return None
    kind = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
    shape = [dim.dim_value if dim.HasField("dim_value") else 2 for dim in value.type.tensor_type.shape.dim]
    if math.prod(shape) > _MOST_ELEMENTS or kind.kind not in "fiub":
        return None
    generator = np.random.default_rng(len(value.name))
    if kind.kind == "f":
        return generator.standard_normal(shape).astype(kind)
    return generator.integers(0, 2, shape).astype(kind)
