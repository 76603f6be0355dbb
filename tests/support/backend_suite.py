"""The whole suite of onnx.backend.test as data: what the package generates and what it carries as files.

Collecting takes seconds, so each process does it once.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from sardonyx.dtypes import DataType

__all__ = ["KINDS", "SuiteCase", "array_of", "cases_of", "generated_cases", "read_case", "read_cases"]

KINDS = ("node", "model", "simple", "pytorch-converted", "pytorch-operator", "light")
"""What cases come from: generated node by node, generated models, files of three kinds, and networks with constant weights."""
DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
"""The files that the package carries."""


@dataclasses.dataclass(frozen=True, slots=True)
class SuiteCase:
    """One model with its sets of inputs and expected outputs."""

    kind: str
    """One of KINDS, or the name of the folder that it was read from."""
    name: str
    """The case's name, unique in its kind."""
    model: Any
    """The ModelProto, or the path of a model's file; Any as protobuf's messages are."""
    data_sets: tuple[tuple[tuple[Any, ...], tuple[Any, ...]], ...]
    """Pairs of inputs, in the order of the model's, and expected outputs; arrays, lists, dicts or None by their ONNX type."""
    rtol: float = 1e-3
    """The relative error that the suite allows."""
    atol: float = 1e-7
    """The absolute error that the suite allows."""

    @property
    def proto(self) -> Any:
        """The ModelProto; Any as protobuf's messages are."""
        return onnx.load(str(self.model), load_external_data=False) if isinstance(self.model, Path) else self.model

    @property
    def operators(self) -> frozenset[str]:
        """The operators of the model, those of its subgraphs and functions included."""
        model = self.proto
        return frozenset({*_operators(model.graph.node), *(name for item in model.functions for name in _operators(item.node))})


@functools.cache
def cases_of(kind: str) -> tuple[SuiteCase, ...]:
    """Every case of one of KINDS, by name."""
    if kind in ("node", "model"):
        return tuple(case for case in generated_cases() if case.kind == kind)
    if kind == "light":
        return tuple(_light_case(folder) for folder in sorted((DATA / "real").iterdir()) if folder.is_dir())
    return tuple(read_cases(DATA / kind))


@functools.cache
def generated_cases() -> tuple[SuiteCase, ...]:
    """The node cases, function bodies written out included, and the models that the package builds, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.model import collect_testcases as collect_models
        from onnx.backend.test.case.node import collect_testcases as collect_nodes

        found = [("node", case) for case in collect_nodes(None)]
        found += [("model", case) for case in collect_models() if case.kind == "simple"]
    made = [
        SuiteCase(kind, case.name, case.model, tuple((_arrays(a), _arrays(b)) for a, b in case.data_sets), case.rtol, case.atol)
        for kind, case in found
    ]
    return tuple(sorted(made, key=lambda case: (case.kind, case.name)))


def read_cases(folder: Path) -> Iterator[SuiteCase]:
    """The cases below `folder`, by name: every folder with a model and with data."""
    for path, folders, files in os.walk(folder):
        folders.sort()
        if "model.onnx" in files and any(name.startswith("test_data_set") for name in folders):
            yield read_case(Path(path), folder.name)
            folders.clear()


def read_case(folder: Path, kind: str) -> SuiteCase:
    """The case in `folder`: `model.onnx`, `test_data_set_*/input_*.pb` and `output_*.pb`, and perhaps `data.json`."""
    settings = json.loads((folder / "data.json").read_text()) if (folder / "data.json").is_file() else {}
    model = onnx.load(str(folder / "model.onnx"), load_external_data=False)
    data_sets = tuple(
        (_read_values(path, "input", model.graph.input), _read_values(path, "output", model.graph.output))
        for path in sorted(folder.glob("test_data_set_*"))
    )
    source = folder / "model.onnx" if any(item.data_location for item in model.graph.initializer) else model
    return SuiteCase(kind, folder.name, source, data_sets, settings.get("rtol", 1e-3), settings.get("atol", 1e-7))


def array_of(value: Any) -> Any:
    """A value of a case as a session gives it: tensors as arrays of their own dtype, texts as object arrays of str."""
    if isinstance(value, onnx.TensorProto):
        return _tensor(value)
    if isinstance(value, onnx.SparseTensorProto):
        return _tensor(value.values)
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        return _texts(array) if array.dtype.kind in "OUS" else array
    if isinstance(value, (list, tuple)):
        return [array_of(item) for item in value]
    return value


def _light_case(folder: Path) -> SuiteCase:
    """A network whose weights ConstantOfShape makes: its input counts from 0 to 1, its output lies beside it."""
    settings = json.loads((folder / "data.json").read_text())
    path = DATA / "light" / Path(settings["url"]).name
    model = onnx.load(str(path))
    given = {item.name for item in model.graph.initializer}
    inputs = [_ramp(item) for item in model.graph.input if item.name not in given]
    output = _read_value(path.with_name(f"{path.stem}_output_0.pb"), model.graph.output[0].type)
    return SuiteCase("light", folder.name, path, ((tuple(inputs), (output,)),), settings["rtol"], settings["atol"])


def _ramp(item: Any) -> Any:
    shape = [dim.dim_value if dim.HasField("dim_value") else 1 for dim in item.type.tensor_type.shape.dim]
    count = int(np.prod(shape))
    return (np.arange(count).reshape(shape) / count).astype(np.float32)


def _arrays(values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(array_of(value) for value in values)


def _tensor(proto: Any) -> Any:
    dtype = DataType(proto.data_type)
    if dtype is DataType.STRING:
        return _texts(np.array(list(proto.string_data), object).reshape(tuple(proto.dims)))
    array = numpy_helper.to_array(proto)
    return array if array.dtype == dtype.numpy else array.astype(dtype.numpy)


def _texts(array: Any) -> Any:
    texts = np.empty(array.size, object)
    texts[:] = [item.decode() if isinstance(item, bytes) else str(item) for item in array.ravel().tolist()]
    return texts.reshape(array.shape)


def _read_values(folder: Path, stem: str, formals: Sequence[Any]) -> tuple[Any, ...]:
    paths = sorted(folder.glob(f"{stem}_*.pb"), key=lambda path: int(path.stem.rsplit("_", 1)[1]))
    return tuple(_read_value(path, formal.type) for path, formal in zip(paths, formals, strict=False))


def _read_value(path: Path, type_proto: Any) -> Any:
    """A value as the model declares it; cases older than ml_dtypes hold bfloat16 as the uint16 of its bits."""
    content = path.read_bytes()
    if type_proto.HasField("sequence_type"):
        return array_of(numpy_helper.to_list(onnx.SequenceProto.FromString(content)))
    if type_proto.HasField("optional_type"):
        return array_of(numpy_helper.to_optional(onnx.OptionalProto.FromString(content)))
    if type_proto.HasField("map_type"):
        return numpy_helper.to_dict(onnx.MapProto.FromString(content))
    array = array_of(onnx.TensorProto.FromString(content))
    declared = DataType(type_proto.tensor_type.elem_type)
    is_bits = declared is DataType.BFLOAT16 and array.dtype == np.uint16
    return array.view(declared.numpy) if is_bits else array


def _operators(nodes: Sequence[Any]) -> Iterator[str]:
    for node in nodes:
        yield node.op_type
        for attribute in node.attribute:
            for graph in (*((attribute.g,) if attribute.HasField("g") else ()), *attribute.graphs):
                yield from _operators(graph.node)
