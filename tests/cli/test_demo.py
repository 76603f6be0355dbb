"""`sardonyx demo`."""

from __future__ import annotations

import json
from collections.abc import Callable

from click.testing import CliRunner, Result

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
