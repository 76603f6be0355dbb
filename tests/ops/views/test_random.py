"""The view of Dropout."""

from __future__ import annotations

import pytest
from support.view_node import node

from sardonyx.ops.views.inputs import COMPUTED, constants
from sardonyx.ops.views.random import Dropout


def test_before_7_a_dropout_trains() -> None:
    """Unless `is_test`."""
    assert Dropout.of(node("Dropout", 6)).is_training is True
    assert Dropout.of(node("Dropout", 6, is_test=1)).is_training is False


def test_from_7_to_11_a_dropout_never_trains() -> None:
    """It is for inference only."""
    assert Dropout.of(node("Dropout", 7)).is_training is False
    assert Dropout.of(node("Dropout", 11)).is_training is False


@pytest.mark.parametrize(("mode", "expected"), [(None, False), (False, False), (True, True), ("mode", COMPUTED)])
def test_since_12_an_input_decides(mode: object, expected: object) -> None:
    """It is the third; without it nothing is left out."""
    given = node("Dropout", 12, ["x", None, mode])
    assert Dropout.of(given, constants(given)).is_training is expected


@pytest.mark.parametrize(("version", "expected"), [(9, False), (10, True)])
def test_masks_are_flags_since_10(version: int, expected: bool) -> None:
    """Before, they have the input's type."""
    assert Dropout.of(node("Dropout", version)).has_flag_mask is expected


@pytest.mark.parametrize(("version", "expected"), [(6, False), (10, False), (12, True), (22, True)])
def test_training_is_an_input_since_12(version: int, expected: bool) -> None:
    """As is the share of elements that are left out."""
    assert Dropout.of(node("Dropout", version)).trains_by_input is expected
