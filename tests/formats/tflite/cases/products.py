"""Products of matrices, and products of real numbers by integers that stand for such."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from formats.tflite.cases.case import Case, Q, blockwise, case, drawn
from support.flat_models import Sketch


def cases() -> Iterator[Case]:
    """Return the cases."""
    yield from _plain()
    yield from _quantized()
    yield from _hybrid()
    yield from _shuffled()
    yield from _blocks()


def _plain() -> Iterator[Case]:
    w, b = drawn((5, 4)), drawn((5,))
    for activation in ("NONE", "RELU6"):
        options = ("FullyConnectedOptions", {"fused_activation_function": activation})
        yield case(
            f"FULLY_CONNECTED {activation}", "FULLY_CONNECTED", [drawn((3, 4)), w, b], [((3, 5),)], options, constants=(1, 2)
        )
    yield case(
        "FULLY_CONNECTED without bias",
        "FULLY_CONNECTED",
        [drawn((3, 4)), w, None],
        [((3, 5),)],
        ("FullyConnectedOptions", {}),
        constants=(1,),
    )
    keep = ("FullyConnectedOptions", {"keep_num_dims": True})
    yield case(
        "FULLY_CONNECTED keep", "FULLY_CONNECTED", [drawn((2, 3, 4)), w, b], [((2, 3, 5),)], keep, constants=(1, 2), version=5
    )
    yield case(
        "FULLY_CONNECTED flat",
        "FULLY_CONNECTED",
        [drawn((2, 2, 2)), w, b],
        [((2, 5),)],
        ("FullyConnectedOptions", {}),
        constants=(1, 2),
    )
    for left in (False, True):
        for right in (False, True):
            x, y = drawn((2, 4, 3) if left else (2, 3, 4)), drawn((2, 5, 4) if right else (2, 4, 5), seed=1)
            yield case(
                f"BATCH_MATMUL {left} {right}",
                "BATCH_MATMUL",
                [x, y],
                [((2, 3, 5),)],
                ("BatchMatMulOptions", {"adj_x": left, "adj_y": right}),
            )


def _quantized() -> Iterator[Case]:
    for kind, zero in (("INT8", 3), ("UINT8", 120)):
        x = Q(drawn((3, 8), kind), (0.05, zero))
        scales = np.float32(0.01) if kind == "UINT8" else np.array([0.01, 0.02, 0.005, 0.01, 0.02], np.float32)
        points = 131 if kind == "UINT8" else [0] * 5
        w = Q(drawn((5, 8), kind), (scales, points, 0))
        b = Q(drawn((5,), "INT32", -500, 500), (scales * np.float32(0.05), 0 if kind == "UINT8" else [0] * 5, 0))
        out = ((3, 5), kind, (0.1, zero - 1))
        yield case(
            f"FULLY_CONNECTED {kind}",
            "FULLY_CONNECTED",
            [x, w, b],
            [out],
            ("FullyConnectedOptions", {}),
            constants=(1, 2),
            version=4,
        )
    x, scale = Q(drawn((3, 8), "INT16"), (0.001, 0)), np.float32(0.01)
    w = Q(drawn((5, 8), "INT8"), (scale, 0))
    b = Q(drawn((5,), "INT64", -5000, 5000), (scale * np.float32(0.001), 0))
    yield case(
        "FULLY_CONNECTED int16",
        "FULLY_CONNECTED",
        [x, w, b],
        [((3, 5), "INT16", (0.01, 0))],
        ("FullyConnectedOptions", {}),
        constants=(1, 2),
        version=4,
    )
    narrow = Q(drawn((5,), "INT32", -5000, 5000), (scale * np.float32(0.001), 0))
    yield case(
        "FULLY_CONNECTED int16 with an int32 bias",
        "FULLY_CONNECTED",
        [Q(drawn((3, 8), "INT16"), (0.001, 0)), w, narrow],
        [((3, 5), "INT16", (0.01, 0))],
        ("FullyConnectedOptions", {"quantized_bias_type": "INT32"}),
        constants=(1, 2),
        version=11,
    )
    x, y = Q(drawn((2, 3, 4), "INT8"), (0.05, 3)), Q(drawn((2, 4, 5), "INT8", seed=1), (0.02, -4))
    yield case("BATCH_MATMUL int8", "BATCH_MATMUL", [x, y], [((2, 3, 5), "INT8", (0.1, 1))], ("BatchMatMulOptions", {}), version=2)


def _shuffled() -> Iterator[Case]:
    """Return products by weights in blocks of 4 rows and 16 columns; kernels take 1 or 4 rows."""
    for rows, activation in ((1, "NONE"), (4, "RELU6")):
        units, depth = 8, 32
        w = drawn((units, depth), "UINT8", seed=1)
        blocks = (w ^ 128).reshape(units // 4, 4, depth // 16, 16).transpose(0, 2, 1, 3).reshape(units, depth)
        scale = np.float32(0.01)
        b = Q(drawn((units,), "INT32", -500, 500), (scale * np.float32(0.05), 0))
        yield case(
            f"FULLY_CONNECTED shuffled {rows}",
            "FULLY_CONNECTED",
            [Q(drawn((rows, depth), "UINT8"), (0.05, 128)), Q(np.ascontiguousarray(blocks), (scale, 128)), b],
            [((rows, units), "INT16", (2**-12, 0)), ((rows, depth), "UINT8")],
            ("FullyConnectedOptions", {"weights_format": "SHUFFLED4x16INT8", "fused_activation_function": activation}),
            constants=(1, 2),
            version=2,
        )


def _blocks() -> Iterator[Case]:
    """Return products by weights of 4 bits, and a table of such, that have a scale for each 32 elements of a row."""
    rows, depth, size = 16, 128, 32
    for count in (1, 3):
        sketch = Sketch()
        x, w = sketch.input((count, depth)), blockwise(sketch, rows, depth, size)
        made = sketch.tensor((count, rows))
        options = ("FullyConnectedOptions", {})  # the kernel passes over a fused activation
        sketch.operator("FULLY_CONNECTED", [x, w, sketch.constant(drawn((rows,)))], [made], options, version=12)
        # the reference kernel leaves its result as it was
        yield Case(f"FULLY_CONNECTED blocks {count}", sketch.model([made]), [drawn((count, depth))], peer="optimized")
    sketch = Sketch()
    places = np.array([5, 0, 15, 5], np.int32)
    inputs = [sketch.input(places.shape, "INT32"), blockwise(sketch, rows, depth, size)]
    made = sketch.tensor((len(places), depth))
    sketch.operator("EMBEDDING_LOOKUP", inputs, [made], version=4)
    yield Case("EMBEDDING_LOOKUP blocks", sketch.model([made]), [places])


def _hybrid() -> Iterator[Case]:
    for asymmetric in (False, True):
        for per_channel in (False, True):
            scales = np.linspace(0.01, 0.02, 5, dtype=np.float32) if per_channel else np.float32(0.01)
            w = Q(np.maximum(drawn((5, 16), "INT8"), -127).astype(np.int8), (scales, [0] * 5 if per_channel else 0, 0))
            options = ("FullyConnectedOptions", {"asymmetric_quantize_inputs": asymmetric})
            name = f"FULLY_CONNECTED hybrid {asymmetric} {per_channel}"
            version = 12 if per_channel else 9
            yield case(
                name, "FULLY_CONNECTED", [drawn((3, 16)), w, drawn((5,))], [((3, 5),)], options, constants=(1, 2), version=version
            )
    for kind in ("INT4", "INT2"):
        weights = Q(drawn((5, 16), kind), (np.linspace(0.1, 0.2, 5, dtype=np.float32), [0] * 5, 0), kind)
        inputs = [drawn((3, 16)), weights, drawn((5,))]
        options = ("FullyConnectedOptions", {})
        yield case(f"FULLY_CONNECTED hybrid {kind}", "FULLY_CONNECTED", inputs, [((3, 5),)], options, constants=(1, 2), version=12)
    options = {"padding": "SAME", "stride_h": 1, "stride_w": 1}
    for per_channel in (False, True):
        scales = np.linspace(0.01, 0.02, 4, dtype=np.float32) if per_channel else np.float32(0.01)
        w = Q(drawn((4, 3, 3, 2), "INT8"), (scales, [0] * 4 if per_channel else 0, 0))
        name = f"CONV_2D hybrid {per_channel}"
        yield case(
            name,
            "CONV_2D",
            [drawn((2, 5, 4, 2)), w, drawn((4,))],
            [((2, 5, 4, 4),)],
            ("Conv2DOptions", options),
            constants=(1, 2),
            version=5,
        )
    w = Q(drawn((1, 3, 3, 4), "INT8"), (np.linspace(0.01, 0.02, 4, dtype=np.float32), [0] * 4, 3))
    depthwise = ("DepthwiseConv2DOptions", options | {"depth_multiplier": 1})
    yield case(
        "DEPTHWISE_CONV_2D hybrid",
        "DEPTHWISE_CONV_2D",
        [drawn((2, 5, 4, 4)), w, drawn((4,))],
        [((2, 5, 4, 4),)],
        depthwise,
        constants=(1, 2),
        version=6,
    )
