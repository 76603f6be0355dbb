"""What nodes each operator of TensorFlow Lite becomes, by family; importing a family registers its importers."""

from __future__ import annotations

import functools
import importlib

from sardonyx.forks import without_fork

__all__ = ["load_all"]

_FAMILIES = (
    "call_once",
    "circle",
    "control_flow",
    "conv",
    "custom",
    "elementwise",
    "gather",
    "hashing",
    "matmul",
    "mediapipe",
    "pool",
    "recurrent",
    "reduce",
    "reshape",
    "resize",
    "slice",
    "stablehlo",
    "stablehlo_index",
)


@functools.cache
def load_all() -> None:
    """Import every family."""
    with without_fork():
        for name in _FAMILIES:
            importlib.import_module(f"{__name__}.{name}")
