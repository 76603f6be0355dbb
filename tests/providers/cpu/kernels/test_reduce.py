"""Reductions, global pools, ArgMax and CumSum of models."""

import itertools

import numpy as np
import pytest
from support.cpu_run import LEVELS, assert_close, assert_same_bits, cpu_session, declined, reference, run_cpu, steps_of

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.provider import Layout

_OPERATORS = [
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
]


def _x(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).uniform(0.5, 1.5, shape).astype(np.float32)


def _text(op: str, dims: str, axes: tuple[int, ...], keepdims: int = 1, kind: str = "float") -> str:
    shape = dims.split(", ")
    places = {axis % len(shape) for axis in axes}
    out = ", ".join("1" if axis in places else dim for axis, dim in enumerate(shape) if keepdims or axis not in places)
    return f"""graph(x: {kind}[{dims}]) -> (y: {kind}[{out}]) {{
        axes: int64[{len(axes)}] = {list(axes)}
        y = {op}(x, axes) {{keepdims = {keepdims}}} }}"""


_AXES = [axes for count in (1, 2, 3, 4) for axes in itertools.combinations(range(4), count)]


@pytest.mark.parametrize("axes", _AXES)
def test_any_set_of_axes(axes: tuple[int, ...]) -> None:
    """In one step or several, of one session, on several shapes."""
    body = _text("ReduceMean", "a, b, c, d", axes, keepdims=len(axes) % 2)
    session = cpu_session(body)
    for shape in ((2, 3, 4, 5), (1, 1, 1, 1), (3, 17, 1, 33)):
        x = _x(*shape)
        assert_close(session.run(None, {"x": x})[0], reference(body, {"x": x}, double=True)[0], 4e-7)


@pytest.mark.parametrize("op", _OPERATORS)
@pytest.mark.parametrize("isa", LEVELS)
def test_every_operator(isa: str, op: str) -> None:
    """Of rows, of columns, and in several steps."""
    for axes, shape in (((-1,), (5, 37)), ((0,), (37, 5)), ((0, 2), (3, 5, 17))):
        body = _text(op, ", ".join(map(str, shape)), axes)
        x = _x(*shape)
        assert_close(run_cpu(body, {"x": x}, isa=isa)[0], reference(body, {"x": x}, double=True)[0], 3e-6)


@pytest.mark.parametrize("op", ["ReduceL1", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"])
@pytest.mark.parametrize("kind", ["int32", "int64", "uint32", "uint64"])
def test_integers(kind: str, op: str) -> None:
    """As masks and index arithmetic use them."""
    body = _text(op, "3, 5, 4", (0, 2), kind=kind)
    x = np.random.default_rng(0).integers(-9, 9, (3, 5, 4)).astype(kind)
    assert_same_bits(run_cpu(body, {"x": x})[0], reference(body, {"x": x})[0])


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
def test_rows_of_bytes_of_every_length(op: str, isa: str) -> None:
    """What the loads of a row reach of the next one counts for nothing, even where it is more extreme."""
    session = cpu_session(_text(op, "n, m", (1,), kind="uint8"), isa=isa)
    for length in (*range(1, 72), 127, 128, 129):
        for rows in (1, 2, 3, 33):
            x = np.full((rows, length), 100, np.uint8)
            x[::2] = 0 if op == "ReduceMax" else 255
            x[:, -1] += np.arange(rows, dtype=np.uint8)
            wanted = x.max(1, keepdims=True) if op == "ReduceMax" else x.min(1, keepdims=True)
            np.testing.assert_array_equal(session.run(None, {"x": x})[0], wanted)


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_bytes(kind: str, op: str, isa: str) -> None:
    """Rows shorter and longer than a vector of bytes, and columns."""
    for axes, shape in (((-1,), (5, 3)), ((-1,), (3, 200)), ((0,), (37, 70)), ((0, 2), (3, 5, 65))):
        body = _text(op, ", ".join(map(str, shape)), axes, kind=kind)
        x = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8).view(kind)
        assert_same_bits(run_cpu(body, {"x": x}, isa=isa)[0], reference(body, {"x": x})[0])


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
def test_bools(op: str, isa: str) -> None:
    """Whether any is true, and whether all are: of rows, of columns, in two steps, and with a node behind."""
    for axes, shape in (((-1,), (5, 3)), ((-1,), (3, 200)), ((0,), (3, 70)), ((0, 2), (2, 5, 3))):
        body = _text(op, ", ".join(map(str, shape)), axes, kind="bool").replace("y = ", "z = ").replace("} }", "} y = Not(z) }")
        x = np.random.default_rng(0).integers(0, 2, shape).astype(np.bool_)
        assert_same_bits(run_cpu(body, {"x": x}, isa=isa)[0], reference(body, {"x": x})[0])


@pytest.mark.parametrize("dtype", ["int32", "uint64"])
def test_the_mean_of_no_integers(dtype: str) -> None:
    """It is 0, as the sum is."""
    body = f"graph(x: {dtype}[A, B]) -> (y) {{ axes: int64[1] = 1 y = ReduceMean(x, axes) }}"
    assert run_cpu(body, {"x": np.zeros((3, 0), dtype)})[0].tolist() == [[0]] * 3


@pytest.mark.parametrize("op", _OPERATORS)
@pytest.mark.parametrize("isa", LEVELS)
def test_doubles(isa: str, op: str) -> None:
    """Of rows, of columns, and in several steps, with an element-wise node behind."""
    for axes, shape in (((-1,), (5, 37)), ((0,), (37, 5)), ((0, 2), (3, 5, 17)), ((-1,), (2, 3000))):
        body = _text(op, ", ".join(map(str, shape)), axes, kind="double").replace("y = ", "z = ").replace("} }", "} y = Neg(z) }")
        x = np.random.default_rng(1).uniform(0.9, 1.1, shape)
        assert_close(run_cpu(body, {"x": x}, isa=isa)[0], reference(body, {"x": x})[0], 2e-14)


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("kind", ["double", "uint32", "uint64"])
def test_extremes_and_running_sums_of_other_types(kind: str, isa: str) -> None:
    """Numbers of 64 bits and without a sign."""
    for shape in ((5, 37), (37, 5), (2, 300)):
        x = np.random.default_rng(0).integers(-9, 9, shape).astype(kind)
        for call in ("ArgMax(x)", "ArgMin(x) {axis = 1, select_last_index = 1}", "ArgMax(x) {axis = 1}", "CumSum(x, a)"):
            body = f"graph(x: {kind}[A, B]) -> (y) {{ a: int64[] = 0 y = {call} }}"
            assert_same_bits(run_cpu(body, {"x": x}, isa=isa)[0], reference(body, {"x": x})[0])


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin", "ReduceSum", "ReduceProd", "ReduceMean", "ReduceL2"])
def test_special_values(op: str) -> None:
    """NaN and infinities, and reductions of nothing."""
    inf, nan = np.inf, np.nan
    x = np.array([[1, nan, 2], [inf, 1, 2], [-inf, inf, 0], [-0.0, 0.0, -0.0]], np.float32)
    for body, array in ((_text(op, "4, 3", (1,)), x), (_text(op, "3, 4", (0,)), np.ascontiguousarray(x.T))):
        np.testing.assert_array_equal(run_cpu(body, {"x": array})[0], reference(body, {"x": array})[0])
    body = _text(op, "a, b", (1,))
    for shape in ((2, 0), (0, 2), (0, 0)):
        np.testing.assert_array_equal(run_cpu(body, {"x": _x(*shape)})[0], reference(body, {"x": _x(*shape)})[0])


def test_axes_as_an_attribute_or_left_out() -> None:
    """The attribute before opset 18; no axes are all of them, or none."""
    x = _x(2, 3, 4)
    texts = [
        ("ReduceMax(x) {axes = [0, -1]}", "1, 3, 1", 13),
        ("ReduceSum(x) {keepdims = 0}", "", 13),
        ("ReduceL2(x)", "1, 1, 1", 18),
        ("ReduceL1(x) {noop_with_empty_axes = 1}", "2, 3, 4", 18),
        ("ReduceLogSum(x) {noop_with_empty_axes = 1}", "2, 3, 4", 18),
    ]
    for call, out, opset in texts:
        body = f"graph(x: float[2, 3, 4]) -> (y: float[{out}]) {{ y = {call} }}"
        assert_close(run_cpu(body, {"x": x}, opset=opset)[0], reference(body, {"x": x}, opset=opset, double=True)[0], 4e-7)


def test_elementwise_nodes_with_numbers_join() -> None:
    """The last step computes them."""
    body = """graph(x: float[2, 3, 4]) -> (y: float[1, 3, 1]) {
        axes: int64[2] = [0, 2] e: float[] = 1e-5
        m = ReduceMean(x, axes) s = Add(m, e) y = Sqrt(s) }"""
    assert steps_of(body) == ["ReduceMean+Add+Sqrt"] * 2
    assert_close(run_cpu(body, {"x": _x(2, 3, 4)})[0], reference(body, {"x": _x(2, 3, 4)}, double=True)[0], 4e-7)


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool"])
@pytest.mark.parametrize("layout", Layout)
def test_global_pools_in_both_layouts(layout: Layout, op: str) -> None:
    """Of one, two and three spatial axes."""
    for shape in ((2, 5, 7), (1, 33, 7, 7), (2, 3, 4, 5, 6)):
        dims, ones = ", ".join(map(str, shape)), ", 1" * (len(shape) - 2)
        body = f"graph(x: float[{dims}]) -> (y: float[{shape[0]}, {shape[1]}{ones}]) {{ y = {op}(x) }}"
        x = _x(*shape)
        assert_close(run_cpu(body, {"x": x}, layout=layout)[0], reference(body, {"x": x}, double=True)[0], 4e-7)


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("kind", ["float", "int32", "int64"])
def test_positions_of_extremes(kind: str, last: int, op: str) -> None:
    """Along every axis, the first or last of equal ones."""
    for axis, keepdims in ((0, 1), (1, 0), (-1, 1)):
        out = ["1" if place == axis % 3 else dim for place, dim in enumerate("abc") if keepdims or place != axis % 3]
        body = f"""graph(x: {kind}[a, b, c]) -> (y: int64[{", ".join(out)}]) {{
            y = {op}(x) {{axis = {axis}, keepdims = {keepdims}, select_last_index = {last}}} }}"""
        session = cpu_session(body)
        for shape in ((1, 1, 1), (3, 17, 5), (2, 5, 70)):
            x = np.random.default_rng(0).integers(0, 4, shape).astype(np.float32 if kind == "float" else kind)
            assert_same_bits(session.run(None, {"x": x})[0], reference(body, {"x": x})[0])


def test_an_empty_axis_has_no_extreme() -> None:
    """It is an error of the input."""
    session = cpu_session("graph(x: float[a, b]) -> (y: int64[a, 1]) { y = ArgMax(x) {axis = 1} }")
    with pytest.raises(InvalidArgument, match="axis of 0 elements"):
        session.run(None, {"x": np.empty((2, 0), np.float32)})


@pytest.mark.parametrize("kind", ["float", "int32", "int64"])
def test_running_sums(kind: str) -> None:
    """Along every axis, forwards and backwards, with and without the element itself."""
    for axis, exclusive, reverse in itertools.product((0, 1), (0, 1), (0, 1)):
        body = f"""graph(x: {kind}[a, b]) -> (y: {kind}[a, b]) {{
            axis: int64[] = {axis}
            y = CumSum(x, axis) {{exclusive = {exclusive}, reverse = {reverse}}} }}"""
        x = np.random.default_rng(0).integers(-5, 5, (7, 37)).astype(np.float32 if kind == "float" else kind)
        assert_same_bits(run_cpu(body, {"x": x})[0], reference(body, {"x": x})[0])


@pytest.mark.parametrize("axes", [(1,), (0,), (0, 2)])
def test_threads_do_not_change_bits(axes: tuple[int, ...]) -> None:
    """Of rows, columns and both."""
    body = _text("ReduceSum", "300, 130, 3" if len(axes) > 1 else "300, 130", axes)
    x = _x(300, 130, 3) if len(axes) > 1 else _x(300, 130)
    assert_same_bits(run_cpu(body, {"x": x}, threads=2)[0], run_cpu(body, {"x": x})[0])


@pytest.mark.parametrize(
    "body",
    [
        "graph(x: float[2, 3], a: int64[1]) -> (y: float[2, 3]) { y = ReduceSum(x, a) {noop_with_empty_axes = 1} }",
        "graph(x: int32[2, 3]) -> (y: int32[1, 1]) { y = ReduceL2(x) }",
        "graph(x: int64[2, 3]) -> (y: int64[1, 1]) { y = ReduceLogSum(x) }",
        "graph(x: float[2, 3], a: int64[]) -> (y: float[2, 3]) { y = CumSum(x, a) }",
        "graph(x: float16[2, 3]) -> (y: int64[1, 3]) { y = ArgMax(x) }",
    ],
)
def test_what_is_declined(body: str) -> None:
    """Axes that are computed, types that kernels do not reduce."""
    assert declined(body)


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("kind", ["float", "int32", "int64"])
def test_running_products(kind: str, isa: str) -> None:
    """As running sums, in the same order of products as the reference provider's."""
    for axis, exclusive, reverse in itertools.product((0, 1), (0, 1), (0, 1)):
        body = f"""graph(x: {kind}[a, b]) -> (y: {kind}[a, b]) {{
            axis: int64[] = {axis}
            y = CumProd(x, axis) {{exclusive = {exclusive}, reverse = {reverse}}} }}"""
        x = np.random.default_rng(0).integers(-2, 3, (7, 37)).astype(np.float32 if kind == "float" else kind)
        assert_same_bits(run_cpu(body, {"x": x}, opset=26, isa=isa)[0], reference(body, {"x": x}, opset=26)[0])


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("op_type", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize(("shape", "axis"), [((3, 200), 1), ((300, 70), 0), ((2, 1), 1), ((2, 65, 3), 1)])
def test_extremes_of_small_integers(shape: tuple[int, ...], axis: int, last: int, op_type: str, dtype: str, isa: str) -> None:
    """The first or the last of several."""
    body = f"graph(x: {dtype}[{', '.join(map(str, shape))}]) -> (y) {{ y = {op_type}(x) {{axis = {axis}, select_last_index = {last}}} }}"
    info = np.iinfo(dtype)
    for low, high in ((info.min, info.max), (0, 3)):
        feeds = {"x": np.random.default_rng(0).integers(low, high, shape, dtype, endpoint=True)}
        np.testing.assert_array_equal(run_cpu(body, feeds, isa=isa)[0], reference(body, feeds)[0])
