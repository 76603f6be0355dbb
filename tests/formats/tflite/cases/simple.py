"""Element-wise operators, reductions, shapes and parts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from formats.tflite.cases.case import Case, Q, case, drawn

INT = np.int32


def cases() -> Iterator[Case]:
    """Return the cases."""
    yield from _unary()
    yield from _binary()
    yield from _reductions()
    yield from _shapes()
    yield from _parts()


def _of_16_bits() -> Iterator[Case]:
    """Functions that LiteRT takes from tables, of every integer; PRELU, whose slopes have 8 bits where activations have 16."""
    every = np.arange(-(1 << 15), 1 << 15).astype(np.int16).reshape(256, 256)
    for code, source, target, version in (("EXP", 2, 300, 2), ("LOG", 8, 12, 2), ("RSQRT", 8, 10, 3)):
        given = np.maximum(np.abs(every), 1) if code == "RSQRT" else every
        output = ((256, 256), "INT16", (target / (1 << 15), 0))
        yield case(f"{code} INT16", code, [Q(given, (source / (1 << 15), 0))], [output], version=version, steps=0)
    for approximate in (False, True):
        options = ("GeluOptions", {"approximate": approximate})
        output = ((256, 256), "INT16", (4 / (1 << 15), 0))
        yield case(f"GELU INT16 {approximate}", "GELU", [Q(every, (4 / (1 << 15), 0))], [output], options, version=2)
    slopes = Q(drawn((256,), "INT8", seed=3), (1 / 128, 0))
    yield case("PRELU INT16", "PRELU", [Q(every, (0.001, 0)), slopes], [((256, 256), "INT16", (0.001, 0))], constants=(1,))


def _unary() -> Iterator[Case]:
    for code in "ABS CEIL COS ELU EXP FLOOR HARD_SWISH LOGISTIC LOG_SOFTMAX NEG RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1 ROUND SIGN SIN SQUARE TANH ZEROS_LIKE".split():
        x = np.concatenate([drawn((2, 5), low=-8, high=8), np.array([[0.5, 1.5, -0.5], [2.5, -2.5, 0]], np.float32)], axis=1)
        yield case(code, code, [x], [((2, 8),)], version=1)
    for code in ("LOG", "SQRT", "RSQRT"):
        yield case(code, code, [drawn((2, 5), low=0.1, high=9)], [((2, 5),)])
    for code in ("ABS", "NEG", "SIGN", "SQUARE", "ZEROS_LIKE"):
        if code not in ("SQUARE",):
            yield case(f"{code} int32", code, [drawn((2, 5), "INT32", -9, 9)], [((2, 5), "INT32")])
    for kind, zero in (("INT8", 5), ("UINT8", 130), ("INT16", 0)):
        x = Q(drawn((2, 40), kind), (0.03 if kind != "INT16" else 0.0003, zero))
        for code in ("RELU", "RELU6", "HARD_SWISH", "RELU_N1_TO_1"):
            if kind == "INT16" and code in ("HARD_SWISH", "RELU_N1_TO_1"):
                continue
            yield case(
                f"{code} {kind}",
                code,
                [x],
                [((2, 40), kind, (0.02 if kind != "INT16" else 0.0003, zero))],
                version=1 if code in ("HARD_SWISH", "RELU_N1_TO_1") else 2,
            )
        lowest = {"INT8": -128, "UINT8": 0, "INT16": 0}[kind]
        step = 1 / 256 if kind != "INT16" else 1 / 32768
        if kind == "INT16":
            x = Q(x.array, (8 / 32768, 0))
        yield case(f"LOGISTIC {kind}", "LOGISTIC", [x], [((2, 40), kind, (step, lowest))], steps=1 if kind != "INT16" else 4)
        yield case(
            f"TANH {kind}",
            "TANH",
            [x],
            [((2, 40), kind, (2 * step if kind != "INT16" else step, {"INT8": 0, "UINT8": 128, "INT16": 0}[kind]))],
            steps=1 if kind != "INT16" else 4,
        )
        yield case(
            f"SOFTMAX {kind}",
            "SOFTMAX",
            [x],
            [((2, 40), kind, (step, lowest))],
            ("SoftmaxOptions", {"beta": 1.0}),
            steps=1 if kind != "INT16" else 4,
        )
        if kind != "INT16":
            yield case(f"LOG_SOFTMAX {kind}", "LOG_SOFTMAX", [x], [((2, 40), kind, (16 / 256, {"INT8": 127, "UINT8": 255}[kind]))])
            yield case(
                f"LEAKY_RELU {kind}",
                "LEAKY_RELU",
                [x],
                [((2, 40), kind, (0.02, zero))],
                ("LeakyReluOptions", {"alpha": 0.3}),
                version=2,
            )
            alpha = Q(drawn((40,), kind, seed=3), (0.01, zero))
            yield case(f"PRELU {kind}", "PRELU", [x, alpha], [((2, 40), kind, (0.02, zero))], constants=(1,))
    yield case("ELU INT8", "ELU", [Q(drawn((2, 40), "INT8"), (0.03, 5))], [((2, 40), "INT8", (0.02, 5))])
    yield case(
        "GELU INT8", "GELU", [Q(drawn((2, 40), "INT8"), (0.03, 5))], [((2, 40), "INT8", (0.02, 5))], ("GeluOptions", {}), version=2
    )
    for code in ("EXP", "ABS", "RSQRT", "LOG"):
        zero = -128 if code in ("RSQRT", "LOG") else 3
        x = Q(drawn((2, 20), "INT8") if zero == 3 else np.maximum(drawn((2, 20), "INT8"), -100).astype(np.int8), (0.02, zero))
        yield case(f"{code} INT8", code, [x], [((2, 20), "INT8", (0.04, -20))], version=2)
    yield from _of_16_bits()
    yield case("softmax beta", "SOFTMAX", [drawn((2, 3, 4))], [((2, 3, 4),)], ("SoftmaxOptions", {"beta": 0.5}))
    half = drawn((2, 3, 4), "FLOAT16")
    options = ("SoftmaxOptions", {"beta": 0.5})
    yield case("softmax beta float16", "SOFTMAX", [half], [((2, 3, 4), "FLOAT16")], options, tolerance=1e-3)
    yield case("leaky relu", "LEAKY_RELU", [drawn((2, 6))], [((2, 6),)], ("LeakyReluOptions", {"alpha": 0.25}))
    yield case("prelu", "PRELU", [drawn((2, 3, 4, 5)), drawn((1, 1, 5))], [((2, 3, 4, 5),)], constants=(1,))
    for flag in (False, True):
        yield case(f"gelu {flag}", "GELU", [drawn((2, 9), low=-4, high=4)], [((2, 9),)], ("GeluOptions", {"approximate": flag}))
    x = Q(drawn((2, 40), "INT8"), (0.03, 5))
    yield case("NEG INT8", "NEG", [x], [((2, 40), "INT8", (0.02, 1))], steps=0)
    wide = np.append(drawn((40,), low=-1e5, high=1e5), [2**31, -(2**31), 2**63, 1e30, np.inf, -np.inf, np.nan]).astype(np.float32)
    for target in ("INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "INT64"):
        yield case(f"cast wide {target}", "CAST", [wide], [((47,), target)], ("CastOptions", {"out_data_type": target}), steps=0)
    yield case("logical not", "LOGICAL_NOT", [drawn((2, 3), "BOOL")], [((2, 3), "BOOL")])
    for kind, target in (
        ("FLOAT32", "INT32"),
        ("INT32", "FLOAT32"),
        ("FLOAT32", "BOOL"),
        ("BOOL", "INT32"),
        ("INT64", "INT32"),
        ("FLOAT32", "FLOAT16"),
        ("FLOAT32", "INT8"),
        ("INT32", "INT16"),
        ("FLOAT32", "COMPLEX64"),
    ):
        yield case(f"cast {kind} {target}", "CAST", [drawn((2, 5), kind, -9, 9)], [((2, 5), target)], ("CastOptions", {}))
    yield case("cast COMPLEX64 FLOAT32", "CAST", [drawn((2, 5), "COMPLEX64")], [((2, 5), "FLOAT32")], ("CastOptions", {}))
    for kind, scale in (("INT8", (0.02, 3)), ("UINT8", (0.02, 120)), ("INT16", (0.0002, 0))):
        yield case(f"quantize {kind}", "QUANTIZE", [drawn((3, 9))], [((3, 9), kind, scale)], version=2)
        yield case(f"dequantize {kind}", "DEQUANTIZE", [Q(drawn((3, 9), kind), scale)], [((3, 9), "FLOAT32")], version=2)
        yield case(
            f"requantize {kind}",
            "QUANTIZE",
            [Q(drawn((3, 9), kind), scale)],
            [((3, 9), kind, (scale[0] * 1.7, scale[1]))],
            version=2,
        )
    yield case("dequantize float16", "DEQUANTIZE", [drawn((3, 4), "FLOAT16")], [((3, 4),)], constants=(0,), version=3)
    yield case(
        "dequantize per channel", "DEQUANTIZE", [Q(drawn((3, 4), "INT8"), ([0.1, 0.2, 0.3], [0, 0, 0], 0))], [((3, 4),)], version=5
    )
    yield case(
        "fake quant", "FAKE_QUANT", [drawn((3, 9))], [((3, 9),)], ("FakeQuantOptions", {"min": -1.1, "max": 1.3, "num_bits": 8})
    )
    yield case(
        "fake quant narrow",
        "FAKE_QUANT",
        [drawn((3, 9))],
        [((3, 9),)],
        ("FakeQuantOptions", {"min": -1.1, "max": 1.3, "num_bits": 4, "narrow_range": True}),
        peer="",
        version=2,
    )
    yield case("bitcast", "BITCAST", [drawn((2, 4))], [((2, 4), "INT32")])
    yield case("bitcast narrow", "BITCAST", [drawn((2, 4), "INT32", 0, 2**30)], [((2, 4, 2), "INT16")])
    yield case("bitcast wide", "BITCAST", [drawn((2, 4, 2), "INT16")], [((2, 4), "INT32")])


def _binary() -> Iterator[Case]:
    x, y = drawn((2, 3, 4)), drawn((3, 1), seed=1)
    tables = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions", "DIV": "DivOptions"}
    for code, table in tables.items():
        yield case(code, code, [x, y], [((2, 3, 4),)], (table, {}))
        yield case(f"{code} relu", code, [x, y], [((2, 3, 4),)], (table, {"fused_activation_function": "RELU"}))
        ints = [drawn((2, 3), "INT32", -20, 20), np.array([3, -4, 7], INT)]
        yield case(f"{code} int32", code, ints, [((2, 3), "INT32")], (table, {}))
        options = (table, {"fused_activation_function": "RELU6"})
        yield case(f"{code} int32 relu6", code, ints, [((2, 3), "INT32")], options)
    for kind, zero in (("INT8", 5), ("UINT8", 130), ("INT16", 0)):
        small = 0.0002 if kind == "INT16" else 0.03
        a, b = Q(drawn((2, 3, 4), kind), (small, zero)), Q(drawn((2, 3, 4), kind, seed=1), (small / 2, zero))
        for code in ("ADD", "SUB", "MUL"):
            scale = 0.05 if kind != "INT16" else (0.0004 if code != "MUL" else 0.001)
            yield case(
                f"{code} {kind}",
                code,
                [a, b],
                [((2, 3, 4), kind, (scale, zero))],
                (tables[code], {"pot_scale_int16": False} if code != "MUL" else {}),
                version=3,
            )
        yield case(
            f"MUL relu {kind}",
            "MUL",
            [a, b],
            [((2, 3, 4), kind, (scale, zero))],
            ("MulOptions", {"fused_activation_function": "RELU6"}),
            version=3,
        )
        if kind == "UINT8":
            divisor = Q(np.maximum(drawn((2, 3, 4), kind), 160).astype(np.uint8), (0.02, zero))
            yield case("DIV UINT8", "DIV", [a, divisor], [((2, 3, 4), kind, (0.05, zero))], ("DivOptions", {}), version=2)
        if kind != "INT16":
            yield (
                case(f"SQUARED_DIFFERENCE {kind}", "SQUARED_DIFFERENCE", [a, b], [((2, 3, 4), kind, (0.1, zero))], version=2)
                if kind == "INT8"
                else case(f"MAXIMUM {kind}", "MAXIMUM", [a, Q(b.array, a.scale)], [((2, 3, 4), kind, a.scale)], version=2)
            )
        for code in ("LESS", "GREATER_EQUAL", "EQUAL", "NOT_EQUAL"):
            if kind != "INT16":
                yield case(f"{code} {kind}", code, [a, Q(b.array, a.scale)], [((2, 3, 4), "BOOL")], version=2)
    for code in ("MAXIMUM", "MINIMUM", "POW", "SQUARED_DIFFERENCE", "FLOOR_DIV", "FLOOR_MOD", "ATAN2"):
        left = np.abs(x) if code == "POW" else x
        yield case(code, code, [left, np.broadcast_to(y, (2, 3, 4)).copy()], [((2, 3, 4),)])
    for code in ("MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "FLOOR_DIV", "FLOOR_MOD"):
        yield case(
            f"{code} int32", code, [drawn((2, 3), "INT32", -20, 20), np.array([[3, -4, 7], [-3, 4, -7]], INT)], [((2, 3), "INT32")]
        )
    yield case("POW int32", "POW", [drawn((2, 3), "INT32", -5, 5), np.array([[3, 0, 2], [1, 4, 2]], INT)], [((2, 3), "INT32")])
    for code in ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"):
        yield case(code, code, [np.round(x), np.round(y)], [((2, 3, 4), "BOOL")])
        yield case(f"{code} int64", code, [drawn((2, 3), "INT64"), drawn((2, 3), "INT64", seed=1)], [((2, 3), "BOOL")])
    yield case("EQUAL bool", "EQUAL", [drawn((2, 3), "BOOL"), drawn((2, 3), "BOOL", seed=1)], [((2, 3), "BOOL")])
    words = np.array([["a", "bc", ""], ["d", "é", "a"]], object)
    yield case(
        "EQUAL string", "EQUAL", [words, np.array([["a", "bd", ""], ["d", "e", "b"]], object)], [((2, 3), "BOOL")], constants=(1,)
    )
    for code in ("LOGICAL_AND", "LOGICAL_OR"):
        yield case(code, code, [drawn((2, 3), "BOOL"), drawn((3,), "BOOL", seed=1)], [((2, 3), "BOOL")])
    for kind in ("INT32", "INT8", "INT16"):
        yield case(
            f"BITWISE_XOR {kind}", "BITWISE_XOR", [drawn((2, 3), kind, -99, 99), drawn((3,), kind, -99, 99)], [((2, 3), kind)]
        )
        yield case(
            f"RIGHT_SHIFT {kind}",
            "RIGHT_SHIFT",
            [drawn((2, 3), kind, -99, 99), (np.abs(drawn((3,), "INT32", 0, 5)) % 8).astype(drawn((1,), kind).dtype)],
            [((2, 3), kind)],
        )
    yield case("ADD_N", "ADD_N", [x, x + 1, x * 2], [((2, 3, 4),)])
    yield case("SELECT", "SELECT", [drawn((2, 3), "BOOL"), drawn((2, 3)), drawn((2, 3), seed=1)], [((2, 3),)])
    yield case("SELECT rows", "SELECT", [drawn((2,), "BOOL"), drawn((2, 3)), drawn((2, 3), seed=1)], [((2, 3),)])
    yield case("SELECT_V2", "SELECT_V2", [drawn((2, 1), "BOOL"), drawn((2, 3)), drawn((3,), seed=1)], [((2, 3),)])
    yield case(
        "MUL complex", "MUL", [drawn((2, 3), "COMPLEX64"), drawn((3,), "COMPLEX64")], [((2, 3), "COMPLEX64")], ("MulOptions", {})
    )


def _reductions() -> Iterator[Case]:
    x = drawn((2, 3, 4, 5))
    for code in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"):
        for axes, keeps, shape in (([1, 2], True, (2, 1, 1, 5)), ([-1], False, (2, 3, 4)), ([0, 1, 2, 3], False, ())):
            yield case(
                f"{code} {axes} {keeps}",
                code,
                [x, np.array(axes, INT)],
                [(shape,)],
                ("ReducerOptions", {"keep_dims": keeps}),
                constants=(1,),
            )
        yield case(
            f"{code} int32",
            code,
            [drawn((3, 4), "INT32", -5, 5), np.array([1], INT)],
            [((3,), "INT32")],
            ("ReducerOptions", {}),
            constants=(1,),
        )
    for kind, zero in (("INT8", 5), ("UINT8", 130), ("INT16", 0)):
        q = Q(drawn((2, 3, 4, 5), kind), (0.03, zero))
        for code in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"):
            scale = q.scale if code.startswith("REDUCE") else (0.04 if code == "MEAN" else 0.1, zero)
            yield case(
                f"{code} {kind}",
                code,
                [q, np.array([1, 2], INT)],
                [((2, 5), kind, scale)],
                ("ReducerOptions", {}),
                constants=(1,),
                peer="optimized" if code == "SUM" else "reference",
                version=2,
            )
    for code in ("REDUCE_ALL", "REDUCE_ANY"):
        yield case(
            code, code, [drawn((3, 4), "BOOL"), np.array([1], INT)], [((3,), "BOOL")], ("ReducerOptions", {}), constants=(1,)
        )
    for code, table in (("ARG_MAX", "ArgMaxOptions"), ("ARG_MIN", "ArgMinOptions")):
        for kind in ("FLOAT32", "INT32", "INT8", "UINT8"):
            for target in ("INT32", "INT64"):
                yield case(
                    f"{code} {kind} {target}",
                    code,
                    [drawn((2, 3, 4), kind, -9, 9), np.array([-1], INT)],
                    [((2, 3), target)],
                    (table, {"output_type": target}),
                    constants=(1,),
                    version=2,
                )
    for exclusive in (False, True):
        for reverse in (False, True):
            yield case(
                f"CUMSUM {exclusive} {reverse}",
                "CUMSUM",
                [drawn((2, 3, 4)), np.array(1, INT)],
                [((2, 3, 4),)],
                ("CumsumOptions", {"exclusive": exclusive, "reverse": reverse}),
                constants=(1,),
            )
    yield case(
        "CUMSUM int32",
        "CUMSUM",
        [drawn((2, 3), "INT32"), np.array(1, INT)],
        [((2, 3), "INT32")],
        ("CumsumOptions", {}),
        constants=(1,),
    )


def _shapes() -> Iterator[Case]:
    x, q = drawn((2, 3, 4)), Q(drawn((2, 3, 4), "INT8"), (0.1, 3))
    yield case(
        "RESHAPE", "RESHAPE", [x, np.array([4, -1], INT)], [((4, 6),)], ("ReshapeOptions", {"new_shape": [4, -1]}), constants=(1,)
    )
    yield case("RESHAPE options", "RESHAPE", [x], [((6, 4),)], ("ReshapeOptions", {"new_shape": [6, 4]}))
    yield case("RESHAPE computed", "RESHAPE", [x, np.array([4, -1], INT)], [((4, 6),)], ("ReshapeOptions", {}))
    yield case(
        "RESHAPE int8",
        "RESHAPE",
        [q, np.array([24], INT)],
        [((24,), "INT8", (0.1, 3))],
        ("ReshapeOptions", {"new_shape": [24]}),
        constants=(1,),
    )
    yield case("SQUEEZE", "SQUEEZE", [drawn((1, 3, 1, 2))], [((3, 1, 2),)], ("SqueezeOptions", {"squeeze_dims": [0]}))
    yield case("SQUEEZE all", "SQUEEZE", [drawn((1, 3, 1, 2))], [((3, 2),)], ("SqueezeOptions", {}))
    yield case("EXPAND_DIMS", "EXPAND_DIMS", [x, np.array(-1, INT)], [((2, 3, 4, 1),)], constants=(1,))
    yield case("TRANSPOSE", "TRANSPOSE", [x, np.array([2, 0, 1], INT)], [((4, 2, 3),)], constants=(1,))
    yield case("SHAPE", "SHAPE", [x], [((3,), "INT32")], ("ShapeOptions", {"out_type": "INT32"}))
    yield case("RANK", "RANK", [x], [((), "INT32")])
    yield case("BROADCAST_TO", "BROADCAST_TO", [drawn((3, 1)), np.array([2, 3, 4], INT)], [((2, 3, 4),)], constants=(1,), version=2)
    yield case("BROADCAST_ARGS", "BROADCAST_ARGS", [np.array([2, 1, 4], INT), np.array([3, 1], INT)], [((3,), "INT32")])
    yield case("TILE", "TILE", [x, np.array([1, 2, 3], INT)], [((2, 6, 12),)], constants=(1,))
    yield case("PACK", "PACK", [x, x + 1], [((2, 2, 3, 4),)], ("PackOptions", {"values_count": 2, "axis": 1}))
    yield case("UNPACK", "UNPACK", [x], [((2, 4),)] * 3, ("UnpackOptions", {"num": 3, "axis": 1}))
    yield case(
        "SPACE_TO_DEPTH", "SPACE_TO_DEPTH", [drawn((1, 4, 6, 3))], [((1, 2, 3, 12),)], ("SpaceToDepthOptions", {"block_size": 2})
    )
    yield case(
        "DEPTH_TO_SPACE", "DEPTH_TO_SPACE", [drawn((1, 2, 3, 12))], [((1, 4, 6, 3),)], ("DepthToSpaceOptions", {"block_size": 2})
    )
    yield case("FILL", "FILL", [np.array([2, 3], INT), np.array(1.5, np.float32)], [((2, 3),)], constants=(0,))
    yield case("RANGE", "RANGE", [np.array(1, INT), np.array(9, INT), np.array(3, INT)], [((3,), "INT32")], constants=(0, 1, 2))
    yield case("RANGE float", "RANGE", [np.array(1, np.float32), np.array(2, np.float32), np.array(0.3, np.float32)], [((4,),)])


def _parts() -> Iterator[Case]:
    x = drawn((4, 5, 6))
    yield case("SLICE", "SLICE", [x, np.array([1, 0, 2], INT), np.array([2, -1, 3], INT)], [((2, 5, 3),)], constants=(1, 2))
    yield case("SLICE computed", "SLICE", [x, np.array([1, 0, 2], INT), np.array([2, -1, 3], INT)], [((2, 5, 3),)])
    for name, begin, end, step, masks, shape in (
        ("plain", [1, 0, 5], [3, 5, 0], [1, 2, -2], {}, (2, 3, 3)),
        ("open", [1, 3, 2], [3, 1, 4], [1, 1, 1], {"begin_mask": 2, "end_mask": 2}, (2, 5, 2)),
        ("backward", [0, 0, 0], [0, 0, 0], [-1, 1, -1], {"begin_mask": 7, "end_mask": 7}, (4, 5, 6)),
        ("shrink", [1, -1, 0], [2, 0, 3], [1, 1, 1], {"shrink_axis_mask": 3}, (3,)),
        ("new", [0, 0, 1], [0, 0, 3], [1, 1, 1], {"new_axis_mask": 1, "end_mask": 2}, (1, 4, 2, 6)),
        ("ellipsis", [0, 1], [0, 3], [1, 1], {"ellipsis_mask": 1}, (4, 5, 2)),
        ("ellipsis new", [0, 0, 1], [0, 0, 3], [1, 1, 1], {"ellipsis_mask": 1, "new_axis_mask": 2}, (4, 5, 1, 2)),
    ):
        inputs = [x, np.array(begin, INT), np.array(end, INT), np.array(step, INT)]
        yield case(
            f"STRIDED_SLICE {name}", "STRIDED_SLICE", inputs, [(shape,)], ("StridedSliceOptions", masks), constants=(1, 2, 3)
        )
    yield case(
        "STRIDED_SLICE computed",
        "STRIDED_SLICE",
        [x, np.array([1, -2, 0], INT), np.array([3, 0, 4], INT), np.array([1, 1, 1], INT)],
        [((2, 4),)],
        ("StridedSliceOptions", {"shrink_axis_mask": 2}),
        constants=(3,),
    )
    yield case(
        "STRIDED_SLICE offset",
        "STRIDED_SLICE",
        [x, np.array([1, 2, 0], INT), np.array([2, 2, 4], INT), np.array([1, 1, 1], INT)],
        [((2, 2, 4),)],
        ("StridedSliceOptions", {"offset": True}),
        constants=(1, 2, 3),
        version=8,
    )
    yield case("CONCATENATION", "CONCATENATION", [x, x + 1], [((4, 10, 6),)], ("ConcatenationOptions", {"axis": -2}))
    a, b = Q(drawn((2, 3), "INT8"), (0.1, 3)), Q(drawn((2, 3), "INT8", seed=1), (0.1, 3))
    yield case(
        "CONCATENATION int8",
        "CONCATENATION",
        [a, b],
        [((2, 6), "INT8", (0.1, 3))],
        ("ConcatenationOptions", {"axis": 1}),
        version=2,
    )
    a, b = Q(drawn((2, 3), "UINT8"), (0.1, 3)), Q(drawn((2, 3), "UINT8", seed=1), (0.2, 30))
    yield case(
        "CONCATENATION uint8 scales", "CONCATENATION", [a, b], [((2, 6), "UINT8", (0.2, 10))], ("ConcatenationOptions", {"axis": 1})
    )
    yield case("SPLIT", "SPLIT", [np.array(2, INT), x], [((4, 5, 2),)] * 3, ("SplitOptions", {"num_splits": 3}), constants=(0,))
    yield case(
        "SPLIT_V",
        "SPLIT_V",
        [x, np.array([1, -1, 2], INT), np.array(2, INT)],
        [((4, 5, 1),), ((4, 5, 3),), ((4, 5, 2),)],
        ("SplitVOptions", {"num_splits": 3}),
        constants=(1, 2),
    )
    pads = np.array([[1, 0], [0, 2], [1, 1]], INT)
    yield case("PAD", "PAD", [x, pads], [((5, 7, 8),)], constants=(1,))
    yield case("PAD computed", "PAD", [x, pads], [((5, 7, 8),)])
    yield case(
        "PAD int8",
        "PAD",
        [Q(drawn((2, 3), "INT8"), (0.1, 3)), np.array([[1, 0], [0, 2]], INT)],
        [((3, 5), "INT8", (0.1, 3))],
        constants=(1,),
        version=2,
    )
    yield case("PADV2", "PADV2", [x, pads, np.array([1.5], np.float32)], [((5, 7, 8),)], constants=(1, 2))
    yield case(
        "PADV2 uint8",
        "PADV2",
        [Q(drawn((2, 3), "UINT8"), (0.1, 3)), np.array([[1, 0], [0, 2]], INT), Q(np.array([9], np.uint8), (0.1, 3))],
        [((3, 5), "UINT8", (0.1, 3))],
        constants=(1, 2),
        version=2,
    )
    for mode in ("REFLECT", "SYMMETRIC"):
        yield case(
            f"MIRROR_PAD {mode}",
            "MIRROR_PAD",
            [drawn((3, 4)), np.array([[1, 2], [2, 1]], INT)],
            [((6, 7),)],
            ("MirrorPadOptions", {"mode": mode}),
            constants=(1,),
        )
    yield case("REVERSE_V2", "REVERSE_V2", [x, np.array([1], INT)], [((4, 5, 6),)], constants=(1,))
