"""What a provider's program does wrong, told as an error that names the provider and the partition."""

from __future__ import annotations

from sardonyx.errors import EPFail, SardonyxError, blamed
from sardonyx.runtime.plan import ProgramStep, Step

__all__ = ["blame", "check_count"]


def blame(error: Exception, step: Step, doing: str) -> None:
    """Name the provider of `step` in what it raised, which the caller raises again; what is no SardonyxError becomes one.

    Raises:
        EPFail: in place of an error that is not ours; it says what it was doing.
    """
    if isinstance(error, EPFail):
        blamed(error, step.provider)
    elif not isinstance(error, SardonyxError):
        message = f"{step.provider} failed to {doing}: {type(error).__name__}: {error}"
        raise blamed(EPFail(message), step.provider) from error


def check_count(count: int, step: ProgramStep, made: str) -> None:
    """Raise EPFail where the program of `step` made so many values or sizes, but not one for each output."""
    if count != len(step.outputs):
        message = f"{step.provider} {made.format(count)} for partition {step.name}, expected {len(step.outputs)}"
        raise blamed(EPFail(message), step.provider)
