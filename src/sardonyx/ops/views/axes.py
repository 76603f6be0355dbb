"""Axes counted from the front, and which operators take them as an input."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sardonyx.errors import InvalidGraph

__all__ = ["distinct_axes", "normalize_axes", "normalize_axis", "takes_axes_input"]

_AXES_INPUT_SINCE: Mapping[str, int] = {
    **dict.fromkeys(["ReduceSum", "Squeeze", "Unsqueeze"], 13),
    **dict.fromkeys(
        [
            "ReduceL1",
            "ReduceL2",
            "ReduceLogSum",
            "ReduceLogSumExp",
            "ReduceMax",
            "ReduceMean",
            "ReduceMin",
            "ReduceProd",
            "ReduceSumSquare",
        ],
        18,
    ),
}


def normalize_axis(axis: int, rank: int, name: str = "axis") -> int:
    """Return the axis counted from the front; raises InvalidGraph outside [-rank, rank)."""
    if not -rank <= axis < rank:
        raise InvalidGraph(f"{name}={axis} is outside [{-rank}, {rank - 1}] for a tensor of rank {rank}; name an axis that it has")
    return axis + rank if axis < 0 else axis


def normalize_axes(axes: Iterable[int], rank: int, name: str = "axes") -> tuple[int, ...]:
    """Return the axes counted from the front, in their order; raises InvalidGraph for one out of range."""
    return tuple(normalize_axis(axis, rank, name) for axis in axes)


def distinct_axes(axes: Iterable[int], rank: int, name: str = "axes") -> tuple[int, ...]:
    """Return what `normalize_axes` does; raises InvalidGraph for an axis named twice, too."""
    found = normalize_axes(axes, rank, name)
    if len(set(found)) < len(found):
        raise InvalidGraph(f"{name}={list(found)} names an axis twice; name each axis once")
    return found


def takes_axes_input(op_type: str, version: int) -> bool:
    """Return whether `op_type` of ai.onnx takes its axes as its second input at opset `version`, rather than as an attribute."""
    since = _AXES_INPUT_SINCE.get(op_type)
    return since is not None and version >= since
