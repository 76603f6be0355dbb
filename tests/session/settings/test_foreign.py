"""Config entries of onnxruntime's without effect."""

from __future__ import annotations

from sardonyx.session.settings.foreign import IGNORED, IGNORED_OF_RUNS


def test_they_are_sorted_by_kind_and_say_why() -> None:
    """Each has a reason."""
    assert all(item.reason for item in (*IGNORED, *IGNORED_OF_RUNS))


def test_none_stands_for_another() -> None:
    """A key that begins as a listed group does is not listed by itself."""
    groups = [item.name for item in IGNORED if item.name.endswith((".", "_"))]
    assert [item.name for item in IGNORED for group in groups if item.name.startswith(group) and item.name != group] == []
