"""`sardonyx demo`."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

from click.testing import CliRunner, Result

import sardonyx
from sardonyx.cli.main import cli


def test_the_digits_are_classified_as_well_as_in_training(invoke: Callable[..., Result]) -> None:
    """447 of 450 held-out digits, as its training measured."""
    facts = json.loads(invoke("demo", "--json").stdout)
    assert facts["images"] == 450
    assert facts["accuracy"] == 447 / 450
    assert facts["median_latency_ms"] > 0


def test_people_see_digits_accuracy_provider_and_latency(invoke: Callable[..., Result]) -> None:
    """Drawn in the terminal."""
    output = invoke("demo").output
    for part in ("@@", "accuracy  99.33%", "ExecutionProvider: ", "nodes     ", "ms a digit"):
        assert part in output


def test_it_fits_80_columns() -> None:
    """Pictures that do not fit beside the others come below them."""
    lines = CliRunner().invoke(cli, ["demo"], env={"COLUMNS": "80"}).output.splitlines()
    assert max(map(len, lines)) <= 80
    assert "(is 3)" in "\n".join(lines)


def test_a_package_in_an_archive_has_its_data_and_its_worker(tmp_path: Path, model_file: Path) -> None:
    """`demo` and `bench` run in a zip application."""
    archive = tmp_path / "app.zip"
    source = Path(sardonyx.__file__).parent
    with zipfile.PyZipFile(archive, "w") as file:
        file.writepy(str(source))
        for path in (*source.rglob("*.npz"), *source.rglob("*.onnx"), source / "cli" / "bench_worker.py"):
            file.write(path, path.relative_to(source.parent))
    code = f"import sys; sys.path.insert(0, {str(archive)!r}); sys.argv[0] = 'sardonyx'; from sardonyx.cli.main import main; main()"
    for verb, expected in (
        (("demo",), "99.33%"),
        (("bench", str(model_file), "--count", "1", "--turns", "1", "--starts", "1"), "runs/s"),
    ):
        done = subprocess.run([sys.executable, "-c", code, *verb], capture_output=True, text=True, check=False)
        assert expected in done.stdout, done.stdout + done.stderr
