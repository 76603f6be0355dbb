"""Where tensors lie over time."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.models import model
from support.providers import FusingProvider
from support.sessions import settings_of

from sardonyx.inspection.graph_facts import Facts
from sardonyx.inspection.memory_facts import memory_facts
from sardonyx.partition.part import Cut
from sardonyx.provider import Provider
from sardonyx.providers.cpu.provider import create
from sardonyx.providers.reference.provider import ReferenceProvider
from sardonyx.session.stages.assign import assign_model
from sardonyx.session.stages.compile import compile_model
from sardonyx.session.stages.load import load
from sardonyx.session.stages.prepare import prepare
from sardonyx.session.stages.provider_list import ProviderList
from sardonyx.session.stages.source import Source

CHAIN = """graph(x: float[n, 64]) -> (y: float[n, 64]) {
w: float[64, 64] = ... 1
v: float[64, 64] = ... 2
a = MatMul(x, w) @one
b = Softmax(a) @two
c = MatMul(b, v) @three
y = Softmax(c) @four
}"""


def facts_of(text: str, inputs: list[Any], *providers: Provider) -> Facts:
    settings = settings_of()
    found = ProviderList.of([*providers, ReferenceProvider()])
    prepared = prepare(load(Source.of(model(text)), settings.load), settings, found)
    assigned = assign_model(prepared, settings, found)
    names = [[value.name for value in stage.partition.outputs] for stage in assigned.main.stages if isinstance(stage, Cut)]
    return memory_facts(compile_model(assigned, settings, prepared.defaults).plan, names, inputs)


def test_kernels_of_a_program_are_steps_with_their_tensors() -> None:
    """Tensors that live at the same time do not overlap, and lie in the arena."""
    facts = facts_of(CHAIN, [np.zeros((16, 64), np.float32)], create({}))
    assert len(facts["steps"]) >= 4
    assert any('"three"' in step for step in facts["steps"])
    arena = [block for block in facts["blocks"] if block["kind"] == "arena"]
    assert arena
    for one in arena:
        assert one["offset"] + one["bytes"] <= facts["arena_bytes"]
        for other in arena:
            alive = one is not other and one["first"] <= other["last"] and other["first"] <= one["last"]
            assert not alive or one["offset"] + one["bytes"] <= other["offset"] or other["offset"] + other["bytes"] <= one["offset"]


def test_the_output_has_memory_of_its_own() -> None:
    """It is the caller's."""
    facts = facts_of(CHAIN, [np.zeros((16, 64), np.float32)], create({}))
    own = [block for block in facts["blocks"] if block["kind"] == "own"]
    assert [(block["name"], block["bytes"]) for block in own] == [("y", 16 * 64 * 4)]


def test_programs_that_make_their_outputs_are_one_step() -> None:
    """What they make lives until its last reader has run."""
    facts = facts_of(
        "graph(x: float[4]) -> (y: float[4]) {\na = Neg(x)\nb = Exp(a)\ny = Abs(b)\n}",
        [np.zeros(4, np.float32)],
        FusingProvider(["Exp"]),
    )
    assert len(facts["steps"]) == 3
    assert [(block["name"], block["first"], block["last"]) for block in facts["blocks"]] == [("a", 0, 1), ("b", 1, 2), ("y", 2, 2)]
    assert facts["arena_bytes"] == 0
