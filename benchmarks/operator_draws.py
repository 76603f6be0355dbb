"""How the operator benchmark writes a node: inputs to draw, constants, and the model of one node that they make.

A node is written as `node("Add", floats(1000, 1000), floats(1000))`: drawn inputs are fed, arrays are constants of the model.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import onnx.parser
from onnx import TensorProto, helper

from sardonyx.dtypes import Array, DataType

__all__ = [
    "ML",
    "MS",
    "Draw",
    "Instance",
    "boxes",
    "codes",
    "floats",
    "forest",
    "graph",
    "ints",
    "newer_forest",
    "node",
    "one",
    "parts",
    "scaled_blocks",
    "text",
    "truths",
    "weights",
    "whole",
]

ML, MS = "ai.onnx.ml", "com.microsoft"


@dataclasses.dataclass(frozen=True)
class Draw:
    """An input that is drawn at random; a list of such where `count` is not 0."""

    shape: tuple[int, ...]
    dtype: str
    low: float
    high: float
    count: int = 0

    def make(self, generator: np.random.Generator) -> Any:
        """Draw it; Any as sequences and maps are inputs, too."""
        if self.count:
            return [dataclasses.replace(self, count=0).make(generator) for _ in range(self.count)]
        if self.dtype == "map":
            return {key: float(generator.standard_normal()) for key in range(self.shape[0])}
        if self.dtype == "string":
            numbers = generator.integers(0, int(self.high), self.shape).reshape(-1)
            return np.array([f"Word {number}" for number in numbers], object).reshape(self.shape)
        dtype = DataType.parse(self.dtype).numpy
        if np.dtype(dtype).kind in "biu":
            return generator.integers(int(self.low), int(self.high), self.shape).astype(dtype)
        return generator.uniform(self.low, self.high, self.shape).astype(dtype)

    def type_proto(self) -> Any:
        """The TypeProto of the input; Any as protobuf's messages are."""
        if self.dtype == "map":
            return helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
        tensor = helper.make_tensor_type_proto(int(DataType.parse(self.dtype)), self.shape)
        return helper.make_sequence_type_proto(tensor) if self.count else tensor


@dataclasses.dataclass(frozen=True)
class Instance:
    """A node, with its inputs."""

    op_type: str
    domain: str
    inputs: tuple[Draw | Array | None, ...]
    outputs: int
    version: int
    attributes: dict[str, Any]
    shared: dict[str, str]
    """Inputs that the operator writes to, and the outputs that they become."""

    def model(self) -> Any:
        """The ModelProto; Any as protobuf's messages are."""
        names = ["" if item is None else f"x{index}" for index, item in enumerate(self.inputs)]
        outputs = [f"y{index}" for index in range(self.outputs)]
        made = helper.make_node(self.op_type, names, outputs, domain=self.domain, **self.attributes)
        pairs = list(zip(names, self.inputs, strict=True))
        fed = [helper.make_value_info(name, item.type_proto()) for name, item in pairs if isinstance(item, Draw)]
        constants = [_constant(name, item) for name, item in pairs if isinstance(item, np.ndarray)]
        results = [helper.make_empty_tensor_value_info(name) for name in outputs]
        graph = helper.make_graph([made], "one", fed, results, constants)
        main = self.version if not self.domain else 21
        imports = [helper.make_opsetid("", main)]
        if self.domain:
            imports.append(helper.make_opsetid(self.domain, self.version))
        return helper.make_model(graph, opset_imports=imports, ir_version=11)

    def feed(self) -> dict[str, Any]:
        """The drawn inputs by name."""
        generator = np.random.default_rng(0)
        return {f"x{index}": item.make(generator) for index, item in enumerate(self.inputs) if isinstance(item, Draw)}


def _constant(name: str, array: Array) -> Any:
    if array.dtype == object:
        return helper.make_tensor(name, TensorProto.STRING, array.shape, [item.encode() for item in array.reshape(-1)])
    kind = int(DataType.from_numpy(array.dtype))
    return helper.make_tensor(name, kind, array.shape, np.ascontiguousarray(array).tobytes(), raw=True)


def node(
    op_type: str,
    *inputs: Draw | Array | None,
    domain: str = "",
    outputs: int = 1,
    version: int = 0,
    shared: dict[str, str] | None = None,
    **attributes: Any,
) -> Instance:
    """An operator on inputs, at the newest opset that both know unless told."""
    newest = {"": 25, ML: 3, MS: 1}[domain]
    return Instance(op_type, domain, inputs, outputs, version or newest, attributes, shared or {})


def floats(*shape: int, low: float = -1.0, high: float = 1.0, dtype: str = "float") -> Draw:
    """Floating numbers, uniform in [low, high)."""
    return Draw(shape, dtype, low, high)


def whole(*shape: int, low: int = 0, high: int = 100, dtype: str = "int64") -> Draw:
    """Whole numbers, uniform in [low, high)."""
    return Draw(shape, dtype, low, high)


def truths(*shape: int) -> Draw:
    """True and false."""
    return Draw(shape, "bool", 0, 2)


def text(*shape: int, kinds: int = 1000) -> Draw:
    """Words, that many different ones."""
    return Draw(shape, "string", 0, kinds)


def parts(count: int, *shape: int) -> Draw:
    """A sequence of float tensors."""
    return Draw(shape, "float", -1, 1, count)


def weights(*shape: int, scale: float = 0.05, dtype: str = "float") -> Array:
    """Constant floating numbers."""
    return (np.random.default_rng(2).standard_normal(shape) * scale).astype(DataType.parse(dtype).numpy)


def codes(*shape: int, low: int = 0, high: int = 256, dtype: str = "uint8") -> Array:
    """Constant whole numbers."""
    return np.random.default_rng(3).integers(low, high, shape).astype(dtype)


def scaled_blocks(count: int) -> Array:
    """Constant blocks of 4-bit weights as MatMulFpQ4 has them: a float32 scale, then 16 bytes. Random scales would be subnormal."""
    scales = np.random.default_rng(5).uniform(0.01, 0.02, (count, 1)).astype("<f4").view(np.uint8)
    return np.concatenate([scales, codes(count, 16)], axis=1).reshape(-1)


def boxes(count: int, **first: int) -> Array:
    """Constant boxes of half an image of 128 x 128, one pixel further each; with a batch number before them where one is given."""
    return np.array([[*first.values(), x, x, 64 + x, 64 + x] for x in range(count)], np.float32)


def ints(*numbers: int) -> Array:
    """A constant int64 vector."""
    return np.array(numbers, np.int64)


def one(number: float, dtype: str = "float32") -> Array:
    """A constant scalar."""
    return np.array(number, dtype)


def forest(kind: str, trees: int, depth: int) -> dict[str, Any]:
    """Attributes of a forest of full trees on 100 features; `kind` is target or class."""
    inner, every = (1 << depth) - 1, (1 << depth + 1) - 1
    generator = np.random.default_rng(4)
    number = np.tile(np.arange(every), trees)
    tree = np.repeat(np.arange(trees), every)
    is_leaf = number >= inner
    leaves = int(is_leaf.sum())
    return {
        "nodes_treeids": tree.tolist(),
        "nodes_nodeids": number.tolist(),
        "nodes_featureids": generator.integers(0, 100, number.size).tolist(),
        "nodes_values": generator.uniform(-1, 1, number.size).tolist(),
        "nodes_modes": ["LEAF" if leaf else "BRANCH_LEQ" for leaf in is_leaf],
        "nodes_truenodeids": np.where(is_leaf, 0, 2 * number + 1).tolist(),
        "nodes_falsenodeids": np.where(is_leaf, 0, 2 * number + 2).tolist(),
        f"{kind}_treeids": tree[is_leaf].tolist(),
        f"{kind}_nodeids": number[is_leaf].tolist(),
        f"{kind}_ids": (np.arange(leaves) % 3 if kind == "class" else np.zeros(leaves, int)).tolist(),
        f"{kind}_weights": generator.uniform(-1, 1, leaves).tolist(),
        **({"n_targets": 1} if kind == "target" else {}),
    }


def newer_forest(trees: int, depth: int) -> dict[str, Any]:
    """The attributes of the same forest for TreeEnsemble."""
    inner, leaves = (1 << depth) - 1, 1 << depth
    generator = np.random.default_rng(4)
    number = np.tile(np.arange(inner), trees)
    tree = np.repeat(np.arange(trees), inner)
    is_last = 2 * number + 1 >= inner
    child = 2 * number + 1
    true = np.where(is_last, tree * leaves + child - inner, tree * inner + child)
    return {
        "tree_roots": (np.arange(trees) * inner).tolist(),
        "nodes_modes": _tensor(np.zeros(number.size, np.uint8)),
        "nodes_featureids": generator.integers(0, 100, number.size).tolist(),
        "nodes_splits": _tensor(generator.uniform(-1, 1, number.size).astype(np.float32)),
        "nodes_truenodeids": true.tolist(),
        "nodes_trueleafs": is_last.astype(int).tolist(),
        "nodes_falsenodeids": (true + 1).tolist(),
        "nodes_falseleafs": is_last.astype(int).tolist(),
        "leaf_targetids": [0] * (trees * leaves),
        "leaf_weights": _tensor(generator.uniform(-1, 1, trees * leaves).astype(np.float32)),
        "n_targets": 1,
        "aggregate_function": 1,
    }


def _tensor(array: Array) -> Any:
    return _constant("", array)


def graph(text: str) -> Any:
    """A subgraph from the text form of ONNX; Any as protobuf's messages are."""
    return onnx.parser.parse_graph(text)
