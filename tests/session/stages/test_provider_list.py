"""The providers of a session."""

from __future__ import annotations

import pytest
from support.providers import FusingProvider

from sardonyx.session.stages.provider_list import ProviderList

A, B = FusingProvider((), "A"), FusingProvider((), "B")


def test_those_that_are_left_out_are_not_asked() -> None:
    """They keep their names in the list, and a warning says so."""
    given = ProviderList.of([A, B])
    with pytest.warns(UserWarning, match='^provider A failed and is left out of this session, as .* "skip": it failed$'):
        fewer = given.without("A", "it failed")
    assert (given.able, fewer.able) == ([A, B], [B])
    assert (fewer.names, fewer.excluded, given.excluded) == (["A", "B"], {"A": "it failed"}, {})
