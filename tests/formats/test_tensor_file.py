"""Values in files of their own."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from sardonyx.errors import InvalidProtobuf
from sardonyx.formats.tensor_file import load, save


@pytest.mark.parametrize("array", [np.float32([[1, 2]]), np.array([3], ml_dtypes.bfloat16), np.array(["a"], object)], ids=str)
def test_a_tensor_is_what_it_was_written_as(array: np.ndarray, tmp_path: Path) -> None:
    """Types that NumPy lacks, and texts, too."""
    save(array, tmp_path / "t.pb", "t")
    name, found = load(tmp_path / "t.pb")
    assert (name, found.dtype, found.tolist()) == ("t", array.dtype, array.tolist())


def test_files_of_the_onnx_package_are_read(tmp_path: Path) -> None:
    """Sequences and optionals by the type of the input."""
    arrays = [np.float32([1]), np.float32([2, 3])]
    (tmp_path / "s.pb").write_bytes(numpy_helper.from_list(arrays, "s").SerializeToString())
    name, found = load(tmp_path / "s.pb", "seq(tensor(float))")
    assert (name, [item.tolist() for item in found]) == ("s", [[1], [2, 3]])
    optional = numpy_helper.from_optional(arrays[0], "o")
    (tmp_path / "o.pb").write_bytes(optional.SerializeToString())
    assert load(tmp_path / "o.pb", "optional(tensor(float))")[1].tolist() == [1]
    (tmp_path / "n.pb").write_bytes(onnx.OptionalProto(name="n").SerializeToString())
    assert load(tmp_path / "n.pb", "optional(tensor(float))") == ("n", None)


def test_other_bytes_are_an_error_that_names_the_file(tmp_path: Path) -> None:
    """And what it should hold."""
    (tmp_path / "t.pb").write_bytes(b"\xff\xff")
    with pytest.raises(InvalidProtobuf, match=r"t\.pb holds no TensorProto"):
        load(tmp_path / "t.pb")
