"""`run_with_iobinding` as machine code: all addresses are known, so nothing is left but to call the driver."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Mapping

import numpy as np

from sardonyx.dtypes import OnnxValue
from sardonyx.runtime.native_lanes import words
from sardonyx.session.native.function import BoundWords
from sardonyx.session.native.run import MOST_SCRATCH_BYTES, KnownRuns, NativeRuns
from sardonyx.session.targets import fillable_targets

__all__ = ["bind_natively"]


def bind_natively(
    runs: KnownRuns,
    session: object,
    feed: Mapping[str, OnnxValue],
    targets: Mapping[str, OnnxValue],
    run: Callable[..., object],
) -> Callable[..., None] | None:
    """Return a function that reads the arrays of a feed and fills the targets; None where only Python can do that.

    Args:
        runs: what is known of the session.
        session: the session, whose calls alone it serves.
        feed: input name -> a value, with which a run has succeeded.
        targets: output name -> the array that the run has filled.
        run: the method in Python, a function of the session and the binding, as the result is.
    """
    if not isinstance(runs, NativeRuns):
        return None
    arrays, filled = runs.given(feed), [target for target in map(targets.get, runs.outputs) if isinstance(target, np.ndarray)]
    if arrays is None or not all(array.flags.c_contiguous and array.flags.aligned for array in arrays):
        return None
    sizes = runs.sizes(tuple([array.shape for array in arrays]))
    if sizes is None or None in sizes.bound.outputs:
        return None
    bound = sizes.bound
    places = fillable_targets(filled, arrays, runs.only.shares) if len(filled) == len(runs.outputs) else [None]
    if any(place is None for place in places) or bound.scratch_bytes > MOST_SCRATCH_BYTES:
        return None
    call = runs.program.native_call(bound)
    if call is None:
        return None
    scratch, step = runs.only.take(bound.scratch_bytes), runs.only.step
    used = [*(arrays[slot] for slot in step.inputs), *(filled[runs.only.results.index(place)] for place in range(len(filled)))]
    current, bases = runs.current(), words([scratch.ctypes.data, 0, *(array.ctypes.data for array in used)])
    ctypes.memmove(call.bases, bases, ctypes.sizeof(bases))
    made = BoundWords(runs.code.address, id(run), ctypes.addressof(current), id(session), 0, call.function, call.table, call.resume)
    # an array to which there is a weak reference cannot be resized, so that it stays where it is
    made.kept = (runs.code, run, current, call, scratch, used, [weakref.ref(array) for array in used])
    return runs.code.function(made)
