"""TensorFlow Lite and Circle models written by hand, tensor by tensor.

sketch = Sketch()
x, y = sketch.input((1, 2)), sketch.tensor((1, 2))
sketch.operator("RELU6", [x], [y])
data = sketch.model([y])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.formats.flat.schema import Schema
from sardonyx.formats.flat.schema_tflite import TFLITE
from sardonyx.formats.flat.writer import write

KINDS = {
    "float32": "FLOAT32",
    "float16": "FLOAT16",
    "float64": "FLOAT64",
    "int8": "INT8",
    "uint8": "UINT8",
    "int16": "INT16",
    "uint16": "UINT16",
    "int32": "INT32",
    "uint32": "UINT32",
    "int64": "INT64",
    "uint64": "UINT64",
    "bool": "BOOL",
    "complex64": "COMPLEX64",
    "object": "STRING",
}
Scale = tuple[Any, Any] | tuple[Any, Any, int] | None


class Sketch:
    """A model that is being written; subgraph 0 to begin with."""

    def __init__(self, schema: Schema = TFLITE) -> None:
        """Begin a model of a schema."""
        self.schema = schema
        self.buffers: list[dict[str, Any]] = [{}]
        self.codes: list[dict[str, Any]] = []
        self.subgraphs: list[dict[str, Any]] = []
        self.extra: dict[str, Any] = {}
        self.begin("main")

    def begin(self, name: str) -> int:
        """Begin a subgraph, to which all that follows belongs; returns its number."""
        self.subgraphs.append({"name": name, "tensors": [], "inputs": [], "outputs": [], "operators": []})
        return len(self.subgraphs) - 1

    def tensor(self, shape: Sequence[int], kind: str = "FLOAT32", scale: Scale = None, *, name: str = "", **fields: Any) -> int:
        """Add a tensor; the scale is (scales, zero points) or (scales, zero points, axis)."""
        graph = self.subgraphs[-1]
        index = len(graph["tensors"])
        found: dict[str, Any] = {"shape": list(shape), "type": kind, "name": name or f"t{index}", "has_rank": True, **fields}
        if scale is not None:
            found["quantization"] = {
                "scale": np.atleast_1d(np.asarray(scale[0], np.float32)),
                "zero_point": np.atleast_1d(np.asarray(scale[1], np.int64)),
                "quantized_dimension": scale[2] if len(scale) > 2 else 0,
            }
        graph["tensors"].append(found)
        return index

    def input(self, shape: Sequence[int], kind: str = "FLOAT32", scale: Scale = None, **fields: Any) -> int:
        """Add a tensor that is an input."""
        index = self.tensor(shape, kind, scale, **fields)
        self.subgraphs[-1]["inputs"].append(index)
        return index

    def constant(
        self, array: Any, scale: Scale = None, *, kind: str = "", shape: Sequence[int] | None = None, **fields: Any
    ) -> int:
        """Add a tensor with elements; `kind` and `shape` are the array's where they are not given."""
        data = np.asarray(array)
        found = kind or KINDS[data.dtype.name]
        raw = packed_strings(data) if found == "STRING" else data.tobytes()
        self.buffers.append({"data": raw})
        return self.tensor(data.shape if shape is None else shape, found, scale, buffer=len(self.buffers) - 1, **fields)

    def operator(
        self,
        code: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        options: tuple[str, Mapping[str, Any]] | None = None,
        *,
        version: int = 1,
        **fields: Any,
    ) -> None:
        """Add an operator; a code that the schema lacks is a custom one."""
        number = self.schema.codes("BuiltinOperator").get(code)
        entry: dict[str, Any] = {"version": version}
        if number is None:
            entry |= {"custom_code": code, "builtin_code": "CUSTOM", "deprecated_builtin_code": 32}
        else:
            entry |= {"builtin_code": number, "deprecated_builtin_code": min(number, 127) if number >= 0 else 127}
        if entry not in self.codes:
            self.codes.append(entry)
        found: dict[str, Any] = {
            "opcode_index": self.codes.index(entry),
            "inputs": list(inputs),
            "outputs": list(outputs),
            **fields,
        }
        if options is not None:
            second = options[0] in self.schema.codes("BuiltinOptions2")
            found["builtin_options_2" if second else "builtin_options"] = options
        self.subgraphs[-1]["operators"].append(found)

    def outputs(self, *indices: int) -> None:
        """Say what the subgraph gives out."""
        self.subgraphs[-1]["outputs"] += list(indices)

    def model(self, outputs: Sequence[int] = ()) -> bytes:
        """Return the file, with these outputs of the last subgraph."""
        self.outputs(*outputs)
        root = {"version": 3, "operator_codes": self.codes, "subgraphs": self.subgraphs, "buffers": self.buffers, **self.extra}
        return write(self.schema, root)


def packed_strings(array: Array) -> bytes:
    """Return a buffer of strings: their number, where each begins and the last ends, and their characters."""
    texts = [text.encode() if isinstance(text, str) else bytes(text) for text in array.reshape(-1)]
    start = 4 * (len(texts) + 2)
    ends = np.cumsum([start, *map(len, texts)])
    return np.array([len(texts), *ends], "<i4").tobytes() + b"".join(texts)


def one(
    code: str, inputs: Sequence[Any], output: tuple[Sequence[int], str], options: tuple[str, Mapping[str, Any]] | None = None
) -> bytes:
    """Return a model of one operator; inputs are arrays for constants, or (shape, kind) or (shape, kind, scale)."""
    sketch = Sketch()
    indices = [
        sketch.constant(item) if isinstance(item, np.ndarray) else -1 if item is None else sketch.input(*item) for item in inputs
    ]
    made = sketch.tensor(*output)
    sketch.operator(code, indices, [made], options)
    return sketch.model([made])
