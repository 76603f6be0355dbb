"""`sardonyx demo`."""

from __future__ import annotations

import json
from collections.abc import Callable

from click.testing import Result


def test_the_digits_are_classified_as_well_as_in_training(invoke: Callable[..., Result]) -> None:
    """447 of 450 held-out digits, as its training measured."""
    facts = json.loads(invoke("demo", "--json").stdout)
    assert facts["images"] == 450
    assert facts["accuracy"] == 447 / 450
    assert facts["median_latency_ms"] > 0


def test_people_see_digits_accuracy_provider_and_latency(invoke: Callable[..., Result]) -> None:
    """Drawn in the terminal."""
    output = invoke("demo").output
    for part in ("@@", "accuracy   99.33%", "ExecutionProvider: ", "nodes      ", "ms a digit"):
        assert part in output
