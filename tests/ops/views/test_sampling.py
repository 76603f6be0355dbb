"""The view of GridSample."""

from __future__ import annotations

import pytest
from support.view_node import node

from sardonyx.errors import InvalidGraph
from sardonyx.ops.views.sampling import GridSample


def test_modes_have_one_name() -> None:
    """Versions call them differently; linear with zeros around is the default."""
    assert GridSample.of(node("GridSample", 20)) == GridSample("linear", "zeros", False)
    assert GridSample.of(node("GridSample", 16, mode="bicubic", align_corners=1)) == GridSample("cubic", "zeros", True)


@pytest.mark.parametrize("attributes", [{"mode": "area"}, {"padding_mode": "wrap"}])
def test_what_there_is_not_is_refused(attributes: dict[str, str]) -> None:
    """The message lists what there is."""
    with pytest.raises(InvalidGraph, match="expected one of"):
        GridSample.of(node("GridSample", 20, **attributes))
