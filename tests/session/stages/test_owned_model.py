"""Handing a model from stage to stage."""

from __future__ import annotations

import pytest
from support.models import model

from sardonyx.errors import Fail
from sardonyx.session.stages.owned_model import OwnedModel


def test_a_model_is_taken_over_once() -> None:
    """Whoever comes later gets an error that names who has it."""
    given = model("graph(x: float[2]) -> (y: float[2]) {\ny = Relu(x)\n}")
    owned = OwnedModel(given)
    assert owned.view() is given
    assert owned.take("prepare") is given
    for use in (owned.view, lambda: owned.take("again")):
        with pytest.raises(Fail, match="was taken over by the stage 'prepare'"):
            use()
    assert owned.label == given.label
