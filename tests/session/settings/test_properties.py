"""The documentation of properties."""

from __future__ import annotations

import inspect

from sardonyx.session.options import SessionOptions
from sardonyx.session.run_options import RunOptions
from sardonyx.session.settings.properties import PROPERTIES, PROPERTIES_OF_RUNS


def _properties(made: object) -> list[str]:
    """The attributes that can be set, but for what ModelCompiler sets."""
    slots = {name for name, _ in inspect.getmembers(type(made), inspect.ismemberdescriptor)}
    slots |= {name for name, held in inspect.getmembers(type(made)) if isinstance(held, property) and held.fset is not None}
    return sorted(name for name in slots if not name.startswith("_") and name != "context_output")


def test_each_property_is_documented() -> None:
    """And no other."""
    assert _properties(SessionOptions()) == sorted(PROPERTIES)
    assert _properties(RunOptions()) == sorted(PROPERTIES_OF_RUNS)
