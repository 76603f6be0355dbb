"""The program of a partition."""

import pytest
from support.cpu_run import cpu_session

from sardonyx.providers.cpu.loop_program import LoopProgram
from sardonyx.providers.cpu.program import CpuProgram

_COUNTING = """graph(n: int64[], x: float[2]) -> (y: float[2], s) {
    c: bool[] = [1]
    y, s = Loop(n, c, x) {body = graph(i: int64[], on: bool[], a: float[2]) -> (go, b, each) {
        go = Identity(on)
        b = Exp(a)
        each = Neg(a) }} }"""


@pytest.mark.parametrize(
    ("body", "kind"),
    [("graph(x: float[n]) -> (y: float[n]) { y = Exp(x) }", CpuProgram), (_COUNTING, LoopProgram)],
)
def test_a_partition_is_compiled_to_a_program_of_its_kind(body: str, kind: type) -> None:
    """A Loop with scan outputs whose length only the run shows has one of its own."""
    (step,) = cpu_session(body)._runner.built.plans[0].steps
    assert type(step.program) is kind  # type: ignore[union-attr]
