"""Find a group normalization that is written out with an instance normalization.

    g = Reshape(x, (N, groups, -1))
    n = InstanceNormalization(g, ones, zeros)
    r = Reshape(n, shape of x)
    y = Add(Mul(r, scale), bias)                  ->      y = GroupNormalization(x, scale, bias) {num_groups, epsilon}

Left alone:
    a first Reshape that does more than split the channels into groups, or whose sizes are not known
    a scale and a bias of the instance normalization that are not 1 and 0
    a scale or bias at the end that is no constant with a number for each channel
    values between that have other users
"""

from __future__ import annotations

import dataclasses

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.ir import Dim, Shape, Value
from sardonyx.ir.shape import product
from sardonyx.optimize.contract import Level
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_GROUP_NORM"]

_VERSION = 21
"""The opset version from which on scale and bias are for each channel."""


def _pattern(op: PatternBuilder, x: Term, scale: Term, bias: Term) -> Term:
    split = op.Reshape(x, op.rest("split"), _as="groups_of")
    normalized = op.InstanceNormalization(split, op.constant("ones"), op.constant("zeros"), _as="normalized")
    back = op.Reshape(normalized, op.rest("back"))
    return op.Add(op.Mul(back, op.constant(scale)), op.constant(bias))


@dataclasses.dataclass(frozen=True, slots=True)
class _Learned:
    groups: int
    """How many groups."""
    epsilon: float
    """What is added to the variance."""
    scale: Array
    """A factor for each channel."""
    bias: Array
    """A summand for each channel."""


def _check(match: Match) -> str | _Learned:
    value, result, split = match["x"], match.outputs[0], match.node("groups_of").output
    groups = _groups_of(value.shape, split.shape)
    if groups is None or value.shape is None:
        return f"{split.shape} is not {value.shape} with its channels in groups"
    if result.shape != value.shape or result.dtype is not value.dtype:
        return f"the result is {result.dtype} {result.shape}, the value {value.dtype} {value.shape}"
    if not _is_all(match["ones"], 1) or not _is_all(match["zeros"], 0):
        return "the groups have a scale or bias of their own"
    scale, bias = (_by_channel(match[name], value.shape) for name in ("scale", "bias"))
    if scale is None or bias is None:
        return f"scale {match['scale'].shape} and bias {match['bias'].shape} have no number for each channel of {value.shape}"
    return _Learned(groups, match.node("normalized").get("epsilon", 1e-5), scale, bias)


def _groups_of(whole: Shape | None, split: Shape | None) -> int | None:
    if whole is None or split is None or len(whole) < 3 or len(split) < 3 or whole[0] != split[0]:
        return None
    groups: Dim = split[1]
    if not isinstance(groups, int) or groups < 1 or product(whole[1:]) != product(split[1:]):
        return None
    return groups if isinstance(whole[1], int) and whole[1] % groups == 0 else None


def _is_all(value: Value, number: int) -> bool:
    return value.constant is not None and bool((value.constant.numpy() == number).all())


def _by_channel(value: Value, shape: Shape) -> Array | None:
    """The numbers of a constant that is broadcast along the channels alone."""
    if value.constant is None or len(value.constant.shape) > len(shape):
        return None
    array = value.constant.numpy()
    padded = (1,) * (len(shape) - array.ndim) + array.shape
    if not isinstance(shape[1], int) or padded[1] not in (1, shape[1]) or any(dim != 1 for dim in (padded[0], *padded[2:])):
        return None
    return np.broadcast_to(array.reshape(-1), (shape[1],)).copy()


def _replace(op: Builder, match: Match, learned: _Learned) -> Value:
    return op.GroupNormalization(match["x"], learned.scale, learned.bias, num_groups=learned.groups, epsilon=learned.epsilon,
                                 _version=_VERSION)  # fmt: skip


FUSE_GROUP_NORM = Rule("fuse_group_norm", _pattern, _replace, _check, Level.EXTENDED)
