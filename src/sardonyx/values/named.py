"""An enumeration whose members print as onnxruntime's do."""

from __future__ import annotations

import enum

__all__ = ["NamedEnum"]


class NamedEnum(enum.IntEnum):
    """Integers with names; `str` gives "Class.MEMBER"."""

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"
