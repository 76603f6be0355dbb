"""Adapters of files of NumPy arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import sardonyx as ort
from sardonyx.capi.convert_npz_to_onnx_adapter import main


def test_arrays_of_a_file_become_an_adapter(tmp_path: Path) -> None:
    """With the versions that are given."""
    np.savez(tmp_path / "a.npz", first=np.arange(3.0), second=np.ones((2, 2), np.float32))
    paths = ["--npz_file_path", str(tmp_path / "a.npz"), "--output_file_path", str(tmp_path / "a.onnx_adapter")]
    assert main([*paths, "--adapter_version", "3", "--model_version", "4"]) == 0
    read = ort.AdapterFormat.read_adapter(tmp_path / "a.onnx_adapter")
    assert (read.adapter_version, read.model_version, read.format_version) == (3, 4, read.get_format_version())
    assert {name: value.numpy().tolist() for name, value in read.parameters.items()} == {
        "first": [0, 1, 2],
        "second": [[1, 1], [1, 1]],
    }
