"""Convolutions and pools."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from formats.tflite.cases.case import Case, Q, case, drawn


def cases() -> Iterator[Case]:
    """Return the cases."""
    yield from _convolutions()
    yield from _quantized()
    yield from _pools()


def _convolutions() -> Iterator[Case]:
    x, b = drawn((2, 7, 6, 3)), drawn((4,))
    for padding in ("SAME", "VALID"):
        for strides, dilation in (((1, 1), 1), ((2, 3), 1), ((1, 1), 2)):
            shape = _conv_shape((7, 6), (3, 2), strides, dilation, padding)
            options = {"padding": padding, "stride_h": strides[0], "stride_w": strides[1]}
            options |= {"dilation_h_factor": dilation, "dilation_w_factor": dilation, "fused_activation_function": "RELU6"}
            name = f"{padding.lower()} {strides} {dilation}"
            w = drawn((4, 3, 2, 3))
            yield case(f"conv {name}", "CONV_2D", [x, w, b], [((2, *shape, 4),)], ("Conv2DOptions", options), constants=(1, 2))
            w = drawn((1, 3, 2, 6))
            depthwise = options | {"depth_multiplier": 2}
            yield case(
                f"depthwise {name}",
                "DEPTHWISE_CONV_2D",
                [x, w, drawn((6,))],
                [((2, *shape, 6),)],
                ("DepthwiseConv2DOptions", depthwise),
                constants=(1, 2),
            )
    options = {"padding": "VALID", "stride_h": 1, "stride_w": 1}
    yield case(
        "conv groups",
        "CONV_2D",
        [drawn((1, 4, 4, 6)), drawn((4, 3, 3, 3)), drawn((4,))],
        [((1, 2, 2, 4),)],
        ("Conv2DOptions", options),
        constants=(1, 2),
    )
    yield case(
        "conv without bias",
        "CONV_2D",
        [x, drawn((4, 1, 1, 3))],
        [((2, 7, 6, 4),)],
        ("Conv2DOptions", options),
        constants=(1,),
        peer="",
    )
    yield case("conv computed filters", "CONV_2D", [x, drawn((4, 1, 1, 3)), b], [((2, 7, 6, 4),)], ("Conv2DOptions", options))
    for padding, out in (("SAME", (8, 8)), ("VALID", (9, 9))):
        options = {"padding": padding, "stride_h": 2, "stride_w": 2}
        inputs = [np.array([1, *out, 3], np.int32), drawn((3, 3, 3, 2)), drawn((1, 4, 4, 2))]
        yield case(
            f"transpose conv {padding}",
            "TRANSPOSE_CONV",
            inputs,
            [((1, *out, 3),)],
            ("TransposeConvOptions", options),
            constants=(0, 1),
        )
        yield case(
            f"transpose conv bias {padding}",
            "TRANSPOSE_CONV",
            [*inputs, drawn((3,))],
            [((1, *out, 3),)],
            ("TransposeConvOptions", options | {"fused_activation_function": "RELU"}),
            constants=(0, 1, 3),
            version=4,
        )
        for batch in (1, 2):
            rounded = Q(drawn((3, 3, 3, 5), "INT8"), (0.01, 0))
            inputs = [np.array([batch, *out, 3], np.int32), rounded, drawn((batch, 4, 4, 5)), drawn((3,))]
            yield case(
                f"transpose conv rounded {padding} {batch}",
                "TRANSPOSE_CONV",
                inputs,
                [((batch, *out, 3),)],
                ("TransposeConvOptions", options),
                constants=(0, 1, 3),
                version=3,
            )
    for padding, out in (("SAME", (3, 2, 5)), ("VALID", (2, 1, 4))):
        options = {"padding": padding, "stride_d": 2, "stride_h": 2, "stride_w": 1}
        inputs = [drawn((1, 5, 4, 5, 2)), drawn((2, 3, 2, 2, 3)), drawn((3,))]
        yield case(f"conv 3d {padding}", "CONV_3D", inputs, [((1, *out, 3),)], ("Conv3DOptions", options), constants=(1, 2))
    for padding, out in (("SAME", (4, 6, 5)), ("VALID", (4, 7, 6))):
        options = {"padding": padding, "stride_d": 2, "stride_h": 2, "stride_w": 1}
        inputs = [np.array([1, *out, 2], np.int32), drawn((2, 3, 2, 2, 3)), drawn((1, 2, 3, 5, 3)), drawn((2,))]
        yield case(
            f"conv 3d transpose {padding}",
            "CONV_3D_TRANSPOSE",
            inputs,
            [((1, *out, 2),)],
            ("Conv3DOptions", options),
            constants=(0, 1, 3),
        )


def _quantized() -> Iterator[Case]:
    options = {"padding": "SAME", "stride_h": 1, "stride_w": 2}
    for kind, zero in (("INT8", -3), ("UINT8", 120)):
        per_tensor = kind == "UINT8"
        x = Q(drawn((1, 5, 6, 4), kind), (0.05, zero))
        scales = np.float32(0.01) if per_tensor else np.array([0.01, 0.02, 0.005], np.float32)
        points = 131 if per_tensor else [0, 0, 0]
        w = Q(drawn((3, 3, 3, 4), kind), (scales, points, 0))
        b = Q(drawn((3,), "INT32", -500, 500), (scales * np.float32(0.05), 0 if per_tensor else [0, 0, 0], 0))
        out = ((1, 5, 3, 3), kind, (0.07, zero + 5))
        yield case(f"conv {kind}", "CONV_2D", [x, w, b], [out], ("Conv2DOptions", options), constants=(1, 2), version=3)
        relu = ("Conv2DOptions", options | {"fused_activation_function": "RELU6"})
        yield case(f"conv relu6 {kind}", "CONV_2D", [x, w, b], [out], relu, constants=(1, 2), version=3)
        wide = np.float32(0.01) if per_tensor else np.array([0.01, 0.02, 0.005, 0.01], np.float32)
        w = Q(drawn((1, 3, 3, 4), kind), (wide, 131 if per_tensor else [0] * 4, 3))
        b = Q(drawn((4,), "INT32", -500, 500), (wide * np.float32(0.05), 0 if per_tensor else [0] * 4, 0))
        out = ((1, 5, 3, 4), kind, (0.07, zero + 5))
        yield case(
            f"depthwise {kind}",
            "DEPTHWISE_CONV_2D",
            [x, w, b],
            [out],
            ("DepthwiseConv2DOptions", options | {"depth_multiplier": 1}),
            constants=(1, 2),
            version=3,
        )
        x = Q(drawn((1, 4, 4, 2), kind), (0.05, zero))
        w = Q(drawn((3, 3, 3, 2), kind), (scales, points, 0))
        shape = np.array([1, 8, 8, 3], np.int32)
        yield case(
            f"transpose conv {kind}",
            "TRANSPOSE_CONV",
            [shape, w, x],
            [((1, 8, 8, 3), kind, (0.1, zero))],
            ("TransposeConvOptions", {"padding": "SAME", "stride_h": 2, "stride_w": 2}),
            constants=(0, 1),
            version=2,
        )
    scales = np.array([0.01, 0.02, 0.005], np.float32)
    x = Q(drawn((1, 5, 6, 4), "INT16"), (0.001, 0))
    w = Q(drawn((3, 3, 3, 4), "INT8"), (scales, [0, 0, 0], 0))
    b = Q(drawn((3,), "INT64", -50000, 50000), (scales * np.float32(0.001), [0, 0, 0], 0))
    yield case(
        "conv int16",
        "CONV_2D",
        [x, w, b],
        [((1, 5, 3, 3), "INT16", (0.002, 0))],
        ("Conv2DOptions", options),
        constants=(1, 2),
        version=4,
    )
    narrow = Q(drawn((3,), "INT32", -50000, 50000), (scales * np.float32(0.001), [0, 0, 0], 0))
    yield case(
        "conv int16 with an int32 bias",
        "CONV_2D",
        [x, w, narrow],
        [((1, 5, 3, 3), "INT16", (0.002, 0))],
        ("Conv2DOptions", options | {"quantized_bias_type": "INT32"}),
        constants=(1, 2),
        version=8,
    )
    w = Q(drawn((3, 3, 3, 4), "INT4"), (scales, [0, 0, 0], 0), "INT4")
    b = Q(drawn((3,), "INT32", -500, 500), (scales * np.float32(0.05), [0, 0, 0], 0))
    x = Q(drawn((1, 5, 6, 4), "INT8"), (0.05, 4))
    yield case(
        "conv int4 weights",
        "CONV_2D",
        [x, w, b],
        [((1, 5, 3, 3), "INT8", (0.02, 4))],
        ("Conv2DOptions", options),
        constants=(1, 2),
        version=7,
    )


def _pools() -> Iterator[Case]:
    for padding in ("SAME", "VALID"):
        shape = _conv_shape((7, 6), (3, 2), (2, 1), 1, padding)
        options = {"padding": padding, "stride_h": 2, "stride_w": 1, "filter_height": 3, "filter_width": 2}
        for code in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"):
            yield case(f"{code} {padding}", code, [drawn((2, 7, 6, 3))], [((2, *shape, 3),)], ("Pool2DOptions", options))
        for kind in ("INT8", "UINT8", "INT16"):
            scale = (0.05, 0 if kind == "INT16" else 3)
            x = Q(drawn((2, 7, 6, 3), kind), scale)
            for code in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
                version = 3 if kind == "INT16" else 2
                yield case(
                    f"{code} {padding} {kind}",
                    code,
                    [x],
                    [((2, *shape, 3), kind, scale)],
                    ("Pool2DOptions", options),
                    version=version,
                )
            for code in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
                name = f"{code} {padding} {kind} without scale"
                yield case(name, code, [drawn((2, 7, 6, 3), kind)], [((2, *shape, 3), kind)], ("Pool2DOptions", options))
        relu = ("Pool2DOptions", options | {"fused_activation_function": "RELU"})
        yield case(f"max pool relu {padding}", "MAX_POOL_2D", [drawn((2, 7, 6, 3))], [((2, *shape, 3),)], relu)


def _conv_shape(
    sizes: tuple[int, int], windows: tuple[int, int], strides: tuple[int, int], dilation: int, padding: str
) -> tuple[int, ...]:
    if padding == "SAME":
        return tuple(-(-size // stride) for size, stride in zip(sizes, strides, strict=True))
    return tuple(
        (size - (window - 1) * dilation - 1) // stride + 1 for size, window, stride in zip(sizes, windows, strides, strict=True)
    )
