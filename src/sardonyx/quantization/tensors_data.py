"""What calibration found of tensors, and the files that keep it.

save_tensors_data(ranges, "ranges.json")            for `load_tensors_data`, and for onnxruntime's function of this name
write_calibration_table(ranges.data, "folder")      for TensorRT
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument, NoSuchFile
from sardonyx.formats.flat.schema import Schema
from sardonyx.formats.flat.writer import write
from sardonyx.quantization.kinds import CalibrationMethod

__all__ = [
    "CalibrationCacheEncoder",
    "TensorData",
    "TensorsData",
    "load_tensors_data",
    "save_tensors_data",
    "write_calibration_table",
]

_KNOWN = ("lowest", "highest", "avg", "std", "hist", "hist_edges", "bins")
_FLOATS = ("lowest", "highest", "avg", "std", "hist_edges")
_ARRAY = "numpy.array"
_TABLE = Schema(
    "TrtTable",
    b"",
    "TrtTable",
    enums={},
    unions={},
    structs={},
    tables={"TrtTable": "dict:[KeyValue]", "KeyValue": "key:string value:string"},
)
"""What TensorRT's provider reads. Source: onnxruntime's cal_table_flatbuffers schema."""


class TensorData:
    """What calibration found of one tensor."""

    def __init__(self, **found: Any) -> None:  # arrays, numbers and lists, by name
        """Note what was found.

        Args:
            found: `lowest` and `highest`, its range; `avg` and `std`; `hist`, `hist_edges` and `bins`, its histogram.

        Raises:
            InvalidArgument: something else is among them.
        """
        unknown = [name for name in found if name not in _KNOWN]
        if unknown:
            raise InvalidArgument(f"TensorData has {', '.join(_KNOWN)}; got {unknown[0]!r}")
        self._names = tuple(found)
        for name, value in found.items():
            setattr(self, name, np.asarray(value) if name in _FLOATS else value)

    @property
    def range_value(self) -> tuple[Array, Array]:
        """The least and the greatest value; raises AttributeError where they were not noted."""
        return self._pair("lowest", "highest")

    @property
    def avg_std(self) -> tuple[Array, Array]:
        """The mean and the standard deviation; raises AttributeError where they were not noted."""
        return self._pair("avg", "std")

    def _pair(self, first: str, second: str) -> tuple[Array, Array]:
        if first not in self._names or second not in self._names:
            raise AttributeError(f"calibration found no {first!r} and {second!r} of this tensor, but {', '.join(self._names)}")
        return getattr(self, first), getattr(self, second)

    def to_dict(self) -> dict[str, Any]:
        """Return what was found, by name, and `CLS`, the name of the class."""
        return {**{name: getattr(self, name) for name in self._names}, "CLS": "TensorData"}

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> TensorData:
        """Return what `to_dict` gave, also where JSON lay between; raises InvalidArgument as the constructor."""
        found = {name: _read_value(value) for name, value in d.items() if name != "CLS"}
        return cls(**{name: _as_float(value) if name in _FLOATS else value for name, value in found.items()})

    def __repr__(self) -> str:
        return f"TensorData({', '.join(f'{name}={getattr(self, name)}' for name in self._names)})"


class TensorsData(Mapping[str, TensorData]):
    """Tensor name -> what calibration found of it."""

    def __init__(self, calibration_method: CalibrationMethod, data: Mapping[str, TensorData | tuple[Any, ...]]) -> None:
        """Take what was found.

        Args:
            calibration_method: how ranges followed from values.
            data: for each tensor what was found, or (lowest, highest), or (lowest, highest, histogram, bins).

        Raises:
            InvalidArgument: a tuple has another length.
            TypeError: a name is no text, or something else was found.
        """
        self.calibration_method = calibration_method
        self.data = {name: _tensor_data(name, found) for name, found in data.items()}

    def __getitem__(self, name: str) -> TensorData:
        return self.data[name]

    def __setitem__(self, name: str, found: TensorData) -> None:
        """Replace what was found of a tensor; raises InvalidArgument for one that is not known."""
        if name not in self.data:
            raise InvalidArgument(f"Only an existing tensor can be modified, {name!r} is not.")
        self.data[name] = found

    def __iter__(self) -> Iterator[str]:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)

    def to_dict(self) -> dict[str, Any]:
        """Return what was found, the method, and `CLS`, the name of the class."""
        return {"CLS": "TensorsData", "data": self.data, "calibration_method": self.calibration_method}

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> TensorsData:
        """Return what `to_dict` gave, also where JSON lay between.

        Raises:
            InvalidArgument: it is not of that form.
        """
        try:
            method, data = d["calibration_method"], d["data"]
            if isinstance(method, Mapping):
                method = CalibrationMethod[str(method["value"]).rpartition(".")[2]]
            tensors = {
                name: found if isinstance(found, TensorData) else TensorData.from_dict(found) for name, found in data.items()
            }
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise InvalidArgument(f"these are no ranges of calibration: {type(error).__name__}: {error}") from error
        return cls(method, tensors)


class CalibrationCacheEncoder(json.JSONEncoder):
    """Writes ranges, arrays and numbers of NumPy as JSON, in onnxruntime's form."""

    def default(self, o: Any) -> Any:  # whatever JSON has no form for
        """Return what JSON has a form for."""
        if isinstance(o, (TensorData, TensorsData)):
            return o.to_dict()
        if isinstance(o, np.ndarray):
            return {"data": o.tolist(), "dtype": str(o.dtype), "CLS": _ARRAY}
        if isinstance(o, CalibrationMethod):
            return {"CLS": "CalibrationMethod", "value": str(o)}
        return o.item() if isinstance(o, np.generic) else super().default(o)


def save_tensors_data(tensors_data: TensorsData, path: str | os.PathLike[str], *, smooth_quant: bool = False) -> None:
    """Write ranges to a file in JSON, which is there as a whole or as it was before.

    Args:
        tensors_data: the ranges.
        path: the file; its folder is made where there is none.
        smooth_quant: whether activations were smoothed first, which the file says too.

    Raises:
        OSError: the system does not let us write.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**tensors_data.to_dict(), "smooth_quant": smooth_quant}, cls=CalibrationCacheEncoder)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".ranges_", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def load_tensors_data(path: str | os.PathLike[str]) -> TensorsData:
    """Return the ranges of a file that `save_tensors_data` or onnxruntime's wrote.

    Raises:
        NoSuchFile: there is no such file.
        InvalidArgument: it holds no ranges, or is no file.
    """
    source = Path(path)
    if not source.exists():
        raise NoSuchFile(f"Calibration cache not found: {source}")
    if not source.is_file():
        raise InvalidArgument(f"Calibration cache path is not a file: {source}")
    try:
        content = json.loads(source.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidArgument(f"calibration cache {str(source)!r} is no JSON: {error}") from error
    try:
        return TensorsData.from_dict(content)
    except InvalidArgument as error:
        raise InvalidArgument(f"calibration cache {str(source)!r}: {error}") from error


def write_calibration_table(calibration_cache: Mapping[str, TensorData], dir: str | os.PathLike[str] = ".") -> None:
    """Write ranges into a folder as `calibration.json`, and for TensorRT as `calibration.flatbuffers` and `calibration.cache`.

    The latter two have one number for each tensor: the larger one of its greatest and its least value.

    Args:
        calibration_cache: name -> what was found.
        dir: the folder, which exists.

    Raises:
        OSError: the system does not let us write.
    """
    folder = Path(dir)
    found = dict(calibration_cache.items())
    (folder / "calibration.json").write_text(json.dumps(found, cls=CalibrationCacheEncoder), encoding="utf-8")
    numbers = {name: str(_greatest(found[name])) for name in sorted(found)}
    pairs = [{"key": name, "value": text} for name, text in numbers.items()]
    (folder / "calibration.flatbuffers").write_bytes(write(_TABLE, {"dict": pairs}))
    (folder / "calibration.cache").write_text("".join(f"{name} {text}\n" for name, text in numbers.items()), encoding="utf-8")


def _greatest(found: TensorData) -> float:
    """Return the larger one of the highest and the lowest number, 0 for one that was not noted."""
    noted = found.to_dict()
    return max(float(np.asarray(noted.get(name, 0)).item()) for name in ("highest", "lowest"))


def _tensor_data(name: object, found: object) -> TensorData:
    if not isinstance(name, str):
        raise TypeError(f"Keys must be strings not {type(name)}.")
    if isinstance(found, TensorData):
        return found
    if not isinstance(found, tuple):
        raise TypeError(f"Values must be TensorData not {type(found)}.")
    if len(found) not in (2, 4):
        raise InvalidArgument(f"a tuple of {name!r} is (lowest, highest) or (lowest, highest, hist, bins), got {len(found)} items")
    return TensorData(**dict(zip(("lowest", "highest", "hist", "bins"), found, strict=False)))


def _read_value(value: Any) -> Any:  # as JSON has it
    if isinstance(value, Mapping) and value.get("CLS") == _ARRAY:
        return np.array(value["data"], np.dtype(value["dtype"]))
    return value


def _as_float(value: Any) -> Array:  # an array, or a number of JSON
    return value if isinstance(value, np.ndarray) else np.asarray(value, np.float32)
