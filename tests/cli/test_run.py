"""`sardonyx run`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from click.testing import Result
from support.models import model

from sardonyx.formats.onnx import save


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
    assert "must be 0 or a greater whole number" in invoke("run", model_file, "--random", "--dim", "n=many").stderr


def test_the_files_that_were_written_are_named(invoke: Callable[..., Result], model_file: Path, tmp_path: Path) -> None:
    """One for each output, in JSON too."""
    assert (
        f"y: written to {tmp_path / 'out' / 'y.npy'}"
        in invoke("run", model_file, "--random", "--output-dir", tmp_path / "out").stdout
    )
    facts = json.loads(invoke("run", model_file, "--random", "--output-dir", tmp_path / "again", "--json").stdout)
    assert facts["outputs"][0]["file"] == "y.npy"


def test_outputs_overwrite_nothing_unasked(invoke: Callable[..., Result], model_file: Path, tmp_path: Path) -> None:
    """--force asks for it."""
    arguments = ("run", model_file, "--random", "--output-dir", tmp_path / "out")
    assert invoke(*arguments).exit_code == 0
    assert "exists already; give --force to overwrite" in invoke(*arguments).stderr
    assert invoke(*arguments, "--force").exit_code == 0


def test_sizes_that_do_not_fit_are_shown_with_how_to_give_others(invoke: Callable[..., Result], tmp_path: Path) -> None:
    """A model whose operators disagree with what was asked for."""
    text = "graph(x: float[n], y: float[m]) -> (z: float[k]) {\nz = Add(x, y)\n}"
    save(model(text), tmp_path / "add.onnx")
    result = invoke("run", tmp_path / "add.onnx", "--random", "--dim", "n=2", "--dim", "m=3")
    assert result.exit_code == 1
    assert "The inputs that were drawn have the shapes x [2], y [3]; --dim NAME=SIZE" in result.stderr


def test_values_are_one_line_each(invoke: Callable[..., Result], model_file: Path) -> None:
    """Of a large tensor the corners."""
    facts = json.loads(invoke("run", model_file, "--random", "--dim", "n=50", "--json").stdout)
    assert "\n" not in facts["outputs"][0]["values"]
    assert "  " not in facts["outputs"][0]["values"]
    assert "..." in facts["outputs"][0]["values"]


def test_values_that_are_no_outputs_are_named(invoke: Callable[..., Result], model_file: Path, tmp_path: Path) -> None:
    """They are printed, and written beside the outputs that are named."""
    np.save(tmp_path / "x.npy", np.float32([[-1, 1]]))
    feed = ("--input", f"x={tmp_path / 'x.npy'}")
    result = invoke("run", model_file, *feed, "--outputs", "a,y", "--output-dir", tmp_path / "out", "--json")
    assert [fact["name"] for fact in json.loads(result.stdout)["outputs"]] == ["a", "y"]
    assert np.load(tmp_path / "out" / "a.npy").tolist() == [[0, 1]]


def test_all_values_can_be_asked_for(invoke: Callable[..., Result], model_file: Path) -> None:
    """Those between come before the outputs."""
    result = invoke("run", model_file, "--random", "--outputs", "all", "--json")
    assert [fact["name"] for fact in json.loads(result.stdout)["outputs"]] == ["a", "y"]


def test_a_misspelt_value_is_named_with_its_neighbours(invoke: Callable[..., Result], model_file: Path) -> None:
    """The outputs."""
    result = invoke("run", model_file, "--random", "--outputs", "b")
    assert result.exit_code == 1
    assert "there is no output 'b'" in result.stderr


def test_the_memory_of_the_session_is_shown_when_asked_for(invoke: Callable[..., Result], model_file: Path) -> None:
    """As a table behind the outputs, and in JSON."""
    assert "packed weights" in invoke("run", model_file, "--random", "--memory").stdout
    facts = json.loads(invoke("run", model_file, "--random", "--memory", "--json").stdout)
    assert facts["memory"]["total_bytes"] > 0
    assert "memory" not in json.loads(invoke("run", model_file, "--random", "--json").stdout)


def test_a_file_is_no_folder_for_outputs(invoke: Callable[..., Result], model_file: Path) -> None:
    """Which is said before anything runs."""
    result = invoke("run", model_file, "--random", "--output-dir", model_file)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"--output-dir takes a folder, and {str(model_file)!r} is a file" in result.stderr
