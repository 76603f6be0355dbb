"""The families of operators."""

from __future__ import annotations

from sardonyx.formats.tflite.operator import IMPORTERS
from sardonyx.formats.tflite.operators import load_all


def test_every_family_registers_its_importers() -> None:
    """When all are loaded."""
    load_all()
    assert {"CONV_2D", "ADD", "FULLY_CONNECTED", "MAX_POOL_2D", "MEAN", "RESHAPE", "SLICE"} <= set(IMPORTERS)
