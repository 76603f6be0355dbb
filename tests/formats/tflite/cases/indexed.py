"""Elements by index, sizes of images, norms."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from formats.tflite.cases.case import Case, Q, case, drawn

INT = np.int32


def cases() -> Iterator[Case]:
    """Return the cases."""
    yield from _gathered()
    yield from _scattered()
    yield from _images()
    yield from _detections()


def _gathered() -> Iterator[Case]:
    x = drawn((4, 5, 6))
    for axis in (0, 1, -1):
        shape = np.take(x, np.zeros((2, 3), int), axis).shape
        yield case(f"GATHER {axis}", "GATHER", [x, drawn((2, 3), "INT32", 0, 3)], [(shape,)], ("GatherOptions", {"axis": axis}))
    yield case(
        "GATHER int8",
        "GATHER",
        [Q(drawn((4, 5), "INT8"), (0.1, 3)), np.array([1, 3], INT)],
        [((2, 5), "INT8", (0.1, 3))],
        ("GatherOptions", {}),
        version=2,
    )
    yield case(
        "GATHER batch",
        "GATHER",
        [x, drawn((4, 3), "INT32", 0, 4)],
        [((4, 3, 6),)],
        ("GatherOptions", {"axis": 1, "batch_dims": 1}),
        version=5,
    )
    yield case(
        "GATHER batch later axis",
        "GATHER",
        [x, drawn((4, 3), "INT32", 0, 5)],
        [((4, 5, 3),)],
        ("GatherOptions", {"axis": 2, "batch_dims": 1}),
        version=5,
    )
    short = np.array([3, 0], np.int16)
    yield case("GATHER int16", "GATHER", [x, short], [((4, 2, 6),)], ("GatherOptions", {"axis": 1}), version=4)
    yield case("GATHER_ND", "GATHER_ND", [x, drawn((2, 3, 2), "INT32", 0, 3)], [((2, 3, 6),)])
    yield case("EMBEDDING_LOOKUP", "EMBEDDING_LOOKUP", [np.array([2, 0, 1], INT), drawn((4, 5))], [((3, 5),)], constants=(1,))
    yield case(
        "EMBEDDING_LOOKUP int8",
        "EMBEDDING_LOOKUP",
        [np.array([2, 0, 1], INT), Q(drawn((4, 5), "INT8"), (0.1, 0))],
        [((3, 5),)],
        constants=(1,),
        version=3,
    )
    for kind in ("INT4", "INT2"):
        table = Q(drawn((4, 8), kind), (0.1, 0), kind)
        inputs = [np.array([2, 0, 1], INT), table]
        yield case(f"EMBEDDING_LOOKUP {kind}", "EMBEDDING_LOOKUP", inputs, [((3, 8),)], constants=(1,), version=4)
    yield case(
        "HASHTABLE_LOOKUP",
        "HASHTABLE_LOOKUP",
        [np.array([7, 2, 9], INT), np.array([2, 5, 7], INT), drawn((3, 4))],
        [((3, 4),), ((3,), "UINT8")],
        constants=(1, 2),
    )
    sparse = [
        np.array([1, 3, 0], INT),
        np.array([[0, 0], [2, 0], [2, 1]], INT),
        np.array([3, 2], INT),
        np.array([1, 2, 4], np.float32),
        drawn((4, 3, 2)),
    ]
    for combiner in ("SUM", "MEAN", "SQRTN"):
        yield case(
            f"EMBEDDING_LOOKUP_SPARSE {combiner}",
            "EMBEDDING_LOOKUP_SPARSE",
            sparse,
            [((3, 3, 2),)],
            ("EmbeddingLookupSparseOptions", {"combiner": combiner}),
            constants=(4,),
            is_open=True,
        )
    for kind in ("FLOAT32", "INT32"):
        values = drawn((2, 9), kind, -99, 99)
        yield case(f"TOPK_V2 {kind}", "TOPK_V2", [values, np.array(3, INT)], [((2, 3), kind), ((2, 3), "INT32")], constants=(1,))
    yield case(
        "UNIQUE",
        "UNIQUE",
        [np.array([3, 1, 3, 2, 1], INT)],
        [((3,), "INT32"), ((5,), "INT32")],
        ("UniqueOptions", {}),
        is_open=True,
    )
    yield case("WHERE", "WHERE", [drawn((3, 4), "BOOL")], [((7, 2), "INT64")], is_open=True)
    yield case(
        "ONE_HOT",
        "ONE_HOT",
        [np.array([2, -1, 0, 5], INT), np.array(4, INT), np.array(2.5, np.float32), np.array(-1, np.float32)],
        [((4, 4),)],
        ("OneHotOptions", {"axis": -1}),
        constants=(1, 2, 3),
    )
    yield case(
        "ONE_HOT axis",
        "ONE_HOT",
        [np.array([[2, 1], [0, 5]], INT), np.array(4, INT), np.array(1, INT), np.array(0, INT)],
        [((2, 4, 2), "INT32")],
        ("OneHotOptions", {"axis": 1}),
        constants=(1, 2, 3),
    )
    yield case(
        "REVERSE_SEQUENCE",
        "REVERSE_SEQUENCE",
        [x, np.array([2, 3, 1, 5], INT)],
        [((4, 5, 6),)],
        ("ReverseSequenceOptions", {"seq_dim": 1, "batch_dim": 0}),
    )
    yield case(
        "REVERSE_SEQUENCE last",
        "REVERSE_SEQUENCE",
        [x, np.array([2, 3, 1, 5, 6], INT)],
        [((4, 5, 6),)],
        ("ReverseSequenceOptions", {"seq_dim": 2, "batch_dim": 1}),
    )
    yield case(
        "BUCKETIZE",
        "BUCKETIZE",
        [np.array([[-5, 0, 1], [2, 9.5, 10]], np.float32)],
        [((2, 3), "INT32")],
        ("BucketizeOptions", {"boundaries": [0.0, 2.0, 9.5]}),
    )
    yield case(
        "BUCKETIZE int32",
        "BUCKETIZE",
        [np.array([-5, 0, 1, 2], INT)],
        [((4,), "INT32")],
        ("BucketizeOptions", {"boundaries": [0.0, 1.5]}),
    )


def _scattered() -> Iterator[Case]:
    yield case(
        "SCATTER_ND",
        "SCATTER_ND",
        [np.array([[1], [3], [1]], INT), drawn((3, 4)), np.array([5, 4], INT)],
        [((5, 4),)],
        constants=(2,),
    )
    yield case(
        "SCATTER_ND computed",
        "SCATTER_ND",
        [np.array([[1, 0], [3, 2]], INT), drawn((2,), "INT32"), np.array([5, 4], INT)],
        [((5, 4), "INT32")],
    )
    yield case(
        "SPARSE_TO_DENSE",
        "SPARSE_TO_DENSE",
        [np.array([[0, 1], [2, 3]], INT), np.array([3, 4], INT), np.array([5, 7], np.float32), np.array(-1, np.float32)],
        [((3, 4),)],
        ("SparseToDenseOptions", {}),
        constants=(1, 3),
    )
    yield case(
        "SPARSE_TO_DENSE row",
        "SPARSE_TO_DENSE",
        [np.array([1, 4], INT), np.array([6], INT), np.array(5, np.float32), np.array(0, np.float32)],
        [((6,),)],
        ("SparseToDenseOptions", {}),
        constants=(1, 3),
    )
    yield case("SEGMENT_SUM", "SEGMENT_SUM", [drawn((5, 3)), np.array([0, 0, 1, 2, 3], INT)], [((4, 3),)], is_open=True)
    for name in ("MAX", "MIN", "PROD", "SUM"):
        for kind in ("FLOAT32", "INT32"):
            yield case(
                f"UNSORTED_SEGMENT_{name} {kind}",
                f"UNSORTED_SEGMENT_{name}",
                [drawn((5, 3), kind, -5, 5), np.array([2, 0, 2, 3, 0], INT), np.array(4, INT)],
                [((4, 3), kind)],
                constants=(2,),
            )
    yield case(
        "DYNAMIC_UPDATE_SLICE",
        "DYNAMIC_UPDATE_SLICE",
        [drawn((4, 5, 6)), drawn((2, 3, 6)), np.array([1, 9, 0], INT)],
        [((4, 5, 6),)],
    )
    yield case(
        "DYNAMIC_UPDATE_SLICE all", "DYNAMIC_UPDATE_SLICE", [drawn((4, 5)), drawn((2, 3)), np.array([-2, 1], INT)], [((4, 5),)]
    )
    yield case("MATRIX_DIAG", "MATRIX_DIAG", [drawn((2, 3))], [((2, 3, 3),)])
    for shape in ((2, 3, 4), (2, 4, 3), (2, 3, 3)):
        yield case(f"MATRIX_SET_DIAG {shape}", "MATRIX_SET_DIAG", [drawn(shape), drawn((2, 3))], [(shape,)])


def _images() -> Iterator[Case]:
    x = drawn((2, 3, 4, 2))
    for code, table in (("RESIZE_BILINEAR", "ResizeBilinearOptions"), ("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions")):
        for corners, centers in ((False, False), (True, False), (False, True)):
            for size in ((6, 8), (5, 3), (2, 7)):
                options = (table, {"align_corners": corners, "half_pixel_centers": centers})
                yield case(
                    f"{code} {corners} {centers} {size}",
                    code,
                    [x, np.array(size, INT)],
                    [((2, *size, 2),)],
                    options,
                    constants=(1,),
                    version=3,
                )
        for kind in ("INT8", "UINT8"):
            q = Q(drawn((2, 3, 4, 2), kind), (0.1, 3))
            yield case(
                f"{code} {kind}",
                code,
                [q, np.array((5, 7), INT)],
                [((2, 5, 7, 2), kind, (0.1, 3))],
                (table, {"half_pixel_centers": True}),
                constants=(1,),
                version=3,
            )
        for kind, scale in (("INT8", (0.1, 3)), ("INT16", (0.001, 0))):  # places that LiteRT's 10 bits do not hold
            for corners, centers in ((False, False), (True, False), (False, True)):
                q, options = Q(drawn((1, 9, 7, 2), kind), scale), {"align_corners": corners, "half_pixel_centers": centers}
                name = f"{code} {kind} {corners} {centers} larger"
                sizes = np.array((50, 33), INT)
                yield case(
                    name, code, [q, sizes], [((1, 50, 33, 2), kind, scale)], (table, options), constants=(1,), steps=0, version=3
                )
        yield case(f"{code} computed", code, [x, np.array((5, 7), INT)], [((2, 5, 7, 2),)], (table, {}))
    pads = np.array([[1, 0], [2, 0]], INT)
    yield case("SPACE_TO_BATCH_ND", "SPACE_TO_BATCH_ND", [x, np.array([2, 3], INT), pads], [((12, 2, 2, 2),)], constants=(1, 2))
    yield case(
        "SPACE_TO_BATCH_ND int8",
        "SPACE_TO_BATCH_ND",
        [Q(drawn((2, 3, 4, 2), "INT8"), (0.1, 3)), np.array([2, 3], INT), pads],
        [((12, 2, 2, 2), "INT8", (0.1, 3))],
        constants=(1, 2),
        version=2,
    )
    yield case(
        "BATCH_TO_SPACE_ND",
        "BATCH_TO_SPACE_ND",
        [drawn((12, 2, 2, 2)), np.array([2, 3], INT), pads],
        [((2, 3, 4, 2),)],
        constants=(1, 2),
    )
    lrn = {"radius": 2, "bias": 1.5, "alpha": 0.3, "beta": 0.6}
    yield case(
        "LOCAL_RESPONSE_NORMALIZATION",
        "LOCAL_RESPONSE_NORMALIZATION",
        [drawn((1, 2, 3, 7))],
        [((1, 2, 3, 7),)],
        ("LocalResponseNormalizationOptions", lrn),
        peer="optimized",
    )
    yield case("L2_NORMALIZATION", "L2_NORMALIZATION", [drawn((2, 3, 7))], [((2, 3, 7),)], ("L2NormOptions", {}))
    for kind, zero in (("INT8", 0), ("UINT8", 128)):
        yield case(
            f"L2_NORMALIZATION {kind}",
            "L2_NORMALIZATION",
            [Q(drawn((2, 9), kind), (0.1, zero))],
            [((2, 9), kind, (1 / 128, zero))],
            ("L2NormOptions", {}),
            version=2,
        )
    yield case(
        "DILATE",
        "DILATE",
        [drawn((2, 3, 4)), np.array([1, 3, 2], INT), np.array(-1, np.float32)],
        [((2, 7, 7),)],
        ("DilateOptions", {}),
        constants=(1, 2),
    )
    yield case("RFFT2D", "RFFT2D", [drawn((2, 4, 4)), np.array([4, 4], INT)], [((2, 4, 3), "COMPLEX64")], constants=(1,))
    z = drawn((2, 3), "COMPLEX64")
    for code in ("REAL", "IMAG", "COMPLEX_ABS"):
        yield case(code, code, [z], [((2, 3),)])


def _detections() -> Iterator[Case]:
    boxes = np.concatenate([low := drawn((12, 2), low=0, high=3), low + drawn((12, 2), low=0.5, high=2, seed=1)], axis=1)
    scores = drawn((12,), low=0, high=1)
    limits = [np.array(value, np.float32) for value in (0.4, 0.1, 0.5)]
    inputs = [boxes, scores, np.array(8, INT), *limits]
    outputs = [((8,), "INT32"), ((8,), "FLOAT32"), ((), "INT32")]
    yield case("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V4", inputs[:5], [outputs[0], outputs[2]], constants=(2, 3, 4))
    yield case("NON_MAX_SUPPRESSION_V5", "NON_MAX_SUPPRESSION_V5", inputs, outputs, constants=(2, 3, 4, 5))
