"""Bindings that are kept with their programs."""

from __future__ import annotations

import marshal
from typing import Any

import numpy as np
import pytest
from support.cpu_run import cpu_session

from sardonyx.codegen.target import host_target
from sardonyx.formats.plain_graph import KeptProgram
from sardonyx.providers.cpu import kept as kept_module
from sardonyx.providers.cpu.kept import keep_program, restore_program
from sardonyx.providers.cpu.precision import Precision

_FIXED = """graph(x: float[4, 6]) -> (y: float[4, 5], s: float[4, 1]) {
    w: float[6, 5] = ... 1
    b: float[5] = ... 2
    p = Gemm(x, w, b)
    y = Softmax(p)
    s = ReduceMean(p) {axes = [1]} }"""
_OPEN = _FIXED.replace("[4,", "[n,")
_COUNTED = "graph(x: float[4]) -> (y: int64[1, k]) { y = NonZero(x) }"


def _pair(text: str, *, opset: int = 13) -> tuple[Any, Any]:
    """A program, and what another process makes of it."""
    (step,) = cpu_session(text, opset=opset)._runner.built.plans[0].steps  # type: ignore[attr-defined]
    kept = keep_program(step.program, host_target(), Precision.HIGHEST)
    plain = marshal.loads(marshal.dumps(kept.plain))
    return step.program, restore_program(KeptProgram(plain, [array.copy() for array in kept.arrays]), host_target(), 1)


def _run(program: Any, *inputs: Any) -> list[Any]:
    bound = program.bind(tuple([array.shape for array in inputs]))
    outputs = [np.empty(spec.shape, spec.dtype.numpy) for spec in bound.outputs]
    scratch = np.empty(max(bound.scratch_bytes, 1), np.uint8)
    return list(program.run(bound, list(inputs), outputs, scratch))


@pytest.fixture
def no_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """No step of a program is made again."""
    monkeypatch.setattr(kept_module, "_Reader", lambda *about: pytest.fail("steps were made"))


@pytest.mark.usefixtures("no_steps")
@pytest.mark.parametrize(("text", "rows"), [(_FIXED, 4), (_OPEN, 1)])
def test_a_restored_program_runs_before_its_steps_are_made(text: str, rows: int) -> None:
    """With the sizes of the model, or 1 for those that are open; it gives the same bits, run after run."""
    first, second = _pair(text)
    for seed in range(3):
        x = np.random.default_rng(seed).standard_normal((rows, 6)).astype(np.float32)
        for found, expected in zip(_run(second, x), _run(first, x), strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.usefixtures("no_steps")
def test_what_the_runtime_asks_first_needs_no_steps() -> None:
    """Its constants, what may share memory, and whether it makes its outputs."""
    first, second = _pair(_FIXED)
    assert second.memory_held()
    assert (second.shares, second.makes_outputs, second.output_count) == (first.shares, first.makes_outputs, first.output_count)


def test_the_source_of_random_numbers_is_that_of_the_process() -> None:
    """A program that draws from it has no binding that is kept: its words lie elsewhere in the next process."""
    _, second = _pair("graph(x: float[4]) -> (y: float[4]) { y = RandomNormalLike(x) }")
    assert second._linked.ready is None
    x = np.zeros(4, np.float32)
    assert (_run(second, x)[0] != _run(second, x)[0]).any()


def test_other_sizes_are_planned() -> None:
    """As in the process that compiled it."""
    first, second = _pair(_OPEN)
    for rows in (3, 1, 17, 1):
        x = np.random.default_rng(rows).standard_normal((rows, 6)).astype(np.float32)
        for found, expected in zip(_run(second, x), _run(first, x), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_bindings_are_independent() -> None:
    """Two of them run with arenas and tables of their own."""
    _, program = _pair(_FIXED)
    bounds = [program.bind(((4, 6),)) for _ in range(2)]
    assert bounds[0].data.copy().address != bounds[1].data.copy().address
    assert bounds[0].data.take().table.address != bounds[1].data.take().table.address


def test_results_whose_size_the_run_shows_have_no_ready_binding() -> None:
    """The program plans its steps."""
    first, second = _pair(_COUNTED)
    assert second.bind(((4,),)).counted == first.bind(((4,),)).counted
