"""Steps that nothing reads are dropped."""

from sardonyx.dtypes import DataType
from sardonyx.providers.cpu.liveness import live_steps
from sardonyx.providers.cpu.steps import Buffer, KernelLaunch


def _step(name: str, read: list[Buffer], written: Buffer) -> KernelLaunch:
    return KernelLaunch(name, "", name, (*read, written), (len(read),), lambda sizes: ([], 1))


def test_only_what_outputs_depend_on_is_kept() -> None:
    """Through views, and with all steps that write a part of what is read."""
    x, a, b, c, dead = (Buffer(DataType.FLOAT, (4,)) for _ in range(5))
    half, view = Buffer(DataType.FLOAT, (2,), base=b, offset=2), Buffer(DataType.FLOAT, (2, 2), base=a)
    steps = [_step("a", [x], a), _step("dead", [a], dead), _step("b", [view], b), _step("half", [x], half), _step("c", [b], c)]
    assert [step.name for step in live_steps(steps, [c])] == ["a", "b", "half", "c"]
    assert [step.name for step in live_steps(steps, [a])] == ["a"]
    assert live_steps(steps, [x]) == []
