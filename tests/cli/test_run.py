"""`sardonyx run`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from click.testing import Result


def test_inputs_come_from_files_and_outputs_go_to_files(invoke: Callable[..., Result], model_file: Path, tmp_path: Path) -> None:
    """NumPy's .npy format both ways."""
    np.save(tmp_path / "x.npy", np.float32([[-1, 1]]))
    result = invoke("run", model_file, "--input", f"x={tmp_path / 'x.npy'}", "--output-dir", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert np.load(tmp_path / "out" / "y.npy").tolist() == [[1, 3]]


def test_random_inputs_take_the_sizes_asked_for(invoke: Callable[..., Result], model_file: Path) -> None:
    """A symbolic dimension is 1 unless given."""
    facts = json.loads(invoke("run", model_file, "--random", "--dim", "n=5", "--repeat", 3, "--json").stdout)
    assert facts["outputs"][0]["shape"] == [5, 2]
    assert facts["runs"] == 3


def test_an_input_that_nothing_feeds_is_named(invoke: Callable[..., Result], model_file: Path) -> None:
    """With the two ways of feeding it."""
    result = invoke("run", model_file)
    assert result.exit_code == 1
    assert "--input x=FILE.npy, or --random" in result.stderr


def test_a_file_that_is_no_npy_is_refused(invoke: Callable[..., Result], model_file: Path) -> None:
    """Nothing is unpickled."""
    result = invoke("run", model_file, "--input", f"x={model_file}")
    assert result.exit_code == 1
    assert "no .npy or .npz file that can be read without unpickling" in result.stderr


def test_a_malformed_pair_is_refused(invoke: Callable[..., Result], model_file: Path) -> None:
    """NAME=VALUE is expected."""
    assert "there is no file 'x' for --input NAME=FILE" in invoke("run", model_file, "--input", "x").stderr
    assert "must be a number" in invoke("run", model_file, "--random", "--dim", "n=many").stderr


def test_the_table_names_the_files_that_were_written(invoke: Callable[..., Result], model_file: Path, tmp_path: Path) -> None:
    """One for each output, in JSON too."""
    assert "y.npy" in invoke("run", model_file, "--random", "--output-dir", tmp_path / "out").stdout
    facts = json.loads(invoke("run", model_file, "--random", "--output-dir", tmp_path / "again", "--json").stdout)
    assert facts["outputs"][0]["file"] == "y.npy"


def test_outputs_overwrite_nothing_unasked(invoke: Callable[..., Result], model_file: Path, tmp_path: Path) -> None:
    """--force asks for it."""
    arguments = ("run", model_file, "--random", "--output-dir", tmp_path / "out")
    assert invoke(*arguments).exit_code == 0
    assert "exists already; give --force to overwrite" in invoke(*arguments).stderr
    assert invoke(*arguments, "--force").exit_code == 0
