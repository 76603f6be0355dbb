"""Further nodes by rule from those of `operator_instances.py`: each type of the schema, other shapes, other attributes.

Not every one is valid; which are shows when an engine makes a session of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx.defs
from operator_draws import ML, Draw, Instance, ints

from sardonyx.dtypes import DataType

__all__ = ["reattributed", "reshaped", "typed"]

_SQUARES = (1000, 1000)
_SHAPES = ((1000000,), (250000, 4), (4, 250000), (1429, 700), (77, 13007), (100, 100, 100), (20, 50, 1000), (10, 100, 10, 10, 10))
_IMAGES = (1, 16, 256, 256)
_IMAGE_SHAPES = ((16, 16, 64, 64), (1, 256, 64, 64), (1, 3, 591, 591), (4, 1000, 16, 16), (2, 37, 119, 113), (256, 256, 4, 4))
_AXES = {
    "Concat": (0, 1),
    "Split": (0, 1),
    "Compress": (0, 1),
    "Gather": (0, 1),
    "GatherElements": (0, 1),
    "ScatterElements": (0, 1),
    "Flatten": (0, 2),
}
_AXES.update(dict.fromkeys("Softmax LogSoftmax Hardmax ArgMax ArgMin LpNormalization LayerNormalization TopK".split(), (0, 1)))
_POOL: list[dict[str, Any]] = [
    {"kernel_shape": [3, 3], "strides": [1, 1], "pads": [1, 1, 1, 1]},
    {"kernel_shape": [2, 2], "strides": [2, 2]},
    {"kernel_shape": [5, 3], "strides": [1, 2], "pads": [2, 0, 2, 2], "ceil_mode": 1},
    {"kernel_shape": [3, 3], "dilations": [2, 2]},
    {"kernel_shape": [3, 3], "strides": [3, 3], "auto_pad": "SAME_LOWER"},
    {"kernel_shape": [7, 7], "strides": [7, 7]},
    {"kernel_shape": [16, 16], "strides": [16, 16]},
]
_RESIZE: list[dict[str, Any]] = [
    {"mode": mode, "coordinate_transformation_mode": places, **more}
    for mode, more in (("nearest", {"nearest_mode": "floor"}), ("linear", {}), ("cubic", {}), ("linear", {"antialias": 1}))
    for places in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
]
_CONV: list[dict[str, Any]] = [
    {"strides": [2, 2], "pads": [1, 1, 1, 1]},
    {"dilations": [2, 2], "pads": [2, 2, 2, 2]},
    {"auto_pad": "SAME_UPPER"},
    {"pads": [0, 1, 2, 0]},
]
_ATTRIBUTES: dict[str, list[dict[str, Any]]] = {
    "Conv": _CONV,
    "QLinearConv": _CONV,
    "ConvInteger": _CONV,
    "ConvTranspose": [{}, {"strides": [2, 2]}, {"strides": [3, 2], "pads": [1, 0, 0, 1]}, {"dilations": [2, 2]}],
    "MaxPool": _POOL,
    "AveragePool": [*_POOL, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}],
    "LpPool": [*_POOL[:4], {"kernel_shape": [3, 3], "p": 1}, {"kernel_shape": [3, 3], "p": 3}],
    "Resize": _RESIZE,
    "GridSample": [
        {"mode": mode, "padding_mode": padding, "align_corners": corners}
        for mode in ("nearest", "linear", "cubic")
        for padding in ("zeros", "border", "reflection")
        for corners in (0, 1)
    ],
    "Pad": [{"mode": mode} for mode in ("constant", "edge", "reflect", "wrap")],
    "TopK": [{"largest": 0}, {"sorted": 0}],
    "ArgMax": [{"select_last_index": 1, "axis": 1}, {"keepdims": 0, "axis": 0}],
    "ArgMin": [{"select_last_index": 1, "axis": 1}, {"keepdims": 0, "axis": 0}],
    "CumSum": [{"exclusive": 1}, {"reverse": 1}],
    "CumProd": [{"exclusive": 1}, {"reverse": 1}],
    "ScatterElements": [{"axis": axis, "reduction": name} for axis in (0, 1) for name in ("none", "add", "mul", "max", "min")],
    "ScatterND": [{"reduction": name} for name in ("none", "add", "mul", "max", "min")],
    "Trilu": [{"upper": 0}],
    "DepthToSpace": [{"blocksize": 2, "mode": "CRD"}, {"blocksize": 2, "mode": "DCR"}],
    "SpaceToDepth": [{"blocksize": 2}],
    "LpNormalization": [{"p": 1}, {"p": 2, "axis": 0}],
    "LRN": [{"size": 3}, {"size": 9}],
    "MeanVarianceNormalization": [{"axes": [0, 1, 2, 3]}, {"axes": [1]}, {"axes": [2, 3]}],
    "Unique": [{"sorted": 0}],
    "ReverseSequence": [{"time_axis": 1, "batch_axis": 0}],
    "LSTM": [
        {"hidden_size": 256, "activations": ["Sigmoid", "Relu", "Tanh"]},
        {"hidden_size": 256, "clip": 1.0},
        {"hidden_size": 256, "direction": "reverse"},
    ],
    "GRU": [{"hidden_size": 256, "activations": ["HardSigmoid", "Tanh"]}, {"hidden_size": 256, "direction": "reverse"}],
    "RNN": [{"hidden_size": 256, "activations": ["Relu"]}, {"hidden_size": 256, "clip": 1.0}],
    "QuantizeLinear": [{"axis": 0}],
    "Transpose": [],
}
_BROADCASTS = (
    ((1000, 1000), (1000, 1)),
    ((1000, 1), (1000,)),
    ((1000, 1000), (1,)),
    ((1000, 1000), ()),
    ((1000, 1000), (1000, 1000)),
    ((16, 16, 64, 64), (16, 1, 1)),
    ((16, 16, 64, 64), (16, 1, 64, 1)),
    ((250000, 4), (4,)),
    ((250000, 4), (250000, 1)),
    ((100, 1, 100), (100, 1)),
    ((64,), (16, 16, 64, 64)),
    ((1, 1000, 1000), (1000, 1, 1)),
    ((1000003,), (1000003,)),
)
_BROADCAST = frozenset(
    "Add Sub Mul Div Pow Mod Equal Greater GreaterOrEqual Less LessOrEqual Max Min Mean Sum And Or Xor BitShift BitwiseAnd".split()
)
_ORDERS = (
    ((1000, 1000), (1, 0)),
    ((100, 10000), (1, 0)),
    ((250000, 4), (1, 0)),
    ((3, 333333), (1, 0)),
    ((100, 100, 100), (0, 2, 1)),
    ((100, 100, 100), (1, 0, 2)),
    ((100, 100, 100), (2, 1, 0)),
    ((100, 100, 100), (2, 0, 1)),
    ((100, 100, 100), (1, 2, 0)),
    ((50, 20, 1000), (1, 0, 2)),
    ((1000, 7, 143), (0, 2, 1)),
    ((8, 128, 16, 64), (0, 2, 1, 3)),
    ((8, 128, 16, 64), (0, 2, 3, 1)),
    ((8, 16, 128, 64), (0, 1, 3, 2)),
    ((1, 3, 577, 577), (0, 2, 3, 1)),
    ((1, 577, 577, 3), (0, 3, 1, 2)),
    ((16, 16, 64, 64), (0, 3, 1, 2)),
    ((16, 16, 64, 64), (3, 2, 1, 0)),
    ((2, 8, 16, 4, 16, 64), (0, 2, 4, 3, 5, 1)),
    ((1, 16, 32, 2, 32, 32), (0, 1, 3, 5, 2, 4)),
    ((1000000, 1), (1, 0)),
    ((16, 5, 16, 9, 11, 8), (5, 3, 1, 4, 2, 0)),
)


def typed(instance: Instance) -> Iterator[tuple[str, Instance]]:
    """The instance in each tensor type that its schema allows for its first input, but for text."""
    if not onnx.defs.has(instance.op_type, instance.domain):
        yield "as written", instance
        return
    schema = onnx.defs.get_schema(instance.op_type, instance.version, instance.domain)
    if not schema.inputs:
        return
    formals = [*schema.inputs, *([schema.inputs[-1]] * len(instance.inputs))][: len(instance.inputs)]
    first = formals[0].type_str if formals else ""
    allowed = next((item.allowed_type_strs for item in schema.type_constraints if item.type_param_str == first), [])
    for text in sorted(allowed):
        name = text.removeprefix("tensor(").removesuffix(")")
        if not text.startswith("tensor(") or "complex" in name or name == "string":
            continue
        made = [
            _as_type(item, name) if formal.type_str == first else item
            for item, formal in zip(instance.inputs, formals, strict=True)
        ]
        yield name, dataclasses.replace(instance, inputs=tuple(made))


def _as_type(item: object, name: str) -> Any:
    if isinstance(item, Draw):
        return dataclasses.replace(item, dtype=name)
    return item.astype(DataType.parse(name).numpy) if isinstance(item, np.ndarray) else item


def reshaped(instance: Instance) -> Iterator[Instance]:
    """The instance with its squares, or its images, in other shapes of about as many elements; reductions along other axes."""
    if instance.op_type == "Transpose":
        for shape, order in _ORDERS:
            yield dataclasses.replace(_with_shape(instance, instance.inputs[0], shape), attributes={"perm": list(order)})
        return
    first = instance.inputs[0] if instance.inputs else None
    if instance.op_type in _BROADCAST and len(instance.inputs) == 2 and all(isinstance(item, Draw) for item in instance.inputs):
        for shapes in _BROADCASTS:
            drawn: Any = zip(instance.inputs, shapes, strict=True)
            yield dataclasses.replace(instance, inputs=tuple(dataclasses.replace(item, shape=shape) for item, shape in drawn))
        return
    if not isinstance(first, Draw) or first.shape not in (_SQUARES, _IMAGES):
        return
    for shape in _SHAPES if first.shape == _SQUARES else _IMAGE_SHAPES:
        made = _with_shape(instance, first, shape)
        if instance.op_type.startswith("Reduce"):
            yield from (dataclasses.replace(made, inputs=(made.inputs[0], ints(*axes))) for axes in _axes(len(shape)))
        elif instance.op_type in ("CumSum", "CumProd"):
            yield from (dataclasses.replace(made, inputs=(made.inputs[0], np.array(axis, np.int64))) for axis in range(len(shape)))
        elif instance.op_type in _AXES and instance.domain != ML:
            for axis in {0, len(shape) - 1, len(shape) // 2}:
                yield dataclasses.replace(made, attributes={**made.attributes, "axis": axis})
        else:
            yield made


def _axes(rank: int) -> Iterator[tuple[int, ...]]:
    yield from ((axis,) for axis in range(rank))
    if rank > 2:
        yield 0, rank - 1
        yield tuple(range(1, rank))
        yield tuple(range(rank - 1))


def _with_shape(instance: Instance, first: Any, shape: tuple[int, ...]) -> Instance:
    """The instance with every drawn input of the first's shape in another; rows that are broadcast to it have its last length."""
    inputs: list[Any] = []
    for item in instance.inputs:
        if isinstance(item, Draw) and item.shape == first.shape:
            inputs.append(dataclasses.replace(item, shape=shape))
        elif isinstance(item, Draw) and item.shape == first.shape[-1:]:
            inputs.append(dataclasses.replace(item, shape=shape[-1:]))
        elif isinstance(item, np.ndarray) and len(first.shape) == 4 and item.shape == first.shape[1:2]:
            inputs.append(np.resize(item, shape[1:2]))
        elif isinstance(item, np.ndarray) and len(first.shape) == 2 and item.shape == first.shape[-1:]:
            inputs.append(np.resize(item, shape[-1:]))
        else:
            inputs.append(item)
    return dataclasses.replace(instance, inputs=tuple(inputs))


def reattributed(instance: Instance) -> Iterator[Instance]:
    """The instance with other attributes of its operator."""
    if instance.domain:
        return
    for changes in _ATTRIBUTES.get(instance.op_type, ()):
        attributes = {name: value for name, value in instance.attributes.items() if name not in ("pads", "strides")}
        yield dataclasses.replace(instance, attributes={**attributes, **changes})
