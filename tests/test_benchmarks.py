"""Benchmarks that pages name run from a clean clone, on models that they make."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def _run(script: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "SARDONYX_ZOO": str(folder / "made")}
    command = [sys.executable, str(ROOT / "benchmarks" / script), *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=250, check=False)


def test_node_counts_measures_models_that_it_makes(tmp_path: Path) -> None:
    """Three of them, and none of ours has more nodes than the peer's."""
    pytest.importorskip("onnxruntime")
    done = _run("node_counts.py", tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "0 of 3 models above the bar"), done.stderr


def test_models_measures_a_model_that_it_makes(tmp_path: Path) -> None:
    """A line says its time, its memory, and how long the first result takes."""
    pytest.importorskip("onnxruntime")
    done = _run("models.py", tmp_path, "mlp")
    assert done.returncode == 0, done.stderr
    assert "first result after" in done.stdout.splitlines()[0]


def test_trees_measures_a_forest_that_it_makes(tmp_path: Path) -> None:
    """A line says the times of one row, of all rows and of a session."""
    done = _run("trees.py", tmp_path, "10 x depth 3", "--rows", "20", "--seconds", "0.01")
    assert done.returncode == 0, done.stderr
    assert "148 nodes" in done.stdout.splitlines()[0]


def test_texts_measures_a_pipeline_that_it_makes(tmp_path: Path) -> None:
    """A line for each number of texts."""
    done = _run("texts.py", tmp_path, "two letters")
    assert done.returncode == 0, done.stderr
    assert [line.split()[:2] for line in done.stdout.splitlines()[1:]] == [["1", "texts"], ["100", "texts"], ["1000", "texts"]]


def test_a_zoo_that_is_none_is_an_error(tmp_path: Path) -> None:
    """That says what is missing."""
    pytest.importorskip("onnxruntime")
    done = _run("models.py", tmp_path, "--zoo", str(tmp_path))
    assert done.returncode == 1
    assert "there is no materialize.py in" in done.stderr


def test_a_model_that_is_none_is_an_error(tmp_path: Path) -> None:
    """With those that there are."""
    pytest.importorskip("onnxruntime")
    assert "made here are mlp, resnet, encoder" in _run("models.py", tmp_path, "no_such").stderr


def test_soak_api_runs_every_kind(tmp_path: Path) -> None:
    """On eight threads; what a short run says of growth is not asked."""
    done = _run("soak_api.py", tmp_path, "--runs", "200")
    assert "bytes a run" in done.stdout, done.stderr
    assert done.stderr == ""


def test_startup_measures_a_model(tmp_path: Path) -> None:
    """A line for each package has four times."""
    from sardonyx.formats.onnx import to_bytes
    from sardonyx.ir.text import parse_model

    path = tmp_path / "tiny.onnx"
    path.write_bytes(to_bytes(parse_model("ir_version 10\nopset 21\ngraph g(x: float[n, 2]) -> (y: float[n, 2]) { y = Relu(x) }")))
    done = _run("startup.py", tmp_path, str(path), "--rounds", "1")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[0] for line in lines[:2]] == ["model", "tiny"], done.stderr
    assert all(float(seconds) > 0 for seconds in lines[1][2:])
    assert len(lines[1]) == 6


def test_startup_measures_models_that_it_makes(tmp_path: Path) -> None:
    """By their names, as the README's other scripts do."""
    done = _run("startup.py", tmp_path, "mlp", "--rounds", "1", "--cache", str(tmp_path))
    assert [line.split()[0] for line in done.stdout.splitlines()[:2]] == ["model", "own_mlp"], done.stderr


def test_generate_measures_a_decoder_that_it_makes(tmp_path: Path) -> None:
    """Lines say how much the layer costs, and what shared steps gain."""
    done = _run("generate.py", tmp_path, "--tokens", "6", "--prompt", "8", "--rounds", "1", "--requests", "2")
    assert done.returncode == 0, done.stderr
    assert [line.split("  ")[0] for line in done.stdout.splitlines()[-2:]] == ["generate / bare step", "batched / one by one"]


@pytest.mark.parametrize(
    ("script", "arguments"), [("load.py", ("--rounds", "1")), ("optimize.py", ("--rounds", "1")), ("context_models.py", ("mlp",))]
)
def test_scripts_about_files_measure_models_that_they_make(tmp_path: Path, script: str, arguments: tuple[str, ...]) -> None:
    """Where none is named, or by the names of zoo.py; none of them measures nothing in silence."""
    done = _run(script, tmp_path, *arguments)
    assert "Traceback" not in done.stderr
    assert "mlp" in done.stdout, done.stderr


def test_gemm_knows_its_levels(tmp_path: Path) -> None:
    """Another one is an error that names them."""
    assert "this processor has portable" in _run("gemm.py", tmp_path, "sse9").stderr
    assert _run("gemm.py", tmp_path, "--help").returncode == 0
