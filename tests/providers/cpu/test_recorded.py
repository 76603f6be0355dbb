"""Integers that record how they are computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from sardonyx.ir import Dim
from sardonyx.ir.shape import ceil_div, maximum, minimum, symbol
from sardonyx.providers.cpu.recorded import Recorded, RecordedSizes, Recorder, Replay

N, M = symbol("n"), symbol("m")

DIMS = {
    "sum": N + 3,
    "product": 2 * N * M + N,
    "square": N * N,
    "quotient": ceil_div(N, 16),
    "rest": (N + M) % 7,
    "greater": maximum(N, M + 1),
    "smaller": minimum(N, M + 30),
    "divisor": N // M,
}


def recorded(dims: list[Dim], n: int, m: int) -> tuple[list[Recorded], Replay]:
    """Return dimensions with n and m recorded, and the function of both that gives them."""
    recorder = Recorder()
    sizes = RecordedSizes({"n": n, "m": m}, ("n", "m"), recorder)
    found = [cast(Recorded, sizes(dim)) for dim in dims]
    return found, recorder.function(found)


@pytest.mark.parametrize("name", DIMS)
def test_a_dimension_is_computed_for_other_sizes(name: str) -> None:
    """As it would be of plain sizes, or not at all where a comparison turns out otherwise."""
    (found,), replay = recorded([DIMS[name]], 20, 4)
    assert replay(20, 4) == (found.value,)
    answers = 0
    for n in range(40):
        for m in range(1, 6):
            (plain,), _ = recorded([DIMS[name]], n, m)
            answer = replay(n, m)
            assert answer in (None, (plain.value if isinstance(plain, Recorded) else plain,))
            answers += answer is not None
    assert answers > 40


OPERATIONS: dict[str, Callable[[int], int]] = {
    "reversed": lambda n: 100 - n,
    "divides": lambda n: 100 // n,
    "remains": lambda n: 100 % n,
    "masked": lambda n: (n + 70 & -16) + (-16 & n),
    "shifted": lambda n: (n << 3) + (n >> 1),
    "negative": lambda n: -n * -3,
    "compares": lambda n: n + 1 if n > 5 else n + 2,
    "equal": lambda n: n * 2 if n == 20 else n,
    "not equal": lambda n: n * 2 if n != 20 else n,
    "truth": lambda n: n * 2 if n else 7,
    "greatest": lambda n: max(n, 10, 3) + min(n, 5),
    "least": lambda n: n if n <= 20 else 3,
    "at least": lambda n: n if n >= 21 else n - 1,
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_and_comparisons_are_followed(name: str) -> None:
    """What is recorded of a number is what Python computes with the number, for all that decide alike."""
    operation, recorder = OPERATIONS[name], Recorder()
    result = operation(cast(int, recorder.symbol(20)))
    replay = recorder.function([cast(Recorded, result)])
    for n in range(1, 40):
        answer = replay(n)
        assert answer in (None, (operation(n),))
    assert replay(20) == (operation(20),)


def test_what_is_computed_twice_is_recorded_once() -> None:
    """Since the steps of the layers of a model do the same."""
    recorder = Recorder()
    n = recorder.symbol(3)
    assert (n * 4 + 1).name == (n * 4 + 1).name
    assert (n * 1).name == (n + 0).name == (n - 0).name == (n // 1).name == n.name


_MISUSES = [hash, range, float, lambda n: [1, 2, 3, 4][n], lambda n: 1 / n, lambda n: {n: 1}, lambda n: n * 1.5, lambda n: n < 3.5]


@pytest.mark.parametrize("use", _MISUSES)
def test_what_cannot_be_recorded_is_refused(use: Callable[[Recorded], object]) -> None:
    """A number may be no index, no key and no float: what was recorded would hold for other sizes too."""
    with pytest.raises(TypeError):
        use(Recorder().symbol(3))


def test_a_bound_of_64_bits_is_no_condition() -> None:
    """What does not fit is found where it is written."""
    recorder = Recorder()
    n = recorder.symbol(3)
    assert -(1 << 63) <= n <= (1 << 63) - 1
    assert recorder.function([n])(1 << 70) == (1 << 70,)
