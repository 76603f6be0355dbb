"""Runs models of files in tests."""

from __future__ import annotations

import sardonyx
from sardonyx.dtypes import Array


def run(data: bytes, *feeds: Array) -> list[Array]:
    """Return what a model gives for feeds in the order of its inputs."""
    session = sardonyx.InferenceSession(data)
    names = [value.name for value in session.get_inputs()]
    return list(session.run(None, dict(zip(names, feeds, strict=True))))
