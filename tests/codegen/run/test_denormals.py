"""Denormal numbers as zero, thread by thread."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from sardonyx.codegen.run.control_word import has_control
from sardonyx.codegen.run.denormals import flushing_denormals
from sardonyx.codegen.target import host_target

_TINY = np.float32(1e-40)
_NEEDS_CONTROL = pytest.mark.skipif(not has_control(host_target()), reason="the processor has no control word that is known")


@_NEEDS_CONTROL
def test_numpy_computes_with_zeros_inside_and_not_behind() -> None:
    """Operands and results, of NumPy too; what was before is restored, also for nested contexts."""
    array = np.full(100, _TINY)
    with flushing_denormals():
        with flushing_denormals():
            assert not (array * np.float32(1)).any()
        assert not (np.full(100, np.float32(1e-30)) * np.float32(1e-10)).any()
    assert (array * np.float32(1)).all()


@_NEEDS_CONTROL
def test_an_error_inside_restores_the_thread() -> None:
    """It comes out unchanged."""
    with pytest.raises(ZeroDivisionError), flushing_denormals():
        1 // 0  # noqa: B018  the error is what counts
    assert (np.full(100, _TINY) * np.float32(1)).all()


@_NEEDS_CONTROL
def test_other_threads_stay_as_they_are() -> None:
    """The control word is one thread's own; those that are started inside begin with it."""
    found: list[bool] = []
    inside = threading.Event()

    def compute() -> None:
        inside.wait()
        found.append(bool((np.full(100, _TINY) * np.float32(1)).all()))

    thread = threading.Thread(target=compute)
    thread.start()
    with flushing_denormals():
        inside.set()
        thread.join()
    assert found == [True]
