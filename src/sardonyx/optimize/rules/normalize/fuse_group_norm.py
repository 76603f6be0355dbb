"""Find a group normalization that is written out with an instance normalization, and what scales and shifts its channels.

    g = Reshape(x, (N, groups, -1))
    n = InstanceNormalization(g, ones, zeros)
    y = Reshape(n, shape of x)                         ->      y = GroupNormalization(x, ones, zeros) {num_groups, epsilon}

    Mul(GroupNormalization(x, scale, bias), c)         ->      GroupNormalization(x, scale * c, bias * c)
    Add(GroupNormalization(x, scale, bias), c)         ->      GroupNormalization(x, scale, bias + c)

Left alone:
    a first Reshape that does more than split the channels into groups, or whose sizes are not known
    a scale and a bias of the instance normalization that are not 1 and 0
    factors and summands that are no constants with a number for each channel, or one for all
    group normalizations before opset 21, whose scale is for groups
    values between that have other users
"""

from __future__ import annotations

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array
from sardonyx.ir import Dim, Shape, Value
from sardonyx.ir.shape import product
from sardonyx.ops.views.normalize import GroupNormalization, epsilon_of
from sardonyx.optimize.contract import Level
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_GROUP_NORM", "FUSE_GROUP_NORM_BIAS", "FUSE_GROUP_NORM_SCALE"]

_VERSION = 21
"""The opset version from which on scale and bias are for each channel."""


def _pattern(op: PatternBuilder, x: Term) -> Term:
    split = op.Reshape(x, op.rest("split"), _as="groups_of")
    normalized = op.InstanceNormalization(split, op.constant("ones"), op.constant("zeros"), _as="normalized")
    return op.Reshape(normalized, op.rest("back"))


@dataclasses.dataclass(frozen=True, slots=True)
class _Learned:
    groups: int
    """How many groups."""
    channels: int
    """How many channels."""


def _check(match: Match) -> str | _Learned:
    value, result, split = match["x"], match.outputs[0], match.node("groups_of").output
    groups = _groups_of(value.shape, split.shape)
    if groups is None or value.shape is None or not isinstance(value.shape[1], int):
        return f"{split.shape} is not {value.shape} with its channels in groups"
    if result.shape != value.shape or result.dtype is not value.dtype or value.dtype is None:
        return f"the result is {result.dtype} {result.shape}, the value {value.dtype} {value.shape}"
    if not _is_all(match["ones"], 1) or not _is_all(match["zeros"], 0):
        return "the groups have a scale or bias of their own"
    return _Learned(groups, value.shape[1])


def _replace(op: Builder, match: Match, learned: _Learned) -> Value:
    kind = match["ones"].constant
    ones = np.ones(learned.channels, np.float32 if kind is None else kind.dtype.numpy)
    return op.GroupNormalization(
        match["x"],
        ones,
        np.zeros_like(ones),
        num_groups=learned.groups,
        epsilon=epsilon_of(match.node("normalized")),
        _version=_VERSION,
    )


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
    """Return the numbers of a constant that is broadcast along the channels alone."""
    if value.constant is None or len(value.constant.shape) > len(shape):
        return None
    array = value.constant.numpy()
    padded = (1,) * (len(shape) - array.ndim) + array.shape
    if not isinstance(shape[1], int) or padded[1] not in (1, shape[1]) or any(dim != 1 for dim in (padded[0], *padded[2:])):
        return None
    return np.broadcast_to(array.reshape(-1), (shape[1],)).copy()


def _pattern_of_factor(op: PatternBuilder, x: Term, scale: Term, bias: Term, factor: Term) -> Term:
    return op.Mul(op.GroupNormalization(x, op.constant(scale), op.constant(bias), _as="norm"), op.constant(factor))


def _pattern_of_summand(op: PatternBuilder, x: Term, scale: Term, bias: Term, factor: Term) -> Term:
    return op.Add(op.GroupNormalization(x, op.constant(scale), op.constant(bias), _as="norm"), op.constant(factor))


def _check_channels(match: Match) -> str | Array:
    """Return the number for each channel."""
    value, result, norm = match["x"], match.outputs[0], match.node("norm")
    if not GroupNormalization.of(norm).scales_channels:
        return f"opset {norm.version} has a scale for each group"
    if value.shape is None or value.shape != result.shape or value.dtype is not result.dtype:
        return f"the result is {result.dtype} {result.shape}, the value {value.dtype} {value.shape}"
    numbers = _by_channel(match["factor"], value.shape)
    return f"{match['factor'].shape} has no number for each channel of {value.shape}" if numbers is None else numbers


def _scale_channels(op: Builder, match: Match, learned: Array) -> Value:
    return _again(op, match, _numbers(match["scale"]) * learned, _numbers(match["bias"]) * learned)


def _shift_channels(op: Builder, match: Match, learned: Array) -> Value:
    return _again(op, match, _numbers(match["scale"]), _numbers(match["bias"]) + learned)


def _numbers(value: Value) -> Array:
    if value.constant is None:
        raise ValueError("the pattern matches constants only")
    return value.constant.numpy()


def _again(op: Builder, match: Match, scale: Array, bias: Array) -> Value:
    norm = match.node("norm")
    return op.GroupNormalization(match["x"], scale, bias, _attributes=norm.attributes, _version=norm.version)


FUSE_GROUP_NORM = Rule(
    "fuse_group_norm",
    _pattern,
    _replace,
    _check,
    Level.EXTENDED,
    summary="Replace an instance normalization of reshaped groups by GroupNormalization.",
)
FUSE_GROUP_NORM_SCALE = Rule(
    "fuse_group_norm_scale",
    _pattern_of_factor,
    _scale_channels,
    _check_channels,
    Level.EXTENDED,
    summary="Fold a constant factor per channel into the GroupNormalization before it.",
)
FUSE_GROUP_NORM_BIAS = Rule(
    "fuse_group_norm_bias",
    _pattern_of_summand,
    _shift_channels,
    _check_channels,
    Level.EXTENDED,
    summary="Fold the addition of a constant per channel into the GroupNormalization before it.",
)
