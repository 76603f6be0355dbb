"""Flags, times and signals that end work."""

from __future__ import annotations

import copy
import ctypes
import functools
import pickle
import signal
import threading
import time

import pytest
from support.cancelling import after, ended_by, handler

from sardonyx.cancellation import (
    Cancellation,
    Flag,
    check_cancelled,
    checked,
    checked_blocks,
    current_cancellation,
    holding,
    limited_to,
    raise_interrupt,
    reset_cancellation,
    set_cancellation,
)
from sardonyx.errors import Fail, RunTerminated, RunTimedOut

STOPPED = functools.partial(RunTerminated, "stopped")
TIMED_OUT = functools.partial(RunTimedOut, "timed out")


def test_without_a_cancellation_the_check_passes() -> None:
    """Work that nobody can end is never ended."""
    assert current_cancellation() is None
    check_cancelled()


def test_the_check_raises_while_the_flag_is_set() -> None:
    """It passes before, and again once the work is over."""
    flag = Flag()
    with ended_by(flag):
        check_cancelled()
        flag.set(True)
        with pytest.raises(RunTerminated):
            check_cancelled()
    check_cancelled()


def test_the_check_raises_when_the_time_has_come() -> None:
    """Time counts from when the cancellation is made; a long one does not overflow."""
    endless = Cancellation(Flag(), STOPPED, 1e300, TIMED_OUT)
    short = Cancellation(Flag(), STOPPED, 1, TIMED_OUT)
    time.sleep(0.005)
    endless.check()
    with pytest.raises(TimeoutError, match="timed out"):
        short.check()


def test_a_walk_over_many_items_is_ended() -> None:
    """Within 64 of them after the flag is set."""
    flag, seen = Flag(), []

    def walk() -> None:
        for item in checked(range(1000)):
            seen.append(item)
            if item == 100:
                flag.set(True)

    with ended_by(flag), pytest.raises(RunTerminated):
        walk()
    assert 100 < len(seen) <= 165


def test_each_error_is_new() -> None:
    """Tracebacks of one run are not those of another."""
    cancellation, errors = Cancellation(Flag(True), STOPPED), []
    for _ in range(2):
        with pytest.raises(Fail) as caught:
            cancellation.check()
        errors.append(caught.value)
    assert errors[0] is not errors[1]


def test_native_code_reads_flags_and_time_by_their_addresses() -> None:
    """The words are the addresses of two flags, and a time in nanoseconds."""
    flag, other = Flag(), Flag()
    both = Cancellation(flag, STOPPED).with_flag(other)
    first, second, wake_ns = (ctypes.c_int64 * 3).from_address(both.address)
    assert (first, second) == (flag.address, other.address)
    assert wake_ns > time.monotonic_ns()
    other.set(True)
    assert ctypes.c_int64.from_address(second).value == 1
    with pytest.raises(RunTerminated):
        both.check()


def test_a_copy_of_a_flag_is_one_of_its_own() -> None:
    """It begins as the other is; so do those of a copied cancellation, whose words lie elsewhere."""
    flag = Flag(True)
    made = pickle.loads(pickle.dumps(flag))
    flag.set(False)
    assert made
    cancellation = Cancellation(flag, STOPPED)
    copied = copy.deepcopy(cancellation)
    flag.set(True)
    copied.check()
    assert copied.address != cancellation.address


def test_a_lock_is_waited_for_until_the_work_is_ended() -> None:
    """Another thread may hold it for long."""
    lock, flag = threading.Lock(), Flag()
    with holding(lock):
        assert lock.locked()
        with ended_by(flag), after(0.1, lambda: flag.set(True)), pytest.raises(RunTerminated), holding(lock):
            pytest.fail("two hold the lock")
    assert not lock.locked()


class _Handler:
    def __call__(self, number: int, frame: object) -> None:
        raise ValueError("from the handler")

    def method(self, number: int, frame: object) -> None:
        self(number, frame)


def _function(number: int, frame: object) -> None:
    raise ValueError("from the handler")


@pytest.mark.parametrize("handle", [_function, functools.partial(_function), _Handler(), _Handler().method])
def test_what_a_handler_raised_is_found_behind_what_was_made_of_it(handle: object) -> None:
    """The handler may be a function, a method or any other callable."""
    with handler(handle, signal.SIGTERM):
        with pytest.raises(Fail) as failed:
            _fail_when_interrupted()
        with pytest.raises(ValueError, match="from the handler") as caught:
            raise_interrupt(failed.value)
    assert caught.value is failed.value.__cause__


def _fail_when_interrupted() -> None:
    try:
        signal.raise_signal(signal.SIGTERM)
    except ValueError as error:
        raise Fail("a kernel failed") from error


def test_other_errors_are_no_interrupts() -> None:
    """What no handler raised is left to the caller."""
    try:
        raise ValueError("of a kernel")
    except ValueError as error:
        raise_interrupt(error)


def test_an_error_may_be_its_own_cause() -> None:
    """Such as one that was given a provider's name as it passed."""
    error = Fail("of a provider")
    error.__cause__ = error
    raise_interrupt(error)


def _work_for_ever() -> None:
    while True:
        check_cancelled()


def test_a_part_of_the_work_may_have_a_limit_of_its_own() -> None:
    """It ends the part, by its own error, and nothing behind it."""
    with pytest.raises(Fail, match="part"), limited_to(0.001, lambda: Fail("part")):
        _work_for_ever()
    check_cancelled()


@pytest.mark.parametrize(("timeout_ms", "expected"), [(1, RunTimedOut), (60_000, Fail)])
def test_a_limited_part_ends_with_the_work_around_it(timeout_ms: int, expected: type[Exception]) -> None:
    """The earlier of the two times decides, and whose it is says what is raised."""
    around = Cancellation(Flag(), lambda: RunTerminated("set"), timeout_ms, lambda: RunTimedOut("late"))
    token = set_cancellation(around)
    try:
        with pytest.raises(expected), limited_to(0.1, lambda: Fail("part")):
            _work_for_ever()
    finally:
        reset_cancellation(token)


def test_a_flag_ends_a_limited_part() -> None:
    """Whoever ends the work around a part ends the part."""
    flag = Flag()
    token = set_cancellation(Cancellation(flag, lambda: RunTerminated("set")))
    try:
        with limited_to(60, lambda: Fail("part")):
            check_cancelled()
            flag.set(True)
            with pytest.raises(RunTerminated):
                check_cancelled()
    finally:
        reset_cancellation(token)


@pytest.mark.parametrize("count", [0, 1, 4096, 4097, 10_000])
def test_blocks_are_the_items_in_order(count: int) -> None:
    """None is left out, none comes twice, and few come as they are."""
    items = list(range(count))
    blocks = list(checked_blocks(items))
    assert [item for block in blocks for item in block] == items
    assert (blocks[0] is items) == (count <= 4096)


def test_work_in_blocks_is_ended_between_them() -> None:
    """Each block but the last few items asks anew."""
    flag = Flag()
    blocks = checked_blocks(range(10_000))
    with ended_by(flag):
        next(blocks)
        flag.set(True)
        with pytest.raises(RunTerminated):
            next(blocks)
