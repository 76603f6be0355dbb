"""The machine code that makes results; what it does is tested through sessions (tests/session/test_native_growth.py)."""

from __future__ import annotations

import pytest

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.run.python_results import BLOCK_OFFSET, write_give_back
from sardonyx.codegen.run.python_words import BLOCK
from sardonyx.codegen.target import available_levels, host_target


@pytest.mark.parametrize("level", available_levels())
def test_the_destructor_of_blocks_compiles_for_every_level(level: str) -> None:
    """And calls nothing that a process may lack."""
    engine = Engine(host_target(level))
    module = Module(engine.target)
    write_give_back(module, "give_back")
    engine.add(module)
    assert set(engine.symbols) == {"give_back"}


def test_the_words_of_a_block_lie_before_it() -> None:
    """In the bytes that align it."""
    assert 8 * len(BLOCK) <= BLOCK_OFFSET
