"""The options of custom operators: a FlexBuffer map, or the bytes of a structure of the runtime that the model was written for."""

from __future__ import annotations

import struct

from sardonyx.formats.flat.flexible import FlexValue, NotFlexible, options
from sardonyx.formats.tflite.operator import Operator

__all__ = ["custom_options", "real_option", "structure", "whole_option", "whole_options"]

_MOST = 1 << 31


def custom_options(op: Operator) -> dict[str, FlexValue]:
    """Return the options by name; what is no map is the option `custom_options`, bytes."""
    data = op.table.numbers("custom_options").tobytes()
    if not data:
        return {}
    try:
        return options(data)
    except NotFlexible:
        return {"custom_options": data}


def whole_option(op: Operator, given: dict[str, FlexValue], name: str, default: int | None = None) -> int:
    """Return an option that is a number from 0 on."""
    value = given.get(name, default)
    if not isinstance(value, (bool, int)) or not 0 <= value < _MOST:
        op.refuse(f"its option {name} is {value!r}; expected a number from 0 on")
    return int(value)


def whole_options(op: Operator, given: dict[str, FlexValue], name: str) -> list[int]:
    """Return an option that is a list of numbers from 0 on."""
    values = given.get(name)
    found = [value for value in values if isinstance(value, int) and 0 <= value < _MOST] if isinstance(values, list) else []
    if not isinstance(values, list) or len(found) != len(values):
        op.refuse(f"its option {name} is {values!r}; expected a list of numbers from 0 on")
    return found


def real_option(op: Operator, given: dict[str, FlexValue], name: str, default: float | None = None) -> float:
    """Return an option that is a number."""
    value = given.get(name, default)
    if not isinstance(value, (int, float)):
        op.refuse(f"its option {name} is {value!r}; expected a number")
    return float(value)


def structure(op: Operator, fields: str) -> dict[str, int]:
    """Return the fields of a structure of 32-bit integers, which the options begin with."""
    data, names = op.table.numbers("custom_options").tobytes(), fields.split()
    if len(data) < 4 * len(names):
        op.refuse(f"its options have {len(data)} bytes; expected {4 * len(names)} or more: {fields}")
    return dict(zip(names, struct.unpack_from(f"<{len(names)}i", data), strict=True))
