"""Programs of loops whose scan outputs are as long as only the run shows."""

from __future__ import annotations

import pytest
from support.cpu_run import cpu_session

from sardonyx.providers.cpu.loop_program import LoopProgram

_BODY = "{body = graph(i: int64[], c: bool[], a: float[2, m]) -> (c, b, e) { b = Exp(a)\n e = Neg(a) }}"


def _loop(inputs: str, constants: str) -> LoopProgram:
    session = cpu_session(
        f"graph({inputs}x: float[2, m]) -> (y, s) {{ go: bool[] = 1\n {constants} y, s = Loop(n, go, x) {_BODY} }}"
    )
    (step,) = session._runner.built.plans[0].steps  # type: ignore[attr-defined]
    assert isinstance(step.program, LoopProgram)
    return step.program


def test_the_number_of_iterations_is_an_input() -> None:
    """Named by its place among the partition's inputs."""
    program = _loop("n: int64[], ", "")
    assert [name for name, _ in program.program.inputs][program.loop.trips] == "n"  # type: ignore[index]
    assert program.loop.is_exact


def test_open_sizes_of_slices_are_known() -> None:
    """The number of iterations, and those of the values that are stacked."""
    assert set(_loop("n: int64[], ", "").loop.open_dims.values()) == {(0, 2)}


@pytest.mark.parametrize("node", ["y = Exp(x)", "n: int64[] = 3 go: bool[] = 1 y, s = Loop(n, go, x) " + _BODY])
def test_what_has_known_lengths_is_a_plain_program(node: str) -> None:
    """Also a loop."""
    (step,) = cpu_session(f"graph(x: float[2, m]) -> (y) {{ {node} }}")._runner.built.plans[0].steps  # type: ignore[attr-defined]
    assert not isinstance(step.program, LoopProgram)
