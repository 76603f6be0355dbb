"""Names that are nearly right."""

from __future__ import annotations

from sardonyx.spelling import nearest


def test_the_nearest_name_is_found() -> None:
    """Where one is near at all."""
    assert nearest("session.executer", ["session.executor", "session.placement"]) == "session.executor"
    assert nearest("batch", ["session.executor"]) == ""


def test_likeness_bounds_what_is_found() -> None:
    """A name that is less like the one given is none."""
    assert nearest("abcd", ["abxy"], likeness=0.5) == "abxy"
    assert nearest("abcd", ["abxy"], likeness=0.6) == ""
