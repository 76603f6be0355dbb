"""Registries that modules fill when they are imported, though an exception may end an import.

A signal's handler may raise at any line. Python then forgets the module whose import it ended, but not what the module had
registered, and the next import registers it once more.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

__all__ = ["is_defined_again", "is_imported"]


def is_defined_again(known: Callable[..., object], function: Callable[..., object]) -> bool:
    """Return whether both functions are one definition of one module, which was executed twice, rather than two definitions."""
    return (known.__module__, known.__qualname__) == (function.__module__, function.__qualname__)


def is_imported(function: Callable[..., object]) -> bool:
    """Return whether the import of the function's module has not ended by an exception: what follows it there may be missing."""
    return function.__module__ in sys.modules
