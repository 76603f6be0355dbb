"""The machine code of calls from Python; what it does is tested through sessions (tests/session/test_native_run.py)."""

from __future__ import annotations

import pytest

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.run.python_call import write_run, write_run_bound
from sardonyx.codegen.run.python_words import BLOCK, BOUND, ENTRY, GROWTH, INPUT, LANE, OUTPUT, POOL, SHAPES
from sardonyx.codegen.target import available_levels, host_target


@pytest.mark.parametrize("level", available_levels())
def test_both_functions_compile_for_every_level(level: str) -> None:
    """And call nothing that a process may lack."""
    engine = Engine(host_target(level))
    module = Module(engine.target)
    write_run(module, "run")
    engine.add(module)
    other = Module(engine.target)
    write_run_bound(other, "bound")
    engine.add(other)
    assert set(engine.symbols) == {"run", "bound"}


@pytest.mark.parametrize("record", [ENTRY, INPUT, OUTPUT, SHAPES, GROWTH, LANE, BOUND, POOL, BLOCK])
def test_no_word_of_a_record_stands_twice(record: tuple[str, ...]) -> None:
    """Names are places."""
    assert len(set(record)) == len(record)
