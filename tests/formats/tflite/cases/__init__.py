"""Small models of each operator of TensorFlow Lite, with feeds; LiteRT says what they compute where it is installed."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from formats.tflite.cases.case import Case

MODULES = ("hashed", "images", "indexed", "products", "recurrent", "simple", "windows")


def every_case() -> Iterator[Case]:
    """Return the cases of all modules."""
    for name in MODULES:
        yield from importlib.import_module(f"formats.tflite.cases.{name}").cases()
