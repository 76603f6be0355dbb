"""Domains of nodes whose operator a session replaces by one of the user's.

    Relu  ->  ai.onnx.replaced.Relu        com.microsoft.Gelu  ->  com.microsoft.replaced.Gelu

In a domain of its own no rule fuses such a node, and no provider takes it for the built-in operator; files have the domain that it
had.
"""

from __future__ import annotations

__all__ = ["is_replaced", "original_domain", "replaced_domain"]

_SUFFIX = ".replaced"
_STANDARD = "ai.onnx"


def replaced_domain(domain: str) -> str:
    """Return the domain that a replaced operator of `domain` has; "" is ai.onnx."""
    return f"{domain or _STANDARD}{_SUFFIX}"


def is_replaced(domain: str) -> bool:
    """Return whether a domain is one of replaced operators."""
    return domain.endswith(_SUFFIX)


def original_domain(domain: str) -> str:
    """Return the domain that a node had before its operator was replaced."""
    if not is_replaced(domain):
        return domain
    found = domain.removesuffix(_SUFFIX)
    return "" if found == _STANDARD else found
