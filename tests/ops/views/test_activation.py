"""Views of activations."""

from __future__ import annotations

import math

import pytest
from support.view_node import node

from sardonyx.ops.views.activation import Clip, Selu, has_one_slope_vector

LARGEST = 3.4028234663852886e38


@pytest.mark.parametrize(("version", "limit"), [(1, math.inf), (6, LARGEST), (10, LARGEST)])
def test_limits_were_attributes(version: int, limit: float) -> None:
    """Without them nothing is clipped in opset 1, and infinities from 6 on."""
    assert Clip.of(node("Clip", version)) == Clip((-limit, limit), has_limits=False)
    assert Clip.of(node("Clip", version, min=0.0)) == Clip((0.0, limit), has_limits=True)


def test_limits_are_inputs() -> None:
    """From opset 11 on."""
    assert Clip.of(node("Clip", 11)) == Clip(None, has_limits=False)


def test_the_constants_of_selu_were_rounded() -> None:
    """Before opset 6."""
    assert Selu.of(node("Selu", 1)) == Selu(1.6732, 1.0507)
    assert Selu.of(node("Selu", 6)) == Selu(1.67326319217681884765625, 1.05070102214813232421875)
    assert Selu.of(node("Selu", 6, alpha=2.0, gamma=3.0)) == Selu(2.0, 3.0)


@pytest.mark.parametrize(("version", "expected"), [(6, True), (7, False)])
def test_slopes_broadcast_since_7(version: int, expected: bool) -> None:
    """Before, there is one for all or one for each channel."""
    assert has_one_slope_vector(node("PRelu", version)) is expected
