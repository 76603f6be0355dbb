"""The source of random numbers of the process."""

import ctypes
import os

from sardonyx.codegen.run.random_source import RandomSource
from sardonyx.forks import renew_in_child


def _words(source: RandomSource) -> list[int]:
    return list((ctypes.c_uint64 * 2).from_address(source.address))


def test_a_seed_begins_anew() -> None:
    """Kernels find it, and that no stream was taken."""
    source = RandomSource()
    source.restart((1 << 64) - 1)
    assert _words(source) == [(1 << 64) - 1, 0]


def test_seeds_that_nobody_chose_differ() -> None:
    """From source to source."""
    assert _words(RandomSource()) != _words(RandomSource())


def test_the_child_of_a_fork_draws_other_numbers() -> None:
    """Unless the seed was given."""
    source = RandomSource()
    before = _words(source)
    source.after_fork()
    assert _words(source)[0] != before[0]
    source.restart(7)
    source.after_fork()
    assert _words(source) == [7, 0]


def test_a_real_fork_renews_a_source_that_asked_for_it() -> None:
    """As the one of the process has."""
    source = RandomSource()
    renew_in_child(source)
    before, (read, write) = _words(source), os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, _words(source)[0].to_bytes(8, "little"))
        os._exit(0)
    os.waitpid(child, 0)
    assert int.from_bytes(os.read(read, 8), "little") != before[0]
    os.close(read)
    os.close(write)
