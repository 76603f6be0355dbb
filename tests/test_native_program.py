"""The contract of programs that are called without Python."""

from __future__ import annotations

from support.session_models import MLP, session

from sardonyx.native_program import GrowingProgram, NativeProgram
from sardonyx.provider import Bound


class _Plain:
    """A program that says nothing of other shapes."""

    def native_call(self, bound: Bound) -> None:
        """Return nothing: only `run` will do."""


def test_programs_of_the_cpu_provider_grow() -> None:
    """Which `isinstance` shows."""
    program = session(MLP)._runner.built.executor.only.step.program
    assert isinstance(program, NativeProgram)
    assert isinstance(program, GrowingProgram)


def test_a_program_need_not_grow() -> None:
    """It may be called for the shapes that it is bound to only."""
    assert isinstance(_Plain(), NativeProgram)
    assert not isinstance(_Plain(), GrowingProgram)
