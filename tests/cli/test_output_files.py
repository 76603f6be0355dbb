"""What `--output-dir` writes."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np

from sardonyx.cli.output_files import file_names, write_outputs
from sardonyx.formats import tensor_file


def test_each_kind_of_value_gets_a_file(tmp_path: Path) -> None:
    """That can be read again without pickles."""
    values = {
        "a/b": np.float32([1, 2]),
        "a_b": np.array(["é", "long"], object),
        "narrow": np.array([1, 2], ml_dtypes.bfloat16),
        "many": [np.float32([1]), np.float32([2, 3])],
        "maps": [{"x": np.float32(0.5)}, {"x": 1.0}],
        "none": None,
    }
    write_outputs(tmp_path / "out", list(values), list(values.values()))
    assert file_names(list(values), list(values.values())) == {
        "a/b": "a_b.npy",
        "a_b": "a_b_2.npy",
        "narrow": "narrow.pb",
        "many": "many.npz",
        "maps": "maps.json",
        "none": None,
    }
    folder = tmp_path / "out"
    assert np.load(folder / "a_b.npy").tolist() == [1, 2]
    assert np.load(folder / "a_b_2.npy").tolist() == ["é", "long"]
    assert tensor_file.load(folder / "narrow.pb")[1].astype(float).tolist() == [1, 2]
    assert np.load(folder / "many.npz")["1"].tolist() == [2, 3]
    assert json.loads((folder / "maps.json").read_text()) == [{"x": 0.5}, {"x": 1.0}]


def test_a_name_cannot_leave_the_folder(tmp_path: Path) -> None:
    """Whatever the model calls its output."""
    write_outputs(tmp_path / "out", ["../../evil"], [np.float32([1])])
    assert [path.name for path in (tmp_path / "out").iterdir()] == list(file_names(["../../evil"], [np.float32([1])]).values())
