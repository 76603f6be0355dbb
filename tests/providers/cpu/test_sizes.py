"""What symbols are in one binding."""

import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.ir import Shape, symbol
from sardonyx.providers.cpu.sizes import Sizes, first_alike, solvable_symbols, solve

_N, _S = symbol("n"), symbol("s")


def test_dimensions_are_evaluated() -> None:
    """Numbers, symbols, and expressions of them."""
    sizes = Sizes({"n": 2, "s": 5})
    assert [sizes(dim) for dim in (7, _N, _N * _S + 1, _S // 2)] == [7, 2, 11, 2]
    assert sizes.shape((_N, 3, _S)) == (2, 3, 5)
    assert sizes.product((_N, 3, _S)) == 30
    assert sizes.product(()) == 1


def test_only_dimensions_that_are_symbols_tell_sizes() -> None:
    """An expression of a symbol does not."""
    assert solvable_symbols([(_N, 3), (_S + 1, 2 * _N)]) == {"n"}


def test_symbols_follow_from_the_shapes_of_inputs() -> None:
    """The first input that shows a symbol decides it, those that follow are checked."""
    sizes = solve(["x", "y"], [(_N, 3), (_N * _S, _S)], [(2, 3), (8, 4)])
    assert (sizes(_N), sizes(_S)) == (2, 4)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([(2, 4), (8, 4)], r"x was compiled with shape \(n, 3\), got \(2, 4\)"),
        ([(2, 3, 1), (8, 4)], r"x was compiled with shape \(n, 3\), got \(2, 3, 1\)"),
        ([None, (8, 4)], r"x was compiled with shape \(n, 3\), got None"),
        ([(2, 3), (9, 4)], r"y has a dimension 9 where the other inputs' sizes make n\*s = 8"),
    ],
)
def test_shapes_that_contradict_what_was_compiled(given: list[tuple[int, ...] | None], message: str) -> None:
    """They are errors that name the input."""
    with pytest.raises(InvalidArgument, match=message):
        solve(["x", "y"], [(_N, 3), (_N * _S, _S)], given)


def test_inputs_with_elements_decide_the_sizes_of_those_without() -> None:
    """What a Loop gave without an iteration is 0 along axes that others show to be longer, whichever comes first."""
    trips = symbol("trips")
    for order in (1, -1):
        sizes = solve(["a", "b"][::order], [(trips, _N, 5), (_N, 5)][::order], [(0, 0, 5), (3, 5)][::order])
        assert sizes.shape((trips, _N, 5)) == (0, 3, 5)
        sizes = solve(["a", "b"][::order], [(trips, _N, 0), (_N, 0)][::order], [(0, 0, 0), (3, 0)][::order])
        assert sizes.shape((trips, _N, 0)) == (0, 3, 0)


@pytest.mark.parametrize(
    ("declared", "given"),
    [
        ([(_N, 3), (_N,)], [(0, 3), (2,)]),
        ([(_S, _N), (_N,)], [(0, 4), (2,)]),
        ([(_N, 0), (_N, 0)], [(3, 0), (4, 0)]),
        ([(_N,), (_N,)], [(1,), (2,)]),
    ],
)
def test_inputs_without_elements_keep_the_sizes_that_they_have(declared: list[Shape], given: list[tuple[int, ...]]) -> None:
    """One that would have elements by the others' sizes, or has another size than 0, contradicts them."""
    with pytest.raises(InvalidArgument, match="where the other inputs' sizes make n = "):
        solve(["a", "b"], declared, given)


def test_what_does_not_follow_is_not_checked() -> None:
    """A dimension with a symbol that no input shows may be anything."""
    sizes = solve(["x"], [(_S + 1, _N)], [(5, 2)])
    assert sizes(_N) == 2
    with pytest.raises(KeyError):
        sizes(_S)


def test_items_that_are_alike_have_one_first_place() -> None:
    """The place of the first that equals them."""
    assert first_alike([]) == []
    assert first_alike([(_N, 3), (_S,), (_N, 3), (_S,), (_N,)]) == [0, 1, 0, 1, 4]


def test_inputs_of_one_shape_are_looked_at_once() -> None:
    """Where they have the size of the first; another one is refused as ever."""
    declared = [(_N, 3), (_N, 3), (_S,)]
    alike = first_alike(declared)
    assert solve(["a", "b", "c"], declared, [(2, 3), (2, 3), (5,)], alike=alike).symbols == {"n": 2, "s": 5}
    for wrong in ((4, 3), (2, 4), (2,), None):
        with pytest.raises(InvalidArgument, match="b "):
            solve(["a", "b", "c"], declared, [(2, 3), wrong, (5,)], alike=alike)
