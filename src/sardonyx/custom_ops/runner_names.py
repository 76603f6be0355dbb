"""The names in reports of what runs custom operators."""

from __future__ import annotations

__all__ = ["runner_on"]


def runner_on(provider: str) -> str:
    """Return the name in reports of what runs custom operators in the memory of a provider; "" is the host's."""
    return f"CustomOperators of {provider}" if provider else "CustomOperators"
