"""Nodes of every operator that the CPU provider claims, with attributes and sizes that mostly fit, and sometimes do not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuzz.control import make_if, make_loop, make_scan
from fuzz.draw import Draw
from fuzz.model import Case, Making

__all__ = ["MOVING", "OPERATORS", "make_case"]

_MOVED = ("float", "float", "uint8", "int64", "float16", "double", "bool")


def _pad(m: Making) -> str:
    shape = m.shape(m.small(1, 3))
    axes = None if m.draw.chance(2) else [m.axis(len(shape)) for _ in range(m.small(1, len(shape)))]
    mode = m.draw.pick(("constant", "constant", "edge", "reflect", "wrap" if m.opset >= 19 else "constant"))
    count = len(shape) if axes is None or m.opset < 18 else len(axes)
    ends = [(m.number(-6, 9), m.number(-6, 9)) for _ in range(count)]
    if m.draw.chance(3):
        added, size = m.number(0, 9), shape[axes[0] % len(shape) if axes and m.opset >= 18 else 0]
        ends[0] = m.draw.pick(((added, m.small(0, 2) - added - size), (m.small(0, 2) - added - size, added)))
    pads = m.ints([max(-(1 << 63), pair[end]) for end in range(2) for pair in ends])
    x = m.feed(shape, m.draw.pick(_MOVED))
    return m.call("Pad", [x, pads, *([] if axes is None or m.opset < 18 else [None, m.ints(axes)])], mode=mode)


def _slice(m: Making) -> str:
    shape = m.shape(m.small(1, 4))
    count = m.small(1, len(shape))
    axes = [m.axis(len(shape)) if m.draw.chance(3) else axis for axis in range(count)]
    starts, ends = m.numbers(count, -5, 5), m.numbers(count, -5, 9)
    steps = [m.draw.pick((1, 1, 2, -1, 3, -2, m.number())) for _ in range(count)]
    x = m.feed(shape, m.draw.pick(_MOVED))
    return m.call("Slice", [x, m.ints(starts), m.ints(ends), m.ints(axes), m.ints(steps)])


def _split(m: Making) -> str:
    shape = m.shape(m.small(1, 3))
    axis, count = m.draw.below(len(shape)), m.small(1, 4)
    if m.draw.chance(2):
        return m.call("Split", [m.feed(shape)], count, axis=axis, num_outputs=count if m.opset >= 18 else None)
    lengths = [m.number(-1, 3) for _ in range(count - 1)]
    lengths.append(max(-(1 << 63), min(shape[axis] - sum(lengths), (1 << 63) - 1)))
    if m.opset < 13:
        return m.call("Split", [m.feed(shape)], count, axis=axis, split=lengths)
    return m.call("Split", [m.feed(shape), m.ints(lengths)], count, axis=axis)


def _concat(m: Making) -> str:
    shape, kind = m.shape(m.small(1, 3)), m.draw.pick(_MOVED)
    axis = m.axis(len(shape))
    parts = []
    for _ in range(m.small(1, 4)):
        own = m.near(shape)
        if -len(own) <= axis < len(own):
            own[axis] = m.size()
        parts.append(m.feed(own, kind))
    return m.call("Concat", [m.call("Relu", [part]) if kind == "float" and m.draw.chance(2) else part for part in parts], axis=axis)


def _gather(m: Making) -> str:
    shape = m.shape(m.small(1, 3))
    axis = m.axis(len(shape))
    x, kind = m.feed(shape, m.draw.pick(_MOVED)), m.draw.pick(("int64", "int32"))
    if m.draw.chance(3):
        return m.call("Gather", [x, m.ints([m.number(-3, 3)], scalar=m.draw.chance(2), kind=kind)], axis=axis)
    return m.call("Gather", [x, m.weight(m.shape(m.small(0, 2)), kind)], axis=axis)


def _gather_elements(m: Making) -> str:
    shape = m.shape(m.small(1, 3))
    return m.call("GatherElements", [m.feed(shape), m.weight(m.near(shape), "int64")], axis=m.axis(len(shape)))


def _gather_nd(m: Making) -> str:
    shape, batch = m.shape(m.small(1, 4)), m.number(0, 1)
    depth = m.small(0, len(shape))
    return m.call(
        "GatherND", [m.feed(shape), m.weight([*shape[: max(batch, 0) % 2], *m.shape(1), depth], "int64")], batch_dims=batch
    )


def _scatter_elements(m: Making) -> str:
    shape, kind = m.shape(m.small(1, 3)), m.draw.pick(("float", "int64", "uint8"))
    inner = m.near(shape)
    reduction = m.draw.pick((None, "add", "max")) if m.opset >= 18 else None
    inputs = [m.feed(shape, kind), m.weight(inner, "int64"), m.feed(m.near(inner) if m.draw.chance(8) else inner, kind)]
    return m.call("ScatterElements", inputs, axis=m.axis(len(shape)), reduction=reduction)


def _scatter_nd(m: Making) -> str:
    shape, count = m.shape(m.small(1, 3)), m.size()
    depth = m.small(0, len(shape))
    inputs = [m.feed(shape), m.weight([count, depth], "int64"), m.feed(m.near([count, *shape[depth:]]))]
    return m.call("ScatterND", inputs, reduction=m.draw.pick((None, "add", "mul")) if m.opset >= 16 else None)


def _one_hot(m: Making) -> str:
    shape = m.shape(m.small(0, 2))
    inputs = [m.feed(shape, "int64"), m.ints([m.number(-1, 5)], scalar=m.draw.chance(2)), m.weight([m.draw.pick((2, 2, 2, 3))])]
    return m.call("OneHot", inputs, axis=m.axis(len(shape) + 1))


def _transpose(m: Making) -> str:
    shape = m.shape(m.small(1, 4))
    order = list(range(len(shape)))
    for place in range(len(order)):
        other = m.draw.below(len(order))
        order[place], order[other] = order[other], order[place]
    if m.draw.chance(12):
        order[0] = m.number(-1, 4)
    return m.call("Transpose", [m.feed(shape, m.draw.pick(_MOVED))], perm=order)


def _reshape(m: Making) -> str:
    shape = m.shape(m.small(1, 3))
    target = m.draw.pick(([-1], [0, -1], [-1, *shape[1:]], [shape[0], 1, -1], [*shape, 1], m.numbers(2, -2, 6)))
    return m.call("Reshape", [m.feed(shape), m.ints(target)], allowzero=m.draw.pick((None, 1)) if m.opset >= 14 else None)


def _squeeze(m: Making) -> str:
    shape = m.shape(m.small(1, 3))
    axes = [m.axis(len(shape)) for _ in range(m.small(1, 2))]
    op = m.draw.pick(("Unsqueeze", "Squeeze", "Flatten"))
    if op == "Flatten":
        return m.call(op, [m.feed(shape)], axis=m.number(-3, 3))
    return m.call(op, [m.feed(shape), m.ints(axes)]) if m.opset >= 13 else m.call(op, [m.feed(shape)], axes=axes)


def _expand(m: Making) -> str:
    shape = m.shape(m.small(0, 3))
    target = [m.number(0, 5) if size == 1 or m.draw.chance(10) else size for size in shape]
    return m.call("Expand", [m.feed(shape), m.ints([*m.numbers(m.small(0, 1), 0, 3), *target])])


def _tile(m: Making) -> str:
    shape = m.shape(m.small(1, 3))
    return m.call("Tile", [m.feed(shape), m.ints(m.numbers(len(shape), 0, 3))])


def _blocks(m: Making) -> str:
    block, op = m.number(0, 3), m.draw.pick(("DepthToSpace", "SpaceToDepth"))
    side = max(1, min(block, 3))
    N, C, H, W = m.shape(4)
    shape = [N, C * side * side, H, W] if op == "DepthToSpace" else [N, C, H * side, W * side]
    return m.call(op, [m.feed(m.near(shape))], blocksize=block, mode=m.draw.pick((None, "CRD")) if op == "DepthToSpace" else None)


def _window(m: Making, rank: int, *, pads: bool = True) -> dict[str, object]:
    found: dict[str, object] = {}
    if m.draw.chance(2):
        found["strides"] = m.numbers(rank, 1, 3)
    if m.draw.chance(3):
        found["dilations"] = m.numbers(rank, 1, 2)
    if pads and m.draw.chance(2):
        found["pads"] = m.numbers(2 * rank, 0, 2)
    elif m.draw.chance(4):
        found["auto_pad"] = m.draw.pick(("VALID", "SAME_UPPER", "SAME_LOWER"))
    return found


def _image(m: Making, C: int, rank: int) -> str:
    """An image, which may be padded first."""
    x = m.feed([m.small(1, 2), C, *m.shape(rank)])
    if not m.draw.chance(4):
        return x
    pads = [0, 0, *m.numbers(rank, -1, 3), 0, 0, *m.numbers(rank, -1, 3)][: 2 * rank + 4]
    return m.call("Pad", [x, m.ints(pads)])


def _conv(m: Making) -> str:
    rank, groups = m.small(1, 3), m.draw.pick((1, 1, 1, 2, 3))
    C, M = groups * m.draw.pick((1, 2, 4, 16)), groups * m.draw.pick((1, 3, 8, 16))
    if m.draw.chance(5):
        M, groups = C, C
    kernel = [m.draw.pick((1, 2, 3, 3, 5)) for _ in range(rank)]
    group = m.number(0, 3) if m.draw.chance(20) else groups
    x, w = _image(m, C, rank), m.weight(m.near([M, C // groups, *kernel]))
    bias = [m.weight(m.near([M]))] if m.draw.chance(2) else []
    return m.call("Conv", [x, w, *bias], group=group, **_window(m, rank))


def _conv_transpose(m: Making) -> str:
    rank, groups = m.small(1, 2), m.draw.pick((1, 1, 2))
    C, M = groups * m.draw.pick((1, 2, 16)), m.draw.pick((1, 3, 16))
    attributes = _window(m, rank)
    if m.draw.chance(3):
        attributes["output_padding"] = m.numbers(rank, 0, 2)
    if m.draw.chance(6):
        attributes["output_shape"] = m.numbers(rank, 1, 12)
    w = m.weight(m.near([C, M, *(m.draw.pick((1, 2, 3, 4)) for _ in range(rank))]))
    return m.call("ConvTranspose", [_image(m, C, rank), w], group=groups, **attributes)


def _pool(m: Making) -> str:
    rank, op = m.small(1, 3), m.draw.pick(("MaxPool", "AveragePool", "LpPool"))
    attributes = _window(m, rank)
    if op != "MaxPool" and m.opset < 19:
        attributes.pop("dilations", None)
    if op != "LpPool" or m.opset >= 18:
        attributes["ceil_mode"] = m.draw.pick((None, 1))
    if op == "AveragePool":
        attributes["count_include_pad"] = m.draw.pick((None, 1))
    return m.call(op, [_image(m, m.draw.pick((1, 3, 16, 17)), rank)], kernel_shape=m.numbers(rank, 1, 4), **attributes)


def _global_pool(m: Making) -> str:
    return m.call(m.draw.pick(("GlobalAveragePool", "GlobalMaxPool")), [_image(m, m.size(), m.small(1, 2))])


def _resize(m: Making) -> str:
    shape = m.shape(m.small(1, 4))
    mode = m.draw.pick(("nearest", "linear", "cubic"))
    coordinates = m.draw.pick(("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric"))
    if coordinates == "half_pixel_symmetric" and m.opset < 19:
        coordinates = "half_pixel"
    attributes = {"mode": mode, "coordinate_transformation_mode": coordinates, "nearest_mode": m.draw.pick((None, "ceil", "floor"))}
    x = m.feed(shape, "float" if mode != "nearest" else m.draw.pick(("float", "uint8")))
    axes = list(range(len(shape)))
    if m.opset >= 18 and m.draw.chance(3):
        axes = [m.axis(len(shape)) for _ in range(m.small(1, len(shape)))]
        attributes["axes"] = axes  # type: ignore[assignment]
    empty = m.weight([0]) if m.opset < 13 else None
    if m.draw.chance(2):
        return m.call(
            "Resize", [x, empty, m.weight([0]) if m.opset < 13 else None, m.ints([m.number(0, 9) for _ in axes])], **attributes
        )
    scales = [m.draw.pick((1.0, 2.0, 0.5, 1.3, 3.7, 0.1, 1e-30, 1e30, -1.0, 0.0)) for _ in axes]
    return m.call("Resize", [x, empty, m.floats(scales)], **attributes)


def _matmul(m: Making) -> str:
    M, K, N = m.shape(3)
    batch = m.shape(m.small(0, 2))
    left, right = m.near([*batch, M, K]), m.near([K, N] if m.draw.chance(2) else [*batch, K, N])
    return m.call("MatMul", [m.feed(left), m.weight(right)])


def _gemm(m: Making) -> str:
    M, K, N = m.shape(3)
    turns = [m.draw.pick((None, 1)), m.draw.pick((None, 1))]
    a, b = ([M, K] if turns[0] is None else [K, M]), ([K, N] if turns[1] is None else [N, K])
    bias = [m.weight(m.near(m.draw.pick(([N], [M, N], [1, N], [M, 1], []))))] if m.draw.chance(2) else []
    return m.call("Gemm", [m.feed(m.near(a)), m.weight(m.near(b)), *bias], transA=turns[0], transB=turns[1])


def _integer_product(m: Making) -> str:
    M, K, N = m.shape(3)
    a_kind, b_kind, y_kind = (m.draw.pick(("uint8", "int8")) for _ in range(3))
    batch = m.shape(m.small(0, 2))
    a = m.feed(m.near([*batch, M, K]), a_kind)
    b = m.weight(m.near([K, N] if m.draw.chance(2) else [*batch, K, N]), b_kind)
    a_zero = m.weight(m.near(m.draw.pick(([], [1], [M], [M, 1]))), a_kind)
    b_zero = m.weight(m.near(m.draw.pick(([], [1], [N]))), b_kind)
    a_scale, b_scale, y_scale = (m.weight(m.near(m.draw.pick(([], [1], [size])))) for size in (M, N, 1))
    op = m.draw.pick(("MatMulInteger", "QLinearMatMul", "QGemm", "MatMulIntegerToFloat", "DynamicQuantizeMatMul"))
    if op == "MatMulInteger":
        return m.call(op, [a, b, a_zero, b_zero])
    y = [y_scale, m.weight([], y_kind)]
    if op == "QLinearMatMul":
        return m.call(op, [a, a_scale, a_zero, b, b_scale, b_zero, *y])
    if op == "QGemm":
        c = m.weight(m.near(m.draw.pick(([N], [M, N], [1, N], [M, 1], []))), "int32")
        turns = m.draw.pick((None, None, 1)), m.draw.pick((None, 1))
        return m.call(f"com.microsoft.{op}", [a, a_scale, a_zero, b, b_scale, b_zero, c, *y], transA=turns[0], transB=turns[1])
    bias = m.weight(m.near([N]))
    if op == "MatMulIntegerToFloat":
        return m.call(f"com.microsoft.{op}", [a, b, a_scale, b_scale, a_zero, b_zero, bias])
    return m.call(f"com.microsoft.{op}", [m.feed(m.near([*batch, M, K])), b, b_scale, b_zero, bias])


def _reduce(m: Making) -> str:
    names = "Sum Mean Max Min Prod L1 L2 LogSum LogSumExp SumSquare".split()
    shape, op = m.shape(m.small(0, 4)), "Reduce" + m.draw.pick(names)
    axes = [m.axis(len(shape)) for _ in range(m.small(0, 2))]
    keep = m.draw.pick((None, 0))
    x = m.feed(shape, m.draw.pick(("float", "float", "int64")) if op in ("ReduceSum", "ReduceMax") else "float")
    if m.opset >= (13 if op == "ReduceSum" else 18):
        return m.call(op, [x, m.ints(axes)] if axes else [x], keepdims=keep, noop_with_empty_axes=m.draw.pick((None, 1)))
    return m.call(op, [x], axes=axes or None, keepdims=keep)


def _along(m: Making) -> str:
    shape = m.shape(m.small(1, 4))
    op = m.draw.pick(("Softmax", "LogSoftmax", "ArgMax", "ArgMin", "CumSum", "LpNormalization"))
    axis = m.axis(len(shape))
    if op == "CumSum":
        return m.call(
            op, [m.feed(shape), m.ints([axis], scalar=True)], exclusive=m.draw.pick((None, 1)), reverse=m.draw.pick((None, 1))
        )
    return m.call(op, [m.feed(shape)], axis=axis)


def _normalize(m: Making) -> str:
    shape = m.shape(m.small(2, 4))
    op = m.draw.pick(
        ("LayerNormalization", "InstanceNormalization", "GroupNormalization", "BatchNormalization", "RMSNormalization")
    )
    x, C = m.feed(shape), shape[1]
    if op == "LayerNormalization":
        axis = m.axis(len(shape))
        own = shape[axis:] if -len(shape) <= axis < len(shape) else shape
        return m.call(op, [x, m.weight(m.near(own)), m.weight(m.near(own))], axis=axis)
    if op == "RMSNormalization":
        return m.call(op, [x, m.weight(m.near(shape[-1:]))])
    if op == "GroupNormalization":
        groups = m.number(0, 4)
        own = [C if m.opset >= 21 else groups % 64]
        return m.call(op, [x, m.weight(m.near(own)), m.weight(m.near(own))], num_groups=groups)
    count = 4 if op == "BatchNormalization" else 2
    return m.call(op, [x, *(m.weight(m.near([C])) for _ in range(count))])


def _attention(m: Making) -> str:
    B, S, T, D = m.small(1, 2), m.size(), m.size(), m.draw.pick((1, 2, 4, 8, 17))
    heads = m.small(1, 3)
    shared = m.draw.pick((heads, 1))
    attributes: dict[str, object] = {"is_causal": m.draw.pick((None, 1)), "softcap": m.draw.pick((None, 2.0))}
    if m.draw.chance(2):
        q, k = [B, S, heads * D], [B, T, shared * D]
        attributes.update(
            q_num_heads=m.number(1, 3) if m.draw.chance(8) else heads, kv_num_heads=m.number(1, 3) if m.draw.chance(8) else shared
        )
    else:
        q, k = [B, heads, S, D], [B, shared, T, D]
    inputs: list[str | None] = [m.feed(m.near(q)), m.feed(m.near(k)), m.feed(m.near(k))]
    P = m.size() if m.draw.chance(4) else 0
    if m.draw.chance(3):
        mask = m.draw.pick(([S, T + P], [1, 1, S, T + P], [B, heads, S, T + P], [T + P], [B, 1, 1, T + P]))
        inputs.append(m.feed(m.near(mask), m.draw.pick(("float", "bool"))))
    if P:
        inputs = [*inputs, None][:4] if len(inputs) == 3 else inputs
        past = [B, shared, P, D]
        inputs += [m.feed(m.near(past)), m.feed(m.near(past))]
        return m.call("Attention", inputs, 3, **attributes)
    return m.call("Attention", inputs, **attributes)


def _rotary(m: Making) -> str:
    B, H, S, D = m.small(1, 2), m.small(1, 3), m.size(), m.draw.pick((2, 4, 8, 16, 34))
    turned = m.number(0, 8) if m.draw.chance(4) else 0
    half = (min(abs(turned), 64) or D) // 2
    packed = m.draw.chance(2)
    x = m.feed(m.near([B, S, H * D] if packed else [B, H, S, D]))
    angles = m.near([B, S, half])
    attributes = {
        "num_heads": (m.number(0, 3) if m.draw.chance(8) else H) if packed else None,
        "rotary_embedding_dim": turned or None,
    }
    return m.call("RotaryEmbedding", [x, m.feed(angles), m.feed(angles)], interleaved=m.draw.pick((None, 1)), **attributes)


def _recurrent(m: Making) -> str:
    op = m.draw.pick(("RNN", "GRU", "LSTM"))
    T, N, features, H = m.small(0, 4), m.size(), m.small(1, 3), m.draw.pick((1, 2, 5, 16, 17))
    D, layout = m.small(1, 2), m.draw.pick((0, 0, 1)) if m.opset >= 14 else 0
    rows = {"RNN": 1, "GRU": 3, "LSTM": 4}[op] * H
    state, has_state = [N, D, H] if layout else [D, N, H], m.draw.chance(3)
    lengths = m.ints(m.numbers(N, 0, T), kind="int32") if N < 64 and m.draw.chance(2) else None
    inputs: list[str | None] = [m.feed(m.near([N, T, features] if layout else [T, N, features]))]
    inputs += [m.weight(m.near([D, rows, features])), m.weight(m.near([D, rows, H])), m.weight(m.near([D, 2 * rows])), lengths]
    if has_state:
        inputs.append(m.feed(m.near(state)))
    if has_state and op == "LSTM":
        inputs += [m.feed(m.near(state)), m.weight(m.near([D, 3 * H]))]
    attributes: dict[str, object] = {"hidden_size": m.number(1, 17) if m.draw.chance(12) else H, "layout": layout or None}
    if op == "GRU":
        attributes["linear_before_reset"] = m.draw.pick((None, 1))
    direction = "bidirectional" if D == 2 else m.draw.pick((None, "reverse"))
    return m.call(op, inputs, m.small(1, 3 if op == "LSTM" else 2), direction=direction, **attributes)


def _made(m: Making) -> str:
    op = m.draw.pick(("ConstantOfShape", "Range", "Trilu"))
    if op == "ConstantOfShape":
        return m.call(op, [m.ints(m.numbers(m.small(0, 3), 0, 5))])
    if op == "Range":
        return m.call(op, [m.ints([m.number(-3, 3)], scalar=True) for _ in range(3)])
    diagonal = [m.ints([m.number(-3, 3)], scalar=True)] if m.draw.chance(2) else []
    return m.call(op, [m.feed(m.shape(m.small(2, 3)), m.draw.pick(("float", "int64"))), *diagonal], upper=m.draw.pick((None, 0)))


def _broadcast(m: Making) -> str:
    shape, kind = m.shape(m.small(0, 4)), m.draw.pick(("float", "int64", "int32"))
    own = [1 if m.draw.chance(3) else size for size in m.near(shape)][m.small(0, 1) :]
    op = m.draw.pick(("Add", "Mul", "Div", "Mod", "Where", "Max", "PRelu"))
    left, right = m.feed(shape, kind), m.weight(own, kind)
    if op == "Where":
        return m.call(op, [m.feed(m.near(shape), "bool"), left, right])
    return m.call(op, [left, right], fmod=1 if op == "Mod" and kind == "float" else None)


OPERATORS: tuple[Callable[[Making], str], ...] = (
    _pad,
    _slice,
    _split,
    _concat,
    _gather,
    _gather_elements,
    _gather_nd,
    _scatter_elements,
    _scatter_nd,
    _one_hot,
    _transpose,
    _reshape,
    _squeeze,
    _expand,
    _tile,
    _blocks,
    _conv,
    _conv_transpose,
    _pool,
    _global_pool,
    _resize,
    _matmul,
    _gemm,
    _integer_product,
    _reduce,
    _along,
    _normalize,
    _attention,
    _rotary,
    _recurrent,
    _made,
    _broadcast,
    make_if,
    make_loop,
    make_scan,
)
"""Each adds a node with what it reads, and returns its outputs."""


MOVING = tuple(
    operator for operator in OPERATORS if operator in (_pad, _slice, _split, _concat, _gather, _tile, _expand, _transpose)
)
"""Those whose kernels compile in no time."""


def make_case(draw: Draw, operators: Sequence[Callable[[Making], str]] = OPERATORS) -> Case:
    """A node or two, whose outputs the graph gives as they are, or behind another node."""
    making = Making(draw)
    outputs = draw.pick(operators)(making).split(", ")
    follows = draw.pick((None, None, "Identity", "Transpose", *(("Relu", "Softmax") if making.is_float else ())))
    if follows is not None:
        place = draw.below(len(outputs))
        outputs[place] = making.call(follows, [outputs[place]])
    return making.case(outputs)
