"""The openvino package, imported so that it reports nothing.

`import openvino` sends an event to its vendor and writes the folder `~/intel` (package `openvino_telemetry`), unless the user has
opted out on the machine. While this module imports it, that package cannot be found, for which openvino has a substitute that
does nothing. Who has imported openvino before keeps what was chosen there.
"""

from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import Any

from sardonyx.forks import without_fork

__all__ = ["openvino_package"]

_TELEMETRY = "openvino_telemetry"


@functools.cache
def openvino_package() -> Any:
    """Return the module openvino; Any, so that naming its types does not import it. Raises ImportError where there is none."""
    with without_fork():
        known: Any = sys.modules
        hidden = "openvino" not in known and _TELEMETRY not in known
        if hidden:
            known[_TELEMETRY] = None
        try:
            import openvino
        finally:
            if hidden:
                del known[_TELEMETRY]
    package: ModuleType = openvino
    return package
