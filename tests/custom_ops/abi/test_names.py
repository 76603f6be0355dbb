"""The functions of OrtApi by their place."""

from __future__ import annotations

import pytest

from sardonyx.custom_ops.abi.names import FUNCTIONS, INDEX, NO_STATUS, SINCE


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("CreateStatus", 0),
        ("ReleaseStatus", 93),
        ("ReleaseCustomOpDomain", 101),
        ("KernelContext_ParallelFor", 274),
        ("GetTensorData", 378),
    ],
)
def test_a_function_has_the_place_of_the_header(name: str, index: int) -> None:
    """Libraries call by position."""
    assert INDEX[name] == index


def test_every_version_ends_where_the_header_says() -> None:
    """The last entries of versions 1, 16 and 29."""
    assert len(FUNCTIONS) == len(set(FUNCTIONS)) == 425
    assert [SINCE[FUNCTIONS[last]] for last in (101, 102, 265, 266, 424)] == [1, 2, 16, 17, 29]


def test_functions_without_status_are_functions() -> None:
    """Every name is one of the table's."""
    assert set(FUNCTIONS) >= NO_STATUS
