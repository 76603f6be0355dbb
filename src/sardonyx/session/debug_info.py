"""Facts for a report of a problem."""

from __future__ import annotations

import platform

from sardonyx.process import get_build_info
from sardonyx.session.providers import get_available_providers

__all__ = ["print_debug_info"]


def print_debug_info() -> None:
    """Print versions, the machine and the available providers."""
    lines = (get_build_info(), f"platform: {platform.platform()}", f"providers: {', '.join(get_available_providers())}")
    print("\n".join(lines))  # noqa: T201  what the function is for
