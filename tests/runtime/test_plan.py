"""Plans: slots, lifetimes and segments."""

from __future__ import annotations

from support.models import graph
from support.providers import DeviceProvider, FusingProvider

from sardonyx.ir.walk import captured_values
from sardonyx.partition.assign import assign
from sardonyx.partition.cut import cut
from sardonyx.partition.transfers import insert_transfers
from sardonyx.runtime.plan import CopyStep, Plan, ProgramStep, make_plan


def make(text: str, device_operators: set[str], host_operators: set[str]) -> Plan:
    """The plan of a graph of which a pretended device runs some operators."""
    held = graph(text)
    units = assign(held, [DeviceProvider(device_operators), FusingProvider(host_operators, fuse=False)]).units
    parts, _ = cut(held, units)
    return make_plan(held, (), insert_transfers(held, parts), lambda part: part.provider.compile(part.partition, _no_body))


def _no_body(body: object) -> object:
    raise KeyError(body)


MIXED = "graph(x: float[2]) -> (y: float[2]) {\na = Exp(x)\nb = Relu(a)\nc = Exp(b)\ny = Neg(c)\n}"


def test_copies_stand_between_the_programs() -> None:
    """Host, copy, device, copy, host, copy, device, copy."""
    kinds = [type(step).__name__ for step in make(MIXED, {"Relu", "Neg"}, {"Exp"}).steps]
    assert kinds == ["ProgramStep", "CopyStep"] * 4


def test_a_slot_is_freed_by_its_last_reader() -> None:
    """Every slot that is neither an input nor an output is freed once."""
    plan = make(MIXED, {"Relu", "Neg"}, {"Exp"})
    freed = [slot for step in plan.steps for slot in step.frees]
    assert sorted([*freed, *plan.inputs, *plan.outputs]) == list(range(plan.slot_count))


def test_a_captured_value_is_not_freed() -> None:
    """It is the outer graph's, and a body may run again."""
    held = graph("""graph(c: bool[], x: float[2]) -> (y: float[2]) {
        y = If(c) {then_branch = graph() -> (t) {
            a = Exp(x)
            t = Exp(a)
        }, else_branch = graph() -> (x) {
        }}
    }""")
    body = next(iter(held)).subgraphs[0]
    captures = list(captured_values(body))
    parts, _ = cut(body, assign(body, [FusingProvider({"Exp"}, fuse=False)]).units)
    plan = make_plan(body, captures, insert_transfers(body, parts), lambda part: part.provider.compile(part.partition, _no_body))
    assert len(plan.captures) == 1
    assert not {*plan.captures} & {slot for step in plan.steps for slot in step.frees}


def test_segments_end_where_a_program_makes_its_outputs() -> None:
    """The reference program's shapes are known only when it has run; the device's follow from its inputs."""
    plan = make(MIXED, {"Relu", "Neg"}, {"Exp"})
    found = [(segment.start, segment.stop, segment.trivial) for segment in plan.segments]
    assert found == [(0, 1, True), (1, 5, False), (5, 8, False)]


def test_a_constant_output_has_its_slot_filled() -> None:
    """A graph may give out an initializer as it is."""
    plan = make("graph(x: float[2]) -> (k: float[2]) {\nk: float[2] = [1, 2]\n}", set(), set())
    assert [array.tolist() for _, array in plan.constants] == [[1, 2]]
    assert plan.steps == ()


def test_an_input_may_be_an_output() -> None:
    """Both have one slot."""
    plan = make("graph(x: float[2]) -> (x) {\n}", set(), set())
    assert plan.inputs == plan.outputs


def test_steps_name_their_partition_and_memories() -> None:
    """Reports and copies find what they need."""
    plan = make(MIXED, {"Relu", "Neg"}, {"Exp"})
    assert {memory.name for memory in plan.memories} == {"cpu", "pretended:0"}
    first, second = plan.steps[0], plan.steps[1]
    assert isinstance(first, ProgramStep)
    assert first.provider == "FusingProvider"
    assert isinstance(second, CopyStep)
    assert (second.source_memory.name, second.target_memory.name) == ("cpu", "pretended:0")
