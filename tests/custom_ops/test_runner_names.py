"""Names of what runs custom operators."""

from __future__ import annotations

from sardonyx.custom_ops.runner_names import runner_on


def test_each_memory_has_a_runner_of_its_own() -> None:
    """The host's has the plain name."""
    assert [runner_on(""), runner_on("Own")] == ["CustomOperators", "CustomOperators of Own"]
