"""ReverseSequence against the reference provider."""

import numpy as np
import pytest
from support.cpu_run import LEVELS, cpu_session, declined
from support.moving import TYPES, same

from sardonyx.errors import InvalidArgument


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("time", [0, 1])
@pytest.mark.parametrize("kind", ["float", "uint8", "double"])
def test_sequences_of_every_length(kind: str, time: int, isa: str) -> None:
    """Steps along either axis, rows of any length, nothing at all."""
    axes = f"time_axis = {time}, batch_axis = {1 - time}"
    body = f"graph(x: {kind}[A, B, C], l: int64[{'BA'[time]}]) -> (y) {{ y = ReverseSequence(x, l) {{{axes}}} }}"
    random, cases = np.random.default_rng(0), []
    for shape in ((3, 4, 5), (7, 1, 37), (2, 0, 3), (0, 2, 3)):
        lengths = random.integers(0, shape[time] + 1, shape[1 - time])
        cases.append({"x": random.integers(0, 100, shape).astype(TYPES[kind]), "l": lengths})
    same(body, *cases, isa=isa)


@pytest.mark.parametrize("wrong", [-1, 4])
def test_a_length_beyond_the_steps(wrong: int) -> None:
    """An error that names the sequence."""
    session = cpu_session("graph(x: float[3, B], l: int64[B]) -> (y) { y = ReverseSequence(x, l) }")
    with pytest.raises(InvalidArgument, match="the length of sequence 1 is negative, or beyond the number of steps"):
        session.run(None, {"x": np.zeros((3, 2), np.float32), "l": np.array([1, wrong])})


def test_what_is_left_to_others() -> None:
    """Lengths that may be fewer than sequences."""
    assert "depends on sizes" in declined("graph(x: float[3, B], l: int64[C]) -> (y) { y = ReverseSequence(x, l) }")[0]
    assert "data of 1 dimensions" in declined("graph(x: float[3], l: int64[3]) -> (y) { y = ReverseSequence(x, l) }")[0]
