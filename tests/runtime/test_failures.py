"""What a provider's program does wrong names the provider."""

from __future__ import annotations

from typing import Any

import pytest

from sardonyx.errors import EPFail, InvalidArgument, SardonyxError
from sardonyx.provider import HOST
from sardonyx.runtime.failures import blame, check_count
from sardonyx.runtime.plan import ProgramStep


def _step() -> ProgramStep:
    program: Any = None
    return ProgramStep(program, "part_0", "Toy", HOST, (), (0, 1), ())


def test_what_is_no_error_of_ours_becomes_one() -> None:
    """With the provider, what it was doing, and what it raised as the cause."""
    cause = ValueError("no")
    with pytest.raises(EPFail, match="Toy failed to run its part: ValueError: no") as caught:
        blame(cause, _step(), "run its part")
    assert (caught.value.provider, caught.value.__cause__) == ("Toy", cause)


@pytest.mark.parametrize(("error", "provider"), [(EPFail("broken"), "Toy"), (InvalidArgument("wrong"), "")])
def test_errors_of_ours_pass_as_they_are(error: SardonyxError, provider: str) -> None:
    """A provider's own failure is blamed on it; what a user did wrong is not."""
    blame(error, _step(), "run its part")
    assert error.provider == provider


def test_there_is_a_value_for_each_output() -> None:
    """Neither fewer nor more."""
    check_count(2, _step(), "returned {} values")
    with pytest.raises(EPFail, match="Toy returned 3 values for partition part_0, expected 2"):
        check_count(3, _step(), "returned {} values")
