"""Sizes that elements of inputs say."""

from __future__ import annotations

import numpy as np
import pytest
from support.cpu_run import cpu_session, declined

from sardonyx.errors import InvalidArgument
from sardonyx.providers.cpu.value_sizes import ValueSizes


def _sizes(body: str) -> ValueSizes:
    (step,) = cpu_session(body)._runner.built.plans[0].steps  # type: ignore[attr-defined]  # of a private base
    sizes: ValueSizes = step.program.sizes
    return sizes


def test_inputs_are_known_by_their_place_and_constants_by_their_elements() -> None:
    """A limit that is fed between two numbers of the model."""
    sizes = _sizes("graph(n: int64[]) -> (y) { a: int64[] = 2 c: int64[] = 3 y = Range(a, n, c) }")
    first, limit, step = sizes.given
    assert (int(first), limit, int(step)) == (2, 0, 3)  # type: ignore[arg-type]  # two constants
    assert sizes.read([np.array(9)]) == (3,)


def test_a_shape_says_each_of_its_sizes() -> None:
    """In order; another number of them is an error."""
    sizes = _sizes("graph(s: int64[2]) -> (y) { y = ConstantOfShape(s) }")
    assert sizes.read([np.array([4, 5])]) == (4, 5)
    assert list(sizes.known((4, 5)).values()) == [4, 5]
    with pytest.raises(InvalidArgument, match=r"ConstantOfShape.*say a shape of \[4\]"):
        sizes.known((4,))


def test_one_size_is_that_of_the_new_axis() -> None:
    """The others are those of the indices."""
    sizes = _sizes("graph(i: int64[N, M], d: int64[], v: float[2]) -> (y) { y = OneHot(i, d, v) }")
    assert len(sizes.symbols) == 1
    assert sizes.read([np.zeros((2, 3), np.int64), np.array(7), np.zeros(2, np.float32)]) == (7,)


def test_other_operators_are_left_to_others() -> None:
    """Whose kernels need to know more than the size of their output."""
    assert "known only when the model runs" in declined("graph(x: float[N], k: int64[1]) -> (y) { y = Resize(x, _, _, k) }")[0]
