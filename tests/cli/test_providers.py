"""`sardonyx providers`."""

from __future__ import annotations

import json
from collections.abc import Callable

from click.testing import Result


def test_each_provider_shows_where_it_comes_from(invoke: Callable[..., Result]) -> None:
    """As a table and as JSON."""
    assert "ReferenceExecutionProvider" in invoke("providers").output
    rows = json.loads(invoke("providers", "--json").stdout)
    assert {"name": "ReferenceExecutionProvider", "source": "sardonyx.providers.reference.provider:create"} in rows
