"""The coefficients of `mathlib`."""

import math

import pytest

from sardonyx.codegen.emit import coefficients


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("EXP", 1 / 2),
        ("LOG", 1 / 3),
        ("SIN", -1 / 6),
        ("COS", 1 / 24),
        ("ASIN", 1 / 6),
        ("ATAN", -1 / 3),
        ("ERF_NEAR", 2 / math.sqrt(math.pi) - 1),
    ],
)
def test_the_lowest_power_is_near_that_of_the_series(name: str, first: float) -> None:
    """A minimax polynomial begins within one percent of the Taylor series."""
    assert getattr(coefficients, name)[0] == pytest.approx(first, rel=1e-2)


def test_erf_far_begins_within_a_thousandth() -> None:
    """The polynomial of the far part of erf has a small constant term."""
    assert abs(coefficients.ERF_FAR[0]) < 1e-3
