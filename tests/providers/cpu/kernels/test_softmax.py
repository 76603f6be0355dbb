"""Softmax and LogSoftmax of models: axes, versions, sizes, tails."""

import numpy as np
import pytest
from support.cpu_run import LEVELS, assert_close, assert_same_bits, cpu_session, declined, reference, run_cpu, steps_of

from sardonyx.dtypes import Array


def _x(*shape: int) -> Array:
    return (np.random.default_rng(len(shape)).standard_normal(shape) * 3).astype(np.float32)


def _text(shape: str, axis: int, op: str = "Softmax") -> str:
    return f"graph(x: float[{shape}]) -> (y: float[{shape}]) {{ y = {op}(x) {{axis = {axis}}} }}"


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("axis", [-1, 0, 1, 2])
@pytest.mark.parametrize("isa", LEVELS)
def test_every_axis(isa: str, axis: int, op: str) -> None:
    """Of one session, on several shapes, as float64 has it."""
    body = _text("a, b, c", axis, op)
    session = cpu_session(body, isa=isa)
    for shape in ((2, 3, 4), (1, 1, 1), (5, 17, 16), (3, 2, 131), (0, 2, 3)):
        x = _x(*shape)
        assert_close(session.run(None, {"x": x})[0], reference(body, {"x": x}, double=True)[0], 8e-7)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_before_opset_13_the_axes_make_a_matrix(axis: int) -> None:
    """Those from `axis` on are one row."""
    body = _text("2, 3, 5", axis)
    x = _x(2, 3, 5)
    assert_close(run_cpu(body, {"x": x}, opset=11)[0], reference(body, {"x": x}, opset=11, double=True)[0], 5e-7)


def test_default_axis_follows_the_version() -> None:
    """It is the second one before opset 13, and the last since."""
    body = "graph(x: float[2, 3, 5]) -> (y: float[2, 3, 5]) { y = Softmax(x) }"
    x = _x(2, 3, 5)
    for opset, axes in ((11, (1, 2)), (13, (2,))):
        np.testing.assert_allclose(run_cpu(body, {"x": x}, opset=opset)[0].sum(axes), 1, rtol=1e-6)


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize(("axis", "opset"), [(0, 11), (1, 13), (-1, 13)])
def test_hardmax_marks_the_first_of_the_greatest(axis: int, opset: int, isa: str) -> None:
    """NaN is the greatest, as NumPy has it."""
    body, x = _text("n, 35, 18", axis, "Hardmax"), _x(3, 35, 18).round()
    x[0, 3, 4] = x[2, 7, 5] = x[2, 9, 5] = np.nan
    assert_same_bits(run_cpu(body, {"x": x}, opset=opset, isa=isa)[0], reference(body, {"x": x}, opset=opset)[0])


def test_elementwise_nodes_join() -> None:
    """What reads whole tensors, rows or numbers beside is computed in the store, and computes the same."""
    body = """graph(x: float[n, 4, s, s], m: float[n, 1, 1, s], w: float[n, 4, s, s]) -> (y: float[n, 4, s, s]) {
        half: float[] = 0.5
        p = Softmax(x) q = Mul(p, w) r = Add(q, m) t = Mul(r, half) y = Relu(t) }"""
    assert steps_of(body) == ["Softmax+Mul+Add+Mul+Relu"]
    session = cpu_session(body)
    for n, s in ((1, 3), (3, 17), (2, 64)):
        feeds = {"x": _x(n, 4, s, s), "m": _x(n, 1, 1, s), "w": _x(n, 4, s, s)}
        assert_close(session.run(None, feeds)[0], reference(body, feeds, double=True)[0], 8e-7)


def test_rows_without_a_number_can_be_replaced_in_the_store() -> None:
    """Of scores that are all masked out: Where(IsNaN(p), 0, p) reads the same row twice, so that it is a step of its own."""
    body = """graph(x: float[2, 5]) -> (y: float[2, 5]) {
        zero: float[] = 0.0
        p = Softmax(x) b = IsNaN(p) y = Where(b, zero, p) }"""
    x = _x(2, 5)
    x[1] = -np.inf
    found = run_cpu(body, {"x": x})[0]
    assert (found[1] == 0).all()
    assert_close(found[0], reference(body, {"x": x})[0][0], 5e-7)


def test_special_values_are_those_of_the_reference() -> None:
    """NaN, infinities, and elements masked out."""
    inf, nan = np.inf, np.nan
    x = np.array([[0, -inf, 1], [nan, 0, 1], [inf, 0, 1], [-inf, -inf, -inf], [3e38, -3e38, 0]], np.float32)
    for op in ("Softmax", "LogSoftmax"):
        for body, array in ((_text("5, 3", 1, op), x), (_text("3, 5", 0, op), np.ascontiguousarray(x.T))):
            np.testing.assert_allclose(run_cpu(body, {"x": array})[0], reference(body, {"x": array})[0], rtol=1e-6)


@pytest.mark.parametrize(("shape", "axis"), [((300, 130), 1), ((3, 130, 300), 1)])
def test_threads_and_batches_do_not_change_bits(shape: tuple[int, ...], axis: int) -> None:
    """Two threads, or a part of the batch alone, give the same."""
    body = _text(", ".join(["n", *map(str, shape[1:])]), axis)
    x = _x(*shape)
    (whole,) = run_cpu(body, {"x": x})
    assert_same_bits(run_cpu(body, {"x": x}, threads=2)[0], whole)
    assert_same_bits(run_cpu(body, {"x": x[1:2]})[0], whole[1:2])


def test_other_types_and_scalars_are_declined() -> None:
    """float16 is left to others, and to float32 where it is widened."""
    assert declined("graph(x: float16[2]) -> (y: float16[2]) { y = Softmax(x) }")
    assert declined("graph(x: float[]) -> (y: float[]) { y = Softmax(x) }")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", ["uint8", "int8", "uint16", "int16"])
@pytest.mark.parametrize(("operator", "axis"), [("Softmax", -1), ("Softmax", 1), ("LogSoftmax", -1)])
def test_a_softmax_that_is_quantized_is_stored_so(operator: str, axis: int, kind: str, level: str) -> None:
    """Without memory for floats: one step, and integers that are at most a step from the reference's where it is next to half-way."""
    body = (
        f"graph(x: float[3, 19, 37]) -> (y: {kind}[3, 19, 37]) {{ s: float[] = 0.0039 z: {kind}[] = 5 "
        f"f = {operator}(x) {{axis = {axis}}} y = QuantizeLinear(f, s, z) }}"
    )
    x = np.random.default_rng(0).standard_normal((3, 19, 37)).astype(np.float32) * 3
    assert steps_of(body) == [f"{operator}+QuantizeLinear"]
    found, expected = run_cpu(body, {"x": x}, isa=level)[0], reference(body, {"x": x})[0]
    assert found.dtype == expected.dtype
    different = found.astype(int) - expected
    assert np.abs(different).max() <= 1
    assert np.count_nonzero(different) <= 3


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize(("shape", "axis"), [((3, 1), 1), ((5, 7), -1), ((2, 9, 5), 1), ((2, 3000), 1), ((3, 33), 0)])
def test_float64(op_type: str, shape: tuple[int, ...], axis: int, isa: str) -> None:
    """Is computed in float64."""
    body = f"graph(x: double[{', '.join(map(str, shape))}]) -> (y) {{ y = {op_type}(x) {{axis = {axis}}} }}"
    feeds = {"x": np.random.default_rng(0).standard_normal(shape) * 10}
    assert_close(run_cpu(body, feeds, isa=isa)[0], reference(body, feeds)[0], 1e-14)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_results_are_rounded_in_the_store(dtype: str) -> None:
    """To types of 16 bits."""
    code = {"float16": 10, "bfloat16": 16}[dtype]
    body = f"graph(x: float[5, 40]) -> (y) {{ s = Softmax(x) y = Cast(s) {{to = {code}}} }}"
    assert steps_of(body) == ["Softmax+Cast"]
    feeds = {"x": np.random.default_rng(0).standard_normal((5, 40)).astype(np.float32)}
    found, exact = (side[0].astype(np.float64) for side in (run_cpu(body, feeds), reference(body, feeds)))
    np.testing.assert_allclose(found, exact, rtol={"float16": 1e-3, "bfloat16": 8e-3}[dtype])


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((70001, 4), 0), ((1, 70000), 1), ((2, 30011, 3), 1), ((70000, 1), 0), ((9999, 7), 0), ((1100, 65), 0)]
)
@pytest.mark.parametrize("isa", LEVELS)
def test_a_few_long_columns_are_those_of_float64(isa: str, shape: tuple[int, ...], axis: int, op: str) -> None:
    """Cut into blocks of lines, in sizes that are known or not; a block of which nothing is left counts for nothing."""
    x = _x(*shape)
    x.reshape(-1)[: x.size // 3] = -np.inf
    x[..., -1, :] = 0.5
    for text in (", ".join(map(str, shape)), "a, b, c"[: 3 * len(shape) - 2]):
        body = _text(text, axis, op)
        found, wanted = run_cpu(body, {"x": x}, isa=isa)[0], reference(body, {"x": x}, double=True)[0]
        np.testing.assert_array_equal(np.isinf(found), np.isinf(wanted))
        finite = np.isfinite(wanted)
        assert_close(found[finite], wanted[finite], 2e-6)


def test_few_long_columns_are_several_tasks() -> None:
    """With the same bits for any number of threads, and in a batch as alone."""
    body, x = _text("2, 60000, 3", 1), _x(2, 60000, 3)
    alone = run_cpu(body, {"x": x}, threads=1)[0]
    assert_same_bits(run_cpu(body, {"x": x}, threads=3)[0], alone)
    assert_same_bits(run_cpu(_text("60000, 3", 0), {"x": x[1]})[0], alone[1])
    assert steps_of(body) == ["Softmax", "Softmax"]


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_a_long_column_with_what_is_no_number_is_none(number: float) -> None:
    """NaN or an infinity anywhere, or nothing but -inf; the columns beside it do not change."""
    body, x = _text("70000, 4", 0), _x(70000, 4)
    plain = run_cpu(body, {"x": x})[0]
    x[:, 2] = x[:, 2] if number != -np.inf else number
    x[40000, 2] = number
    found = run_cpu(body, {"x": x})[0]
    assert np.isnan(found[:, 2]).all()
    np.testing.assert_array_equal(np.delete(found, 2, 1), np.delete(plain, 2, 1))
