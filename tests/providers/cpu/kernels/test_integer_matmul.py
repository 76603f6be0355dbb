"""Products of 8-bit integers on the CPU provider: bit for bit what the reference provider computes, and what is left to it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from onnx import ValueInfoProto, helper, numpy_helper
from support.cpu_run import LEVELS, cpu_model_session
from support.models import model

from sardonyx import InferenceSession, SessionOptions
from sardonyx.capi.onnxruntime_pybind11_state import GraphOptimizationLevel
from sardonyx.dtypes import Array
from sardonyx.errors import SardonyxError
from sardonyx.formats.onnx import load, to_bytes

_KINDS = [np.uint8, np.int8]
_F = np.float32


def _numbers(dtype: type, *shape: int, seed: int = 0) -> Array:
    """Numbers of the whole range, half of them its ends."""
    rng, limits = np.random.default_rng(seed + sum(shape)), np.iinfo(dtype)
    ends, numbers = rng.integers(0, 4, shape), rng.integers(limits.min, limits.max + 1, shape)
    return np.where(ends == 0, limits.min, np.where(ends == 1, limits.max, numbers)).astype(dtype)


def _scales(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(0.001, 0.01, shape).astype(_F)


class _Case:
    """A node of one operator: its inputs, and which of them are constants."""

    def __init__(
        self,
        op_type: str,
        inputs: Sequence[Array | None],
        constants: Sequence[int] = (),
        tail: Sequence[object] = (),
        **attributes: object,
    ) -> None:
        domain = "" if op_type in ("MatMulInteger", "QLinearMatMul", "DynamicQuantizeLinear") else "com.microsoft"
        names = ["" if value is None else f"i{index}" for index, value in enumerate(inputs)]
        outputs = ["y", "scale", "zero"] if op_type == "DynamicQuantizeLinear" else ["y"]
        made = [f"p{output}" if tail else output for output in outputs]
        node = helper.make_node(op_type, names, made, domain=domain, **attributes)
        graph = helper.make_graph(
            [node, *tail],
            "g",
            [
                helper.make_tensor_value_info(names[index], helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
                for index, value in enumerate(inputs)
                if value is not None and index not in constants
            ],
            [ValueInfoProto(name=output) for output in outputs],
            [numpy_helper.from_array(inputs[index], names[index]) for index in constants],
        )
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        self.model = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
        self.feed = {names[index]: value for index, value in enumerate(inputs) if value is not None and index not in constants}


def _session(model: bytes, provider: str, threads: int = 1) -> InferenceSession:
    options = SessionOptions()
    options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = threads
    return InferenceSession(model, options, providers=[provider])


def _native(case: _Case, threads: int = 1) -> list[Array]:
    session = _session(case.model, "CPUExecutionProvider", threads)
    assert all(placement.provider == "CPUExecutionProvider" for placement in session.explain()), session.explain()
    return session.run(None, case.feed)


def _check(case: _Case) -> None:
    expected = _session(case.model, "ReferenceExecutionProvider").run(None, case.feed)
    for threads in (1, 2):
        for found, wanted in zip(_native(case, threads), expected, strict=True):
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found, wanted)


_SHAPES = [
    ((7, 12), (12, 70)),
    ((1, 9), (9, 3)),
    ((2, 3, 5), (5, 17)),
    ((2, 3, 8), (2, 8, 65)),
    ((1, 6, 7), (3, 7, 5)),
    ((6, 7), (3, 7, 5)),
    ((2, 6, 8), (1, 8, 5)),
    ((8,), (8, 5)),
    ((4, 8), (8,)),
    ((2, 4, 8), (8,)),
    ((0, 4), (4, 3)),
    ((3, 0), (0, 5)),
]


@pytest.mark.parametrize(("a_shape", "b_shape"), _SHAPES, ids=str)
@pytest.mark.parametrize("constant", [True, False], ids=["constant", "computed"])
def test_MatMulInteger_is_exact(a_shape: tuple[int, ...], b_shape: tuple[int, ...], constant: bool) -> None:
    """Of any signs, with zero points or without, for matrices, batches and vectors."""
    for a_kind, b_kind in itertools.product(_KINDS, repeat=2):
        a, b = _numbers(a_kind, *a_shape), _numbers(b_kind, *b_shape, seed=1)
        for zeros in ([], [_numbers(a_kind, 1)], [_numbers(a_kind, 1), _numbers(b_kind, 1, seed=3)]):
            inputs = [a, b, *zeros]
            _check(_Case("MatMulInteger", inputs, range(1, len(inputs)) if constant else ()))


@pytest.mark.parametrize("constant", [True, False], ids=["constant", "computed"])
def test_zero_points_may_go_by_row_and_column(constant: bool) -> None:
    """Also where there are as many rows as columns."""
    for (M, N), a_kind, b_kind in itertools.product([(7, 70), (6, 6)], _KINDS, _KINDS):
        a, b = _numbers(a_kind, M, 9), _numbers(b_kind, 9, N, seed=1)
        for za, zb in itertools.product([(M,), (M, 1), ()], [(N,), (1, N), (1,)]):
            inputs = [a, b, _numbers(a_kind, *za), _numbers(b_kind, *zb, seed=2)]
            _check(_Case("MatMulInteger", inputs, (1, 2, 3) if constant else ()))


@pytest.mark.parametrize(("a_shape", "zeros"), [((4, 9), (4,)), ((4, 9), (4, 1)), ((1, 4, 9), (1, 4, 1))], ids=str)
@pytest.mark.parametrize("constant", [True, False], ids=["constant", "computed"])
def test_rows_of_one_matrix_for_several_have_no_zero_points_in_the_store(
    a_shape: tuple[int, ...], zeros: tuple[int, ...], constant: bool
) -> None:
    """There are fewer of them than the product has rows, so that others are left to read them."""
    inputs = [_numbers(np.int8, *a_shape), _numbers(np.int8, 3, 9, 5, seed=1), _numbers(np.int8, *zeros, seed=2)]
    case = _Case("MatMulInteger", inputs, (1, 2) if constant else ())
    session = _session(case.model, "CPUExecutionProvider")
    expected = np.matmul(inputs[0].astype(np.int32) - inputs[2].reshape(4, 1), inputs[1].astype(np.int32))
    np.testing.assert_array_equal(session.run(None, case.feed)[0], expected)
    assert session.explain()[0].provider == "ReferenceExecutionProvider"


def _quantized(
    op_type: str, a: Array, b: Array, scales: Sequence[tuple[int, ...]], y_kind: type, **options: object
) -> list[Array | None]:
    rng = np.random.default_rng(5)
    za, zb, zy = (_numbers(kind, 1, seed=7)[0].reshape(()) for kind in (a.dtype.type, b.dtype.type, y_kind))
    y_scale = np.asarray(rng.uniform(0.3, 2), _F)
    bias = options.get("bias")
    c = [] if op_type == "QLinearMatMul" else [None if bias is None else rng.integers(-5000, 5000, bias).astype(np.int32)]
    return [a, _scales(*scales[0]), za, b, _scales(*scales[1], seed=1), zb, *c, y_scale, zy]


@pytest.mark.parametrize("constants", [(1, 2, 3, 4, 5, 6, 7), (3,), ()], ids=["constant", "weights", "computed"])
@pytest.mark.parametrize("y_kind", _KINDS)
def test_QLinearMatMul_requantizes_in_the_store(y_kind: type, constants: tuple[int, ...]) -> None:
    """Scales for all, by row and by column: rounded to nearest, ties to even, saturated."""
    for a_kind, b_kind in itertools.product(_KINDS, repeat=2):
        a, b = _numbers(a_kind, 7, 13), _numbers(b_kind, 13, 70, seed=1)
        for scales in itertools.product([(), (7,), (7, 1)], [(), (70,), (1, 70)]):
            _check(_Case("QLinearMatMul", _quantized("QLinearMatMul", a, b, scales, y_kind), constants))


@pytest.mark.parametrize("constants", [(1, 2, 3, 4, 5, 7, 8), (3,), ()], ids=["constant", "weights", "computed"])
@pytest.mark.parametrize("bias", [None, (), (70,), (1, 70), (7, 1), (7, 70)], ids=str)
def test_QGemm_adds_C_to_the_sums(bias: tuple[int, ...] | None, constants: tuple[int, ...]) -> None:
    """Quantized results and floats, B transposed or not, alpha, and scales by column."""
    for kind, transposed, scales in itertools.product(_KINDS, (0, 1), [((), ()), ((), (70,))]):
        a, b = _numbers(kind, 7, 12), _numbers(np.int8, *((70, 12) if transposed else (12, 70)), seed=1)
        inputs = _quantized("QGemm", a, b, scales, kind, bias=bias)
        _check(_Case("QGemm", inputs, constants, transB=transposed, alpha=0.7))
        floats = inputs[:-2]
        _check(_Case("QGemm", floats, [index for index in constants if index < len(floats)], transB=transposed))


@pytest.mark.parametrize("shape", [(12, 7), (1, 9), (65, 33)], ids=str)
@pytest.mark.parametrize("constants", [(1, 2, 3, 4, 5, 7, 8), ()], ids=["constant", "computed"])
def test_QGemm_takes_A_transposed(shape: tuple[int, int], constants: tuple[int, ...]) -> None:
    """Of either sign, beside B transposed or not, with C for each element, quantized and as floats."""
    for kind, transposed in itertools.product(_KINDS, (0, 1)):
        K, M = shape
        a, b = _numbers(kind, K, M), _numbers(np.int8, *((70, K) if transposed else (K, 70)), seed=1)
        inputs = _quantized("QGemm", a, b, ((), (70,)), kind, bias=(M, 70))
        _check(_Case("QGemm", inputs, constants, transA=1, transB=transposed))
        floats = inputs[:-2]
        _check(_Case("QGemm", floats, [index for index in constants if index < len(floats)], transA=1, transB=transposed))


@pytest.mark.parametrize("constant", [True, False], ids=["constant", "computed"])
@pytest.mark.parametrize("with_bias", [False, True])
def test_MatMulIntegerToFloat_scales_the_sums(with_bias: bool, constant: bool) -> None:
    """By a_scale times b_scale, then the bias, each step in float32."""
    for a_kind, b_kind, by_column in itertools.product(_KINDS, _KINDS, (False, True)):
        a, b, columns = _numbers(a_kind, 2, 5, 12), _numbers(b_kind, 12, 70, seed=1), ((70,) if by_column else ())
        inputs = [a, b, _scales(), _scales(*columns, seed=2), _numbers(a_kind, 1), _numbers(b_kind, *(columns or (1,)), seed=3)]
        inputs += [_scales(70, seed=4)] if with_bias else []
        _check(_Case("MatMulIntegerToFloat", inputs, range(1, len(inputs)) if constant else ()))


@pytest.mark.parametrize("constant", [True, False], ids=["constant", "computed"])
@pytest.mark.parametrize("b_kind", _KINDS)
def test_DynamicQuantizeMatMul_quantizes_by_the_range(b_kind: type, constant: bool) -> None:
    """Of the whole left side, then as MatMulIntegerToFloat."""
    for K, zero in itertools.product((8, 13), (None, (), (70,))):
        a = np.random.default_rng(0).standard_normal((2, 5, K)).astype(_F)
        points = None if zero is None else _numbers(b_kind, *(zero or (1,)), seed=1)
        inputs = [a, _numbers(b_kind, K, 70), _scales(70), points, _scales(70, seed=1)]
        _check(_Case("DynamicQuantizeMatMul", inputs, [1, 2, *([] if zero is None else [3]), 4] if constant else ()))


def test_DynamicQuantizeLinear_runs_natively() -> None:
    """All three outputs are those of the reference."""
    for size in (0, 3, 70_000):
        _check(_Case("DynamicQuantizeLinear", [np.random.default_rng(0).standard_normal(size).astype(_F)]))


def test_results_are_those_of_onnxruntime() -> None:
    """Its own integer kernels give the same numbers: sums, requantized ones, floats. B has 7 bits: without VNNI they saturate."""
    a, b, scale = _numbers(np.uint8, 33, 70), _numbers(np.int8, 70, 65, seed=1) // 2, np.asarray(0.01, _F)
    za, zb = np.array(9, np.uint8), np.array(0, np.int8)
    cases = [
        _Case("MatMulInteger", [a, b, za, zb], (1, 2, 3)),
        _Case("QLinearMatMul", [a, scale, za, b, _scales(65), _numbers(np.int8, 65), scale * 9, za], range(1, 8)),
        _Case("QGemm", [a, scale, za, b, _scales(65), np.zeros(65, np.int8), None, scale * 9, za], (1, 2, 3, 4, 5, 7, 8)),
        _Case("MatMulIntegerToFloat", [a, b, scale, _scales(65), za], (1, 2, 3, 4)),
    ]
    for case in cases:
        onnxruntime = pytest.importorskip("onnxruntime")
        peer = onnxruntime.InferenceSession(case.model, providers=["CPUExecutionProvider"]).run(None, case.feed)[0]
        np.testing.assert_array_equal(_native(case)[0], peer)


@pytest.mark.parametrize("scale", [0.0, np.inf, np.nan, 1e-40, -0.5, 1e30])
def test_odd_scales_give_what_the_reference_gives(scale: float) -> None:
    """Zero, infinite, missing, denormal, negative and huge: of A, of B and of Y."""
    a, b, one = _numbers(np.uint8, 5, 12), _numbers(np.int8, 12, 20, seed=1), np.asarray(1.0, _F)
    for place, constant in itertools.product((0, 1, 2), (True, False)):
        scales = [one, one, one]
        scales[place] = np.asarray(scale, _F)
        zero = np.array(3, np.uint8)
        inputs = [a, scales[0], zero, b, scales[1], np.array(0, np.int8), scales[2], zero]
        with np.errstate(all="ignore"):
            _check(_Case("QLinearMatMul", inputs, range(1, 8) if constant else (3,)))


def test_what_follows_is_computed_in_the_store() -> None:
    """DequantizeLinear, Add of a row, a column and a whole tensor, and QuantizeLinear: one step."""
    a, b, scale = _numbers(np.uint8, 5, 12), _numbers(np.int8, 12, 70, seed=1), np.asarray(0.02, _F)
    zero = np.array(7, np.uint8)
    rng = np.random.default_rng(0)
    others = [
        numpy_helper.from_array(rng.standard_normal(shape).astype(_F), f"t{i}") for i, shape in enumerate([(70,), (5, 1), (5, 70)])
    ]
    nodes = [helper.make_node("DequantizeLinear", ["py", "i1", "i2"], ["d"])]
    nodes += [helper.make_node("Constant", [], [f"t{i}"], value=other) for i, other in enumerate(others)]
    nodes += [helper.make_node("Add", [["d", "s0", "s1"][i], f"t{i}"], [f"s{i}"]) for i in range(3)]
    nodes += [helper.make_node("QuantizeLinear", ["s2", "i1", "i2"], ["y"])]
    case = _Case("QLinearMatMul", [a, scale, zero, b, scale, np.array(1, np.int8), scale, zero], range(1, 8), nodes)
    _check(case)


_BAD: Mapping[str, tuple[str, list[Array | None]]] = {
    "b_scale of 3 elements": (
        "QLinearMatMul",
        [_numbers(np.uint8, 5, 4), _scales(), np.array(0, np.uint8), _numbers(np.int8, 4, 6), _scales(3), np.array(0, np.int8)]
        + [_scales(), np.array(0, np.uint8)],
    ),
    "y_scale of 2 elements": (
        "QLinearMatMul",
        [_numbers(np.uint8, 5, 4), _scales(), np.array(0, np.uint8), _numbers(np.int8, 4, 6), _scales(), np.array(0, np.int8)]
        + [_scales(2), np.array(0, np.uint8)],
    ),
    "zero points of 4 columns": ("MatMulInteger", [_numbers(np.uint8, 5, 4), _numbers(np.int8, 4, 6), None, _numbers(np.int8, 4)]),
    "C of 5 elements": (
        "QGemm",
        [_numbers(np.uint8, 5, 4), _scales(), np.array(0, np.uint8), _numbers(np.int8, 4, 6), _scales(), np.array(0, np.int8)]
        + [np.zeros(5, np.int32)],
    ),
    "bias of 5 elements": (
        "MatMulIntegerToFloat",
        [_numbers(np.uint8, 5, 4), _numbers(np.int8, 4, 6), _scales(), _scales(), None, None, _scales(5)],
    ),
    "inner dimensions": ("MatMulInteger", [_numbers(np.uint8, 5, 3), _numbers(np.int8, 4, 6)]),
}


@pytest.mark.parametrize("what", _BAD)
def test_shapes_that_do_not_fit_are_errors(what: str) -> None:
    """As the reference provider gives them, when the session is made or runs."""
    case = _Case(_BAD[what][0], _BAD[what][1])
    with pytest.raises(SardonyxError):
        _session(case.model, "CPUExecutionProvider").run(None, case.feed)


@pytest.mark.parametrize("isa", LEVELS)
def test_every_level_gives_the_same_bits(isa: str) -> None:
    """AVX-512, AVX2 and the portable one."""
    a, b = _numbers(np.int8, 9, 21), _numbers(np.uint8, 21, 40, seed=1)
    case = _Case("MatMulInteger", [a, b, np.array(-3, np.int8), _numbers(np.uint8, 40)], (1, 2, 3))
    expected = (a.astype(np.int64) + 3) @ (b.astype(np.int64) - _numbers(np.uint8, 40))
    session = cpu_model_session(load(case.model), isa=isa)
    np.testing.assert_array_equal(session.run(None, case.feed)[0], expected)


def test_rows_of_a_length_that_only_the_run_shows_are_checked_then() -> None:
    """Weights are constant, so that another length is an error when sizes are known."""
    body = "graph(a: uint8[m, k]) -> (y: int32[m, 3]) {\nb: int8[4, 3] = ... 1\ny = MatMulInteger(a, b)\n}"
    session = _session(to_bytes(model(body, opset=21)), "CPUExecutionProvider")
    assert all(placement.provider == "CPUExecutionProvider" for placement in session.explain())
    assert session.run(None, {"a": np.zeros((2, 4), np.uint8)})[0].shape == (2, 3)
    with pytest.raises(SardonyxError, match="A has rows of 5 elements, B columns of 4"):
        session.run(None, {"a": np.zeros((2, 5), np.uint8)})
