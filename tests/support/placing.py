"""Windows placed as the reference kernels place them, from attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from support.view_node import node

from sardonyx.ops.views.window import Sliding
from sardonyx.providers.reference.algorithms.window import PlacedWindow, place_window

__all__ = ["place"]


def place(spatial: Sequence[int], kernel: Sequence[int], **attributes: Any) -> PlacedWindow:
    """Place a window of `kernel` taps over axes of `spatial` lengths."""
    given = {name: value for name, value in attributes.items() if value != ()}
    return place_window(tuple(spatial), Sliding.of(node("Conv", 22, **given)).over(kernel))
