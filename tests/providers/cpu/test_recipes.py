"""Plans as data."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.formats.plain_graph import PlainReader
from sardonyx.ir import Dim
from sardonyx.ir.shape import symbol
from sardonyx.providers.cpu.rebind import TracedSizes
from sardonyx.providers.cpu.recipes import Recipes, likely_sizes, write_recipes
from sardonyx.providers.cpu.recorded import RecordedSizes, Recorder
from sardonyx.providers.cpu.sizes import Sizes

_N: Dim = symbol("n")
_M: Dim = symbol("m")
_Function = Callable[[Sizes], "tuple[int, ...]"]


def _no_tensor(*about: object) -> object:
    raise AssertionError(about)


def _recipes(function: _Function, *names: str) -> Recipes:
    return Recipes(write_recipes(function, likely_sizes(names)), PlainReader(_no_tensor).dim)  # type: ignore[arg-type]


def _blocks(sizes: Sizes) -> tuple[int, ...]:
    n, m = sizes(_N), sizes(_M)
    step = 4 if n < 16 else 32
    return n * m, -(-n // step), (m >> 1) % 7 if m else 0, -5


def test_a_recipe_gives_what_the_function_gives() -> None:
    """On both sides of its conditions."""
    recipes = _recipes(_blocks, "n", "m")
    for n in (0, 1, 2, 15, 16, 17, 33, 5000):
        for m in (1, 2, 3, 77):
            sizes = Sizes({"n": n, "m": m})
            assert recipes.words(sizes) == _blocks(sizes)


def test_a_condition_that_never_held_before_is_not_answered() -> None:
    """The function itself has to be read."""
    recipes = _recipes(lambda sizes: (1 if sizes(_N) > 10**6 else 0,), "n")
    assert recipes.words(Sizes({"n": 10**6})) == (0,)
    assert recipes.words(Sizes({"n": 10**6 + 1})) is None


def test_a_division_by_a_size_of_0_is_not_answered() -> None:
    """What the function does then, it does itself."""
    assert _recipes(lambda sizes: (8 // sizes(_N),), "n").words(Sizes({"n": 0})) is None


def test_a_size_that_is_not_known_is_not_answered() -> None:
    """As where two inputs contradict one another."""
    assert _recipes(_blocks, "n", "m").words(Sizes({"n": 3})) is None


@pytest.mark.parametrize(
    "function",
    [
        lambda sizes: ([5, 7, 9][sizes(_N) % 3],),
        lambda sizes: (len(range(sizes(_N))),),
        lambda sizes: ({1: 5}.get(sizes(_N), 6),),
    ],
)
def test_what_cannot_be_recorded_has_no_recipe(function: _Function) -> None:
    """A size that is an index, a count or a key."""
    assert write_recipes(function, likely_sizes(["n"])) == b""
    assert Recipes(b"", PlainReader(_no_tensor).dim).words(Sizes({"n": 3})) is None  # type: ignore[arg-type]


def test_sizes_that_a_plan_refuses_have_no_recipe() -> None:
    """Those that it takes do."""

    def plan(sizes: Sizes) -> tuple[int, ...]:
        if sizes(_N) % 2:
            raise InvalidArgument("odd")
        return (sizes(_N) // 2,)

    recipes = _recipes(plan, "n")
    assert recipes.words(Sizes({"n": 18})) == (9,)
    assert recipes.words(Sizes({"n": 19})) is None


def test_only_what_the_function_asks_for_is_asked() -> None:
    """Whoever traces sizes sees what a result depends on."""
    sizes = TracedSizes({"n": 5, "m": 6})
    assert _recipes(lambda sizes: (sizes(_M) + 1,), "n", "m").words(sizes) == (7,)
    assert sizes.take_asked() == {_M}


def test_recorded_sizes_are_computed_with() -> None:
    """What a recipe gives can be recorded as what the function gives can, words that are floats too."""

    def plan(sizes: Sizes) -> tuple[int, ...]:
        return sizes(_N) * 3 if sizes(_N) > 4 else 0, sizes.float_word(_N)

    recorder = Recorder()
    words = _recipes(plan, "n").words(RecordedSizes({"n": 9}, ["n"], recorder))
    replay = recorder.function(list(words))  # type: ignore[arg-type]
    assert replay(12) == plan(Sizes({"n": 12}))
    assert replay(2) is None


def test_likely_sizes_of_few_symbols_are_mixed() -> None:
    """A batch of 1 of a long text is likely; with many symbols there would be too many."""
    assert {"n": 1, "m": 128} in likely_sizes(["n", "m"])
    assert all(len(set(sizes.values())) == 1 for names in (["n"], list("abcdef")) for sizes in likely_sizes(names))
