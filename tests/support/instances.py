"""Random instances of operators: the node cases of the suite with other numbers in them, and in other types.

A case says which attributes, shapes and index inputs belong together; what is drawn anew is data. Floating-point data comes in
several kinds (moderate, of all magnitudes, with infinities and NaN, small integers with ties); integers are shuffled, so that
indices stay where they may be; inputs that say how rather than what (axes, scales, sizes …) stay as they are.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper
from support.backend_suite import SuiteCase, cases_of

from sardonyx.dtypes import DataType, is_float

__all__ = ["RandomInstance", "random_instances"]

_HOW = (
    "scale size shape split pads axes axis repeat start limit delta end step depth roi ratio k max_output target label len "
    "zero_point seed trip cond mode length"
).split()
"""Parts of the names of inputs that stay as they are."""
_NEWEST_FOR_PEERS = 26
"""The opset that the peers read; an operator whose version is newer stays at its own."""
_DRAWING = {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
_WIDE = tuple(f"tensor({name})" for name in "float double float16 bfloat16 int32 int64 uint8".split())


@dataclasses.dataclass(frozen=True, slots=True)
class RandomInstance:
    """A model of one node with inputs."""

    operator: str
    """The operator."""
    name: str
    """The case, and which draw of it."""
    model: Any
    """The ModelProto; Any as protobuf's messages are."""
    feed: dict[str, Any]
    """The inputs by name."""
    shared: dict[str, str] = dataclasses.field(default_factory=dict)
    """Inputs that onnxruntime writes to and takes only so, and the outputs that they become."""


def random_instances(draws: int, only: str = "") -> Iterator[RandomInstance]:
    """`draws` instances of each case of one node whose name contains `only`; the case's name decides which."""
    for case in cases_of("node"):
        if only not in case.name or "_expanded" in case.name:
            continue
        (node, *others) = case.proto.graph.node
        if others or node.op_type in _DRAWING or node.domain.endswith("training"):
            continue
        for number in range(draws):
            generator = np.random.default_rng(zlib.crc32(f"{case.name} {number}".encode()))
            yield _instance(case, node, generator, number)


def _instance(case: SuiteCase, node: Any, generator: np.random.Generator, number: int) -> RandomInstance:
    proto = onnx.ModelProto.FromString(case.proto.SerializeToString())
    names = [item.name for item in proto.graph.input]
    arrays = dict(zip(names, case.data_sets[0][0], strict=False))
    schema = _schema(proto, node)
    if schema is not None and number % 2 == 1:
        _retype(proto, node, schema, arrays, generator)
    feed = {name: _drawn(name, array, generator) for name, array in arrays.items()}
    _lower_opset(proto, node, schema)
    return RandomInstance(node.op_type, f"{case.name} {number}", proto, feed)


def _schema(proto: Any, node: Any) -> Any:
    versions = {"" if item.domain == "ai.onnx" else item.domain: item.version for item in proto.opset_import}
    return onnx.defs.get_schema(node.op_type, versions[node.domain], node.domain)


def _lower_opset(proto: Any, node: Any, schema: Any) -> None:
    """Read the node under an opset that the peers know, where its version allows."""
    for item in proto.opset_import:
        if item.domain in ("", "ai.onnx") and item.version > _NEWEST_FOR_PEERS:
            own = schema.since_version if node.domain in ("", "ai.onnx") else 1
            item.version = max(own, _NEWEST_FOR_PEERS)
    proto.ir_version = min(proto.ir_version, 11)


def _retype(proto: Any, node: Any, schema: Any, arrays: dict[str, Any], generator: np.random.Generator) -> None:
    """Give the inputs of one type variable another type that the schema lists; changes `proto` and `arrays`."""
    formals = [formal.type_str for formal in schema.inputs]
    variables = [formals[min(index, len(formals) - 1)] for index in range(len(node.input))] if formals else []
    constraints = {item.type_param_str: list(item.allowed_type_strs) for item in schema.type_constraints}
    taken = [name for name, variable in zip(node.input, variables, strict=False) if name and variable == variables[0]]
    choices = [text for text in constraints.get(variables[0] if variables else "", ()) if text in _WIDE]
    is_numeric = all(isinstance(arrays.get(name), np.ndarray) and arrays[name].dtype.kind in "fiu" for name in taken)
    if not choices or not is_numeric or not all(name in arrays for name in taken):
        return
    dtype = DataType.parse(choices[int(generator.integers(len(choices)))].removeprefix("tensor(").removesuffix(")"))
    for item in proto.graph.input:
        if item.name in taken:
            with np.errstate(all="ignore"):
                arrays[item.name] = np.abs(arrays[item.name]).astype(dtype.numpy)
            item.type.tensor_type.elem_type = int(dtype)
    results = [item.name for item in proto.graph.output]
    del proto.graph.output[:]
    proto.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in results)


def _drawn(name: str, array: Any, generator: np.random.Generator) -> Any:
    """Data anew in the shape and type of `array`, or `array` itself where it says how."""
    if not isinstance(array, np.ndarray) or array.size < 2 or array.dtype.kind in "OU" or _says_how(name):
        return array
    dtype = DataType.from_numpy(array.dtype)
    if dtype is DataType.BOOL:
        return generator.random(array.shape) < 0.5
    if is_float(dtype):
        return _floats(array.shape, generator, least=0.0 if (array.astype(np.float32) >= 0).all() else None).astype(array.dtype)
    return generator.permutation(array.reshape(-1)).reshape(array.shape)


def _says_how(name: str) -> bool:
    return any(name == word or (len(word) > 2 and word in name.lower()) for word in _HOW)


def _floats(shape: Sequence[int], generator: np.random.Generator, least: float | None) -> Any:
    """Numbers of one of four kinds; none below `least`."""
    numbers = generator.standard_normal(tuple(shape)) * 3
    kind = int(generator.integers(4))
    if kind == 1:
        numbers *= 10.0 ** generator.uniform(-3, 3, tuple(shape))
    elif kind == 2:
        special = generator.choice([np.nan, np.inf, -np.inf, -0.0, 0.0], tuple(shape))
        numbers = np.where(generator.random(tuple(shape)) < 0.2, special, numbers)
    elif kind == 3:
        numbers = np.rint(numbers)
    return numbers if least is None else np.where(numbers < least, -numbers, numbers)
