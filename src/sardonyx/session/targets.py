"""Arrays of a caller's that take results."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.lib.array_utils import byte_bounds

from sardonyx.dtypes import Array, DataType, OnnxValue
from sardonyx.errors import InvalidArgument
from sardonyx.session.feeds import own_results
from sardonyx.session.values import NodeArg

__all__ = ["NO_TARGETS", "checked_targets", "fillable_targets", "store_result"]

NO_TARGETS: Mapping[int, object] = MappingProxyType({})
"""No output has an array of the caller's."""


def checked_targets(targets: Mapping[str, OnnxValue], outputs: Sequence[NodeArg], label: str) -> dict[int, OnnxValue]:
    """Return output index -> the array that takes it.

    Raises:
        InvalidArgument: an output is unknown, or a target is no writeable, dense array of its type.
    """
    places: dict[str, int] = {}
    for index, argument in enumerate(outputs):
        places.setdefault(argument.name, index)  # of an output that is declared twice, the first is what runs give out by name
    for name, target in targets.items():
        if name not in places:
            raise InvalidArgument(f"model {label}: there is no output {name!r}; its outputs are {list(places)}")
        kind = outputs[places[name]].type
        if not isinstance(target, np.ndarray) or not target.flags.writeable or not target.flags.c_contiguous:
            raise InvalidArgument(
                f"model {label}, output {name!r}: a result goes into a writeable, dense array, got {type(target).__name__}"
            )
        found = f"tensor({DataType.from_numpy(target.dtype)})"
        if kind and found != kind:
            raise InvalidArgument(
                f"model {label}, output {name!r}: Unexpected output data type. Actual: ({found}), expected: ({kind})"
            )
    return {places[name]: target for name, target in targets.items()}


def fillable_targets(
    targets: Sequence[OnnxValue], values: Sequence[OnnxValue], shares: Collection[tuple[int, int]] = ()
) -> list[OnnxValue]:
    """Return the targets that may be filled while the model runs, None for the others.

    One that shares memory with an input or with another target takes its result by a copy at the end, so that the results are those
    of memory of its own. `shares` has the numbers of targets and inputs that may be one array, such as a cache and its past.
    """
    arrays = [(number, value) for number, value in enumerate(values) if isinstance(value, np.ndarray)]
    given = [target for target in targets if isinstance(target, np.ndarray)]
    same = {number for place, number in shares if _is_same(targets[place], values[number])}
    if not any(target.dtype.hasobject for target in given) and _lie_apart(
        given, [array for number, array in arrays if number not in same]
    ):
        return list(targets)
    kept: list[OnnxValue] = []
    for place, target in enumerate(targets):
        others = [array for number, array in arrays if (place, number) not in shares or not _is_same(target, array)]
        others += [item for item in kept if item is not None]
        is_shared = target is None or target.dtype.hasobject or any(np.may_share_memory(target, other) for other in others)
        kept.append(None if is_shared else target)
    return kept


def _lie_apart(targets: Sequence[Array], arrays: Sequence[Array]) -> bool:
    """Return whether no target overlaps another, or an array; in the order of addresses, as decoders have a hundred of each."""
    spans = sorted(
        [(*byte_bounds(array), False) for array in arrays if array.size]
        + [(*byte_bounds(target), True) for target in targets if target.size]
    )
    last_array = last_target = 0
    for start, stop, is_target in spans:
        if start < last_target or (is_target and start < last_array):
            return False
        if is_target:
            last_target = max(last_target, stop)
        else:
            last_array = max(last_array, stop)
    return True


def _is_same(target: OnnxValue, array: OnnxValue) -> bool:
    """Return whether two arrays are the same elements in memory."""
    return (
        isinstance(target, np.ndarray)
        and isinstance(array, np.ndarray)
        and (target.ctypes.data, target.shape, target.dtype) == (array.ctypes.data, array.shape, array.dtype)
        and array.flags.c_contiguous
    )


def store_result(result: OnnxValue, target: OnnxValue, values: Sequence[OnnxValue], name: str, label: str) -> OnnxValue:
    """Return a result as the caller's own: in its target, where it has one.

    Raises:
        InvalidArgument: it does not fit the target.
    """
    if target is None:
        return own_results([result], values)[0]
    if result is target:
        return target
    if not isinstance(result, np.ndarray) or result.shape != target.shape or result.dtype != target.dtype:
        found = f"{result.dtype} {result.shape}" if isinstance(result, np.ndarray) else type(result).__name__
        raise InvalidArgument(
            f"model {label}, output {name!r}: the memory bound has {target.dtype} {target.shape}, the result is {found}"
        )
    np.copyto(target, result)
    return target
