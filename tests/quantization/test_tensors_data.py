"""What calibration found of tensors, and the files that keep it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sardonyx.errors import InvalidArgument, NoSuchFile
from sardonyx.formats.files import MemoryContent
from sardonyx.formats.flat.reader import read_root
from sardonyx.formats.flat.schema import Schema
from sardonyx.quantization.quant_utils import CalibrationMethod
from sardonyx.quantization.tensors_data import (
    TensorData,
    TensorsData,
    load_tensors_data,
    save_tensors_data,
    write_calibration_table,
)

TABLES = {"Table": "dict:[Pair]", "Pair": "key:string value:string"}
LOW, HIGH = np.float32(-2), np.float32(3)


def found() -> TensorsData:
    """Return what was found of two tensors."""
    edges = np.linspace(-2, 3, 5, dtype=np.float32)
    histogram = {"hist": np.arange(4), "hist_edges": edges, "bins": 4}
    return TensorsData(CalibrationMethod.Entropy, {"a": TensorData(lowest=LOW, highest=HIGH, **histogram), "b": (LOW, LOW)})


def test_ranges_come_back_from_a_file(tmp_path: Path) -> None:
    """With their histograms, types and the method; nothing else is left in the folder, which is made."""
    path = tmp_path / "new" / "ranges.json"
    save_tensors_data(found(), path)
    back = load_tensors_data(path)
    assert back.calibration_method is CalibrationMethod.Entropy
    assert [item.name for item in path.parent.iterdir()] == ["ranges.json"]
    assert (back["a"].range_value, back["b"].range_value) == ((LOW, HIGH), (LOW, LOW))
    assert back["a"].lowest.dtype == np.float32  # type: ignore[attr-defined]  # attributes are those that were found
    np.testing.assert_array_equal(back["a"].to_dict()["hist"], np.arange(4))


def test_the_file_is_onnxruntimes(tmp_path: Path) -> None:
    """Its keys, and its form of arrays and methods."""
    save_tensors_data(found(), tmp_path / "r.json", smooth_quant=True)
    content = json.loads((tmp_path / "r.json").read_text())
    assert (content["CLS"], content["smooth_quant"]) == ("TensorsData", True)
    assert content["calibration_method"] == {"CLS": "CalibrationMethod", "value": "CalibrationMethod.Entropy"}
    assert content["data"]["b"]["lowest"] == {"data": -2.0, "dtype": "float32", "CLS": "numpy.array"}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"calibration_method": {"value": "Nothing"}, "data": {}}'])
def test_a_file_of_something_else(tmp_path: Path, text: str) -> None:
    """It is an error that names it; so is one that is not there, and a folder."""
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(InvalidArgument, match="r.json"):
        load_tensors_data(path)
    with pytest.raises(NoSuchFile, match="none.json"):
        load_tensors_data(tmp_path / "none.json")
    with pytest.raises(InvalidArgument, match="not a file"):
        load_tensors_data(tmp_path)


def test_tables_for_tensorrt(tmp_path: Path) -> None:
    """One number for each tensor, in the order of names, as text and as a FlatBuffer."""
    write_calibration_table(found().data, tmp_path)
    assert (tmp_path / "calibration.cache").read_text() == "a 3.0\nb -2.0\n"
    content = (tmp_path / "calibration.flatbuffers").read_bytes()
    schema = Schema("Table", content[4:8], "Table", enums={}, unions={}, structs={}, tables=TABLES)  # the file has no identifier
    pairs = read_root(MemoryContent(memoryview(content)), schema, "test").tables("dict")
    assert [(pair.text("key"), pair.text("value")) for pair in pairs] == [("a", "3.0"), ("b", "-2.0")]
    assert set(json.loads((tmp_path / "calibration.json").read_text())) == {"a", "b"}


def test_what_was_not_found_is_missing() -> None:
    """Attributes are those that were noted."""
    only = TensorData(avg=np.float32(1), std=np.float32(2))
    assert only.avg_std == (1, 2)
    with pytest.raises(AttributeError, match="'lowest' and 'highest'"):
        _ = only.range_value
    with pytest.raises(InvalidArgument, match="got 'width'"):
        TensorData(width=3)


def test_tensors_can_be_replaced_not_added() -> None:
    """As onnxruntime's."""
    ranges = found()
    ranges["b"] = TensorData(lowest=LOW, highest=HIGH)
    assert ranges["b"].range_value == (LOW, HIGH)
    with pytest.raises(InvalidArgument, match="'c' is not"):
        ranges["c"] = ranges["b"]


def test_values_of_other_kinds_are_refused() -> None:
    """Names are texts; a tuple has two or four items."""
    wrong: Any = {1: (LOW, HIGH)}
    with pytest.raises(TypeError, match="Keys must be strings"):
        TensorsData(CalibrationMethod.MinMax, wrong)
    with pytest.raises(InvalidArgument, match="got 3 items"):
        TensorsData(CalibrationMethod.MinMax, {"a": (LOW, HIGH, 3)})
    with pytest.raises(TypeError, match="Values must be TensorData"):
        TensorsData(CalibrationMethod.MinMax, {"a": 3})  # type: ignore[dict-item]  # the error under test
