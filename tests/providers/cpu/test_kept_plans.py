"""Plans as bytes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sardonyx.codegen.target import host_target
from sardonyx.dtypes import DataType
from sardonyx.errors import Fail
from sardonyx.formats.plain_graph import PlainReader, PlainWriter
from sardonyx.ir import Dim, Expr, Node, TensorType, Value
from sardonyx.ir.shape import anonymous, symbol
from sardonyx.providers.cpu.kept_plans import KeptFunction, KeptFunctions, Lowered, NotKept, write_function
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.precision import Precision
from sardonyx.providers.cpu.rebind import TracedSizes
from sardonyx.providers.cpu.recorded import RecordedSizes, Recorder
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer

_LOWERED = Lowered(host_target(None), 3, Precision.HIGH)


def _no_tensor(*about: object) -> Any:  # no test has a tensor
    raise AssertionError(about)


def _again(function: Callable[..., Any], kept: tuple[Buffer, ...] = (), others: tuple[Buffer, ...] = ()) -> Callable[..., Any]:
    """The function in another process, where `others` are the buffers that `kept` are here."""
    content = write_function(function, {buffer: number for number, buffer in enumerate(kept)}, PlainWriter({}))
    return KeptFunctions(others, _LOWERED, PlainReader(_no_tensor)).add(content)()


@pytest.fixture(autouse=True)
def _is_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sardonyx.providers.cpu.kept_plans._OWN_MODULES", ("sardonyx.", __name__))


def test_what_a_plan_refers_to_goes_along() -> None:
    """Numbers, dimensions, other functions, and defaults."""
    n: Dim = symbol("n")

    def inner(sizes: Sizes, step: int, *, more: int = 5) -> int:
        return sizes(n * 2) // step + more

    def plan(sizes: Sizes, start: int = 7) -> tuple[list[int], int]:
        return [inner(sizes, 3), start], 4

    assert _again(plan)(Sizes({"n": 30})) == plan(Sizes({"n": 30})) == ([25, 7], 4)


def test_dimensions_are_found_by_their_hash() -> None:
    """Hashes of texts differ between processes; an unknown dimension is the same one wherever it occurs."""
    unknown = anonymous()
    named: Dim = symbol("n") % 4
    reader = PlainReader(_no_tensor)
    content = write_function(lambda: (unknown, unknown + 1, named), {}, PlainWriter({}))
    one, more, other = KeptFunctions((), _LOWERED, reader).add(content)()()
    assert more == one + 1
    assert isinstance(one, Expr)
    assert reader.dim(str(unknown)) == one
    assert {named: 1}[other] == 1


def test_a_buffer_is_the_one_of_its_number() -> None:
    """One without a number is another one that is alike."""
    one, free, other = (Buffer(DataType.FLOAT, (size,)) for size in (1, 2, 3))
    found, alike = _again(lambda: (one, free), (one,), (other,))()
    assert found is other
    assert (alike.dtype, alike.shape) == (free.dtype, free.shape)


def test_a_lowering_is_what_plans_ask_of_it() -> None:
    """Its target, threads and precision are those of the process that reads."""
    low = Lowering(host_target("portable"), 8)
    target = low.target
    found, own = _again(lambda: (low, target))()
    assert found == _LOWERED
    assert own is _LOWERED.target


def test_nodes_and_values_say_what_they_are() -> None:
    """For messages; what they are connected with is gone."""
    value = Value("x", TensorType(DataType.FLOAT, (symbol("n"), 3)))
    node = Node("Relu", [value, None], [Value("y")], {"a": 1}, version=14, name="called")
    found, source = _again(lambda: (node, value))()
    assert found.place == node.place
    assert (source.name, source.dtype, source.shape) == (value.name, value.dtype, value.shape)
    assert found.inputs[0].type == value.type
    assert found.inputs[1] is None


def test_what_cannot_be_kept_is_refused() -> None:
    """Many elements, functions of other packages, and what has no form outside of the process."""
    weights = np.zeros(10_000)
    lock = __import__("threading").Lock()
    foreign: Any = eval("lambda: 1", {"__name__": "elsewhere"})
    for function in (lambda: weights, lambda: lock, lambda: foreign()):
        with pytest.raises(NotKept):
            write_function(function, {}, PlainWriter({}))


def test_functions_are_read_together() -> None:
    """When the first of them is asked for; each is the one that was added."""
    functions = KeptFunctions((), _LOWERED, PlainReader(_no_tensor))
    first, second = (functions.add(write_function(_number(number), {}, PlainWriter({}))) for number in (3, 5))
    assert (second()(), first()()) == (5, 3)
    assert first() is first()


def _number(number: int) -> Callable[[], int]:
    return lambda: number


def test_a_module_is_not_imported_from_other_files_than_those_that_the_process_began_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """An upgrade under a running process must not mix two versions; what is imported already is used."""
    content = write_function(_plan_of([]), {}, PlainWriter({}))
    monkeypatch.setattr("sardonyx.providers.cpu.kept_plans.has_changed", lambda package: True)
    assert KeptFunctions((), _LOWERED, PlainReader(_no_tensor)).add(content)()(Sizes({"n": 3})) == 4
    monkeypatch.delitem(sys.modules, __name__)
    with pytest.raises(Fail, match="start the process anew"):
        KeptFunctions((), _LOWERED, PlainReader(_no_tensor)).add(content)()


def test_a_function_that_calls_itself_is_refused() -> None:
    """It has no end."""

    def plan(number: int) -> int:
        return plan(number - 1) if number else 0

    with pytest.raises(NotKept):
        write_function(plan, {}, PlainWriter({}))


def _plan_of(asked: list[str]) -> Callable[[Sizes], int]:
    def plan(sizes: Sizes) -> int:
        asked.append("called")
        return sizes(symbol("n")) + 1  # type: ignore[arg-type]

    return plan


def test_a_known_result_needs_no_function() -> None:
    """For other sizes it is read once."""
    asked: list[str] = []
    read: list[str] = []

    def reads() -> Callable[[Sizes], int]:
        read.append("read")
        return _plan_of(asked)

    kept = KeptFunction({"n": 1}, 2, (symbol("n"),), reads)
    assert (kept(Sizes({"n": 1})), read, asked) == (2, [], [])
    assert [kept(Sizes({"n": number})) for number in (5, 6)] == [6, 7]
    assert (read, asked) == (["read"], ["called"] * 2)


def test_a_known_result_says_what_it_depends_on() -> None:
    """Whoever traces sizes sees those that the function asks for."""
    sizes = TracedSizes({"n": 1})
    KeptFunction({"n": 1}, 2, (symbol("n"),), lambda: _plan_of([]))(sizes)
    assert sizes.take_asked() == {symbol("n")}


def test_recorded_sizes_are_computed_with() -> None:
    """A known result would say nothing of how it is computed."""
    recorder = Recorder()
    found: Any = KeptFunction({"n": 1}, 2, (), lambda: _plan_of([]))(RecordedSizes({"n": 1}, ["n"], recorder))
    assert recorder.function([found])(9) == (10,)


def test_a_function_without_a_known_result_is_read() -> None:
    """Whatever the sizes are."""
    kept: KeptFunction[int] = KeptFunction(None, None, (), lambda: _plan_of([]))
    assert kept(Sizes({"n": 1})) == 2
