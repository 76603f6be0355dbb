"""Facts for a report of a problem."""

from __future__ import annotations

import pytest

import sardonyx as ort


def test_debug_information_names_the_providers(capsys: pytest.CaptureFixture[str]) -> None:
    """On standard output, as onnxruntime prints its own."""
    ort.print_debug_info()
    assert "CPUExecutionProvider" in capsys.readouterr().out
