"""Random instances of the operators that have a function body: inputs and attributes that the standard allows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st
from onnx import helper

__all__ = ["INSTANCES", "WITHOUT", "Draw", "Instance"]

_FLOATS = (np.float32, np.float64, np.float16, ml_dtypes.bfloat16)
_WIDE = (np.float32, np.float64)


@dataclasses.dataclass(frozen=True)
class Instance:
    """One application of an operator."""

    inputs: Sequence[Any]
    """Arrays, None for one left out; Any as dtypes differ."""
    attributes: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Attributes by name, of any kind."""
    outputs: int = 1
    """How many outputs are asked for."""
    version: int | None = None
    """The opset; the newest where None."""
    domain: str = ""
    """The operator's domain."""


class Draw:
    """Draws choices by hypothesis, and numbers from a generator whose seed it draws."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        """Begin with a seed."""
        self._draw = draw
        self.generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def integer(self, low: int, high: int) -> int:
        """An integer of [low, high]."""
        return int(self._draw(st.integers(low, high)))

    def flag(self) -> bool:
        """True or False."""
        return bool(self._draw(st.booleans()))

    def one_of(self, choices: Sequence[Any]) -> Any:
        """One of `choices`."""
        return self._draw(st.sampled_from(choices))

    def shape(self, least: int = 0, most: int = 4, smallest: int = 0) -> list[int]:
        """Between `least` and `most` sizes of up to 4."""
        return [self.integer(smallest, 4) for _ in range(self.integer(least, most))]

    def array(self, shape: Sequence[int], dtype: Any = np.float32, scale: float = 2.0) -> Any:
        """Normal numbers times `scale` in `dtype`; integers up to twice the scale."""
        numbers = self.generator.standard_normal(tuple(shape)) * scale
        if np.dtype(dtype).kind in "ui":
            numbers = np.abs(numbers) if np.dtype(dtype).kind == "u" else np.rint(numbers)
        return np.asarray(numbers).astype(dtype)

    def maybe(self, value: Any) -> Any:
        """`value` or None."""
        return value if self.flag() else None

    def axis(self, rank: int) -> int:
        """An axis, counted from either end."""
        return self.integer(-rank, rank - 1)


Generator = Callable[[Draw], Instance]


def _unary(types: Sequence[Any] = _FLOATS, **attributes: tuple[float, float]) -> Generator:
    """An element-wise operator of one input, with float attributes in the ranges given."""

    def generate(draw: Draw) -> Instance:
        given = {name: round(draw.generator.uniform(*ends), 3) for name, ends in attributes.items() if draw.flag()}
        return Instance([draw.array(draw.shape(), draw.one_of(types))], given)

    return generate


def _gelu(draw: Draw) -> Instance:
    return Instance([draw.array(draw.shape(), draw.one_of(_WIDE))], {"approximate": draw.one_of(["none", "tanh"])})


def _compare(draw: Draw) -> Instance:
    shape, dtype = draw.shape(), draw.one_of([*_WIDE, np.int32, np.uint8])
    return Instance([draw.array(shape, dtype), draw.array(_broadcastable(draw, shape), dtype)])


def _broadcastable(draw: Draw, shape: Sequence[int]) -> list[int]:
    kept = shape[draw.integer(0, len(shape)) :]
    return [1 if draw.flag() else size for size in kept]


def _prelu(draw: Draw) -> Instance:
    shape, dtype = draw.shape(), draw.one_of(_FLOATS)
    return Instance([draw.array(shape, dtype), draw.array(_broadcastable(draw, shape), dtype)])


def _clip(draw: Draw) -> Instance:
    dtype = draw.one_of([*_WIDE, np.int32, np.int64])
    low, high = (draw.maybe(draw.array((), dtype)) for _ in range(2))
    return Instance([draw.array(draw.shape(), dtype), low, high])


def _softmax(draw: Draw) -> Instance:
    shape = draw.shape(1)
    return Instance([draw.array(shape, draw.one_of(_FLOATS))], {"axis": draw.axis(len(shape))} if draw.flag() else {})


def _reduce(*types: Any, smallest: int = 0, positive: bool = False) -> Generator:
    def generate(draw: Draw) -> Instance:
        shape = draw.shape(0, 4, smallest)
        data = draw.array(shape, draw.one_of(types))
        axes = sorted({draw.integer(0, len(shape) - 1) for _ in range(draw.integer(0, 3))}) if shape else []
        signed = [axis - len(shape) if draw.flag() else axis for axis in axes]
        attributes = {"keepdims": draw.integer(0, 1), "noop_with_empty_axes": draw.integer(0, 1)}
        return Instance([np.abs(data) if positive else data, draw.maybe(np.array(signed, np.int64))], attributes)

    return generate


def _window(draw: Draw) -> Instance:
    attributes = {"periodic": draw.integer(0, 1), "output_datatype": draw.one_of([1, 11])}
    return Instance([np.array(draw.integer(2, 20), draw.one_of([np.int32, np.int64]))], attributes)


def _layer_norm(draw: Draw) -> Instance:
    shape, dtype = draw.shape(1, 4, 1), draw.one_of(_WIDE)
    axis = draw.axis(len(shape))
    rest = shape[axis:]
    inputs = [draw.array(shape, dtype), draw.array(rest, dtype), draw.maybe(draw.array(rest, dtype))]
    return Instance(inputs, {"axis": axis, "epsilon": 0.01}, draw.integer(1, 3))


def _rms_norm(draw: Draw) -> Instance:
    shape, dtype = draw.shape(1, 4, 1), draw.one_of(_WIDE)
    axis = draw.axis(len(shape))
    return Instance([draw.array(shape, dtype), draw.array(shape[axis:], dtype)], {"axis": axis, "epsilon": 0.01})


def _group_norm(draw: Draw) -> Instance:
    groups, dtype = draw.integer(1, 3), draw.one_of(_WIDE)
    channels = groups * draw.integer(1, 3)
    x = draw.array([draw.integer(1, 3), channels, *draw.shape(1, 2, 1)], dtype)
    scale, bias = draw.array([channels], dtype), draw.array([channels], dtype)
    return Instance([x, scale, bias], {"num_groups": groups, "epsilon": 0.01})


def _mean_variance(draw: Draw) -> Instance:
    """Of float alone, the type of a constant of the body."""
    axes = sorted({draw.integer(0, 3) for _ in range(draw.integer(1, 3))})
    return Instance([draw.array([draw.integer(1, 4) for _ in range(4)])], {"axes": axes} if draw.flag() else {})


def _cast_like(draw: Draw) -> Instance:
    types = [np.float32, np.float64, np.float16, np.int32, np.int64, np.uint8, np.bool_]
    like = draw.array(draw.shape(0, 1), draw.one_of(types))
    return Instance([np.abs(draw.array(draw.shape(), draw.one_of(types))), like])


def _range(draw: Draw) -> Instance:
    dtype = draw.one_of([np.float32, np.float64, np.int32, np.int64])
    step = draw.integer(1, 3) * (-1 if draw.flag() else 1)
    start = draw.integer(-5, 5)
    return Instance([dtype(start), dtype(start + draw.integer(-8, 8)), dtype(step)])


def _quantize(draw: Draw) -> Instance:
    return Instance([draw.array(draw.shape(0, 3, 1))], {}, 3)


def _loss(*, is_log: bool) -> Generator:
    """NegativeLogLikelihoodLoss of log-probabilities, or SoftmaxCrossEntropyLoss of scores."""

    def generate(draw: Draw) -> Instance:
        batch, classes, rest = draw.integer(1, 4), draw.integer(1, 4), draw.shape(0, 2, 1)
        dtype = draw.one_of(_WIDE)
        scores = draw.array([batch, classes, *rest], dtype)
        target = draw.generator.integers(0, classes, (batch, *rest)).astype(np.int64)
        weight = draw.maybe(np.abs(draw.array([classes], dtype)) + dtype(0.5))
        attributes: dict[str, Any] = {"reduction": draw.one_of(["mean", "sum", "none"])}
        if draw.flag() and classes > 1:
            attributes["ignore_index"] = draw.integer(0, classes - 1)
            target.flat[0] = (attributes["ignore_index"] + 1) % classes
        return Instance([scores, target, weight], attributes, 2 if is_log and draw.flag() else 1)

    return generate


def _blocks(*, deep: bool) -> Generator:
    """DepthToSpace or SpaceToDepth."""

    def generate(draw: Draw) -> Instance:
        block = draw.integer(1, 3)
        channels, height, width = (draw.integer(1, 3) for _ in range(3))
        shape = [channels * block**2, height, width] if deep else [channels, height * block, width * block]
        return Instance([draw.array([draw.integer(0, 2), *shape])], {"blocksize": block, "mode": draw.one_of(["DCR", "CRD"])})

    return generate


def _center_crop_pad(draw: Draw) -> Instance:
    shape = draw.shape(1, 4, 1)
    axes = sorted({draw.integer(0, len(shape) - 1) for _ in range(draw.integer(1, 4))})
    if draw.flag():
        return Instance([draw.array(shape), np.array([draw.integer(1, 6) for _ in axes], np.int64)], {"axes": axes})
    return Instance([draw.array(shape), np.array([draw.integer(1, 6) for _ in shape], np.int64)])


def _affine_grid(draw: Draw) -> Instance:
    """Of two images or more, and sizes of two or more: the body squeezes a batch of one away, and divides by sizes less one."""
    dims, batch, dtype = draw.integer(2, 3), draw.integer(2, 3), draw.one_of(_WIDE)
    size = np.array([batch, 2, *(draw.integer(2, 4) for _ in range(dims))], np.int64)
    return Instance([draw.array([batch, dims, dims + 1], dtype), size], {"align_corners": draw.integer(0, 1)})


def _rotary(draw: Draw) -> Instance:
    batch, heads, length, half = (draw.integer(1, 3) for _ in range(4))
    size = 2 * half + 2 * draw.integer(0, 1)
    attributes: dict[str, Any] = {"interleaved": draw.integer(0, 1)}
    if size != 2 * half:
        attributes["rotary_embedding_dim"] = 2 * half
    shape = [batch, heads, length, size]
    if draw.flag():
        shape, attributes["num_heads"] = [batch, length, heads * size], heads
    with_ids = draw.flag()
    cache = [8, half] if with_ids else [batch, length, half]
    ids = draw.generator.integers(0, 8, (batch, length)).astype(np.int64) if with_ids else None
    return Instance([draw.array(shape), draw.array(cache), draw.array(cache), ids], attributes)


def _attention(draw: Draw) -> Instance:
    batch, groups, per_group, length, keys, size, value_size = (draw.integer(1, 3) for _ in range(7))
    heads, past = groups * per_group, draw.integer(0, 2)
    attributes: dict[str, Any] = {"is_causal": draw.integer(0, 1), "qk_matmul_output_mode": draw.integer(0, 3)}
    if draw.flag():
        attributes["scale"] = 0.5
    if draw.flag():
        attributes["softcap"] = 3.0
    dtype = np.float32
    if draw.flag():
        q = draw.array([batch, length, heads * size], dtype)
        k, v = draw.array([batch, keys, groups * size], dtype), draw.array([batch, keys, groups * value_size], dtype)
        attributes |= {"q_num_heads": heads, "kv_num_heads": groups}
    else:
        q, k = draw.array([batch, heads, length, size], dtype), draw.array([batch, groups, keys, size], dtype)
        v = draw.array([batch, groups, keys, value_size], dtype)
    total = keys + past
    mask = draw.one_of([None, draw.array([length, total], dtype), draw.array([batch, 1, length, total], dtype)])
    before = [draw.array([batch, groups, past, size], dtype), draw.array([batch, groups, past, value_size], dtype)] if past else []
    return Instance([q, k, v, mask, *before], attributes, 4)


def _modifier(draw: Draw, kind: int) -> Any:
    """A graph that rewrites scores or probabilities of an element type: a factor and, perhaps, a tanh; Any is a GraphProto."""
    factor = helper.make_tensor("factor", kind, (), [draw.one_of([0.5, 2.0])])
    nodes = [helper.make_node("Mul", ["given", "factor"], ["scaled"])]
    nodes.append(helper.make_node(draw.one_of(["Tanh", "Identity"]), ["scaled"], ["result"]))
    ends = [[helper.make_tensor_value_info(name, kind, ["B", "N", "S", "T"])] for name in ("given", "result")]
    return helper.make_graph(nodes, "modifier", ends[0], ends[1], [factor])


def _flex_attention(draw: Draw) -> Instance:
    batch, groups, per_group, length, keys, size, value_size = (draw.integer(1, 3) for _ in range(7))
    dtype = draw.one_of(_WIDE)
    kind = 11 if dtype is np.float64 else 1
    attributes: dict[str, Any] = {name: _modifier(draw, kind) for name in ("score_mod", "prob_mod") if draw.flag()}
    if draw.flag():
        attributes["scale"] = 0.5
    shapes = ([batch, groups * per_group, length, size], [batch, groups, keys, size], [batch, groups, keys, value_size])
    return Instance([draw.array(shape, dtype) for shape in shapes], attributes, domain="ai.onnx.preview")


def _linear_attention(draw: Draw) -> Instance:
    batch, length, heads, size, value_size = (draw.integer(1, 3) for _ in range(5))
    rule = draw.one_of(["linear", "gated", "delta", "gated_delta"])
    query, key = (draw.array([batch, length, heads * size], scale=0.5) for _ in range(2))
    value = draw.array([batch, length, heads * value_size], scale=0.5)
    state = draw.maybe(draw.array([batch, heads, size, value_size], scale=0.5))
    decay = -np.abs(draw.array([batch, length, heads], scale=0.5)) if rule.startswith("gated") else None
    beta = draw.array([batch, length, heads], scale=0.5) if rule.endswith("delta") else None
    attributes = {"q_num_heads": heads, "kv_num_heads": heads, "update_rule": rule}
    return Instance([query, key, value, state, decay, beta], attributes, 2)


def _causal_conv(draw: Draw) -> Instance:
    batch, channels, length, kernel = (draw.integer(1, 4) for _ in range(4))
    bias, state = draw.maybe(draw.array([channels])), draw.maybe(draw.array([batch, channels, kernel - 1]))
    attributes = {"activation": draw.one_of(["none", "silu", "swish"])}
    return Instance([draw.array([batch, channels, length]), draw.array([channels, 1, kernel]), bias, state], attributes, 2)


def _swiglu(draw: Draw) -> Instance:
    shape, dtype = draw.shape(), draw.one_of(_WIDE)
    return Instance([draw.array(shape, dtype), draw.array(shape, dtype)], {"alpha": 1.5} if draw.flag() else {})


INSTANCES: dict[str, Generator] = {
    "AffineGrid": _affine_grid,
    "Attention": _attention,
    "BlackmanWindow": _window,
    "CastLike": _cast_like,
    "CausalConvWithState": _causal_conv,
    "Celu": _unary(alpha=(0.5, 2.0)),
    "CenterCropPad": _center_crop_pad,
    "Clip": _clip,
    "DepthToSpace": _blocks(deep=True),
    "DynamicQuantizeLinear": _quantize,
    "Elu": _unary(alpha=(0.5, 2.0)),
    "Gelu": _gelu,
    "GreaterOrEqual": _compare,
    "FlexAttention": _flex_attention,
    "GroupNormalization": _group_norm,
    "HammingWindow": _window,
    "HannWindow": _window,
    "HardSigmoid": _unary(alpha=(0.1, 0.5), beta=(0.2, 0.8)),
    "HardSwish": _unary(),
    "LayerNormalization": _layer_norm,
    "LeakyRelu": _unary(alpha=(0.0, 0.5)),
    "LessOrEqual": _compare,
    "LinearAttention": _linear_attention,
    "LogSoftmax": _softmax,
    "MeanVarianceNormalization": _mean_variance,
    "Mish": _unary(),
    "NegativeLogLikelihoodLoss": _loss(is_log=False),
    "PRelu": _prelu,
    "RMSNormalization": _rms_norm,
    "Range": _range,
    "ReduceL1": _reduce(np.float32, np.float64, np.int32, np.int64),
    "ReduceL2": _reduce(np.float32, np.float64),
    "ReduceLogSum": _reduce(np.float32, np.float64, smallest=1, positive=True),
    "ReduceLogSumExp": _reduce(np.float32, np.float64, smallest=1),
    "ReduceSumSquare": _reduce(np.float32, np.float64, np.int32, np.int64),
    "Relu": _unary(),
    "RotaryEmbedding": _rotary,
    "Selu": _unary(alpha=(0.5, 2.0), gamma=(0.5, 2.0)),
    "Shrink": _unary(_WIDE, lambd=(0.1, 1.0), bias=(0.0, 0.5)),
    "Softmax": _softmax,
    "SoftmaxCrossEntropyLoss": _loss(is_log=True),
    "Softplus": _unary(),
    "Softsign": _unary(),
    "SpaceToDepth": _blocks(deep=False),
    "SwiGLU": _swiglu,
    "Swish": _unary(alpha=(0.5, 2.0)),
    "ThresholdedRelu": _unary(alpha=(0.0, 1.0)),
}
"""Operator -> what draws an instance of it."""

WITHOUT = {
    "Bernoulli": "its body draws a 1 with probability 1 - p: test_the_body_of_Bernoulli_is_the_wrong_way_round",
    "SequenceMap": "its input is a sequence: test_SequenceMap_agrees_with_its_body",
}
"""Operators with a body that have a test of their own, and its name."""
