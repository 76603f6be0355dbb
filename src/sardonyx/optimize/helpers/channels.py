"""What the rules that fold a scale or a shift into a convolution or a product share: output channels, and weights scaled by them.

Weights of Conv are (M, C/group, ...), those of ConvTranspose (C, M/group, ...), with M output channels.
"""

from __future__ import annotations

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Node, Tensor, Value
from sardonyx.ops.views.conv import Conv
from sardonyx.ops.views.normalize import epsilon_of, trains
from sardonyx.optimize.match import Match
from sardonyx.optimize.rule import Builder

__all__ = ["FLOATS", "Affine", "channels_of", "folded", "normalization", "per_channel", "weights_reason"]

FLOATS = frozenset([DataType.FLOAT, DataType.DOUBLE, DataType.FLOAT16, DataType.BFLOAT16])
"""Types whose constants rules scale."""


@dataclasses.dataclass(frozen=True, slots=True)
class Affine:
    """What a normalization with given statistics does to each channel: x * factor + shift."""

    factor: Array
    """By what each output channel is multiplied, float64 (channels,)."""
    shift: Array
    """What is added to it then, float64 (channels,)."""


def normalization(match: Match, channels: int, node: Node | None = None) -> str | Affine:
    """Return what a BatchNormalization of "scale", "shift", "mean" and "variance" does, the root by default.

    Or why that is not known.
    """
    node = match.root if node is None else node
    if trains(node):
        return "the normalization is in training mode"
    statistics = [match.constant(name, channels) for name in ("scale", "shift", "mean", "variance")]
    if any(array is None or array.shape != (channels,) for array in statistics):
        return f"the statistics do not have one element for each of the {channels} output channels"
    scale, shift, mean, variance = (array.astype(np.float64) for array in statistics if array is not None)
    shifted = variance + epsilon_of(node)
    if (shifted <= 0).any():
        return "the variance is not positive"
    factor = scale / np.sqrt(shifted)
    return Affine(factor, shift - mean * factor)


def weights_reason(match: Match) -> str | None:
    """Return why the weights, bound to "w", and the bias "b" of the node "convolution" cannot be changed; None where they can."""
    weights, node = match.tensor("w"), match.node("convolution")
    if weights is None:
        return "the weights are no constant"
    if weights.dtype not in FLOATS:
        return f"the weights are {weights.dtype}, expected a floating-point type"
    if match["w"].use_count > 1:
        return "the weights have other users"
    channels = channels_of(node, weights)
    if len(weights.shape) < 2 or channels == 0 or weights.shape[0] % Conv.of(node).group:
        return f"the weights have shape {weights.shape}, which fits no convolution"
    bias = match.tensor("b")
    return None if bias is None or bias.shape == (channels,) else f"the bias has shape {bias.shape}, expected ({channels},)"


def channels_of(node: Node, weights: Tensor) -> int:
    """Return how many output channels a convolution has."""
    if len(weights.shape) < 2:
        return 0
    return weights.shape[0] if node.op_type == "Conv" else weights.shape[1] * Conv.of(node).group


def per_channel(tensor: Tensor, channels: int, rank: int) -> Array | None:
    """Return the elements, float64 (channels,), of a constant that broadcasts along the channels of (N, C, ...) of `rank`.

    Else None.
    """
    if len(tensor.shape) > rank:
        return None
    shape = (1,) * (rank - len(tensor.shape)) + tensor.shape
    if any(dim != 1 for axis, dim in enumerate(shape) if axis != 1) or shape[1] not in (1, channels):
        return None
    return np.broadcast_to(tensor.numpy().astype(np.float64).reshape(-1), (channels,))


def folded(op: Builder, match: Match, factor: Array | None, shift: Array | None) -> Value:
    """Return the node "convolution" again, with its result multiplied by `factor` and increased by `shift`.

    Both are float64 (channels,).
    """
    node, weights = match.node("convolution"), match.tensor("w")
    if weights is None:
        raise ValueError("the weights are no constant")
    channels, dtype, name = channels_of(node, weights), weights.dtype.numpy, match["w"].name
    scaled = match["w"] if factor is None else op.constant(_scaled(node, weights, factor), f"{name}/scaled")
    given = match.constant("b", channels)
    bias = np.zeros(channels) if given is None else given.astype(np.float64)
    bias = bias if factor is None else bias * factor
    bias = bias if shift is None else bias + shift
    has_bias = given is not None or shift is not None
    return op.node(
        node.op_type,
        match["x"],
        scaled,
        *([op.constant(bias.astype(dtype), f"{name}/bias")] if has_bias else []),
        _attributes=node.attributes,
        _version=node.version,
    )


def _scaled(node: Node, weights: Tensor, factor: Array) -> Array:
    """Return the weights times `factor`, multiplied in float64 block by block and rounded to their type."""
    array = weights.numpy()
    if node.op_type == "Conv":
        return _product(array, factor.reshape(-1, *[1] * (array.ndim - 1)))
    group = Conv.of(node).group
    split = array.reshape(group, array.shape[0] // group, *array.shape[1:])
    return _product(split, factor.reshape(group, 1, array.shape[1], *[1] * (array.ndim - 2))).reshape(array.shape)


def _product(array: Array, factor: Array) -> Array:
    if array.dtype not in (np.float32, np.float64):
        return np.asarray(array.astype(np.float64) * factor).astype(array.dtype)
    return np.multiply(array, factor, out=np.empty_like(array), dtype=np.float64, casting="unsafe")
