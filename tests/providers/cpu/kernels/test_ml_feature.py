"""LabelEncoder and OneHotEncoder of numbers, against the reference provider."""

import numpy as np
import pytest
from onnx import helper
from support.ml_models import ml_session, native

import sardonyx

OPSET = "17, ai.onnx.ml 4"


def encoder(kind, attributes, made, shape="n,m"):
    return f"graph(x: {kind}[{shape}]) -> (y: {made}[k,l]) {{ y = ai.onnx.ml.LabelEncoder(x) {{{attributes}}} }}"


@pytest.mark.parametrize(
    ("kind", "attributes", "made"),
    [
        ("int64", "keys_int64s = [5, -3, 9], values_int64s = [1, 2, 3]", "int64"),
        ("int64", "keys_int64s = [5, -3, 9, 5], values_int64s = [1, 2, 3, 4], default_int64 = 77", "int64"),
        ("int64", "keys_int64s = [5, -3], values_floats = [1.5, -2.5], default_float = 0.25", "float"),
        ("float", "keys_floats = [0.5, nan, -3.0], values_int64s = [1, 2, 3]", "int64"),
        ("float", "keys_floats = [0.5, 0.0, -3.0], values_floats = [1.0, 2.0, nan]", "float"),
        ("double", "keys_tensor: double[2] = [0.5, -3.0], values_tensor: double[2] = [1.0, 2.0]", "double"),
        ("int32", "keys_tensor: int32[2] = [5, -3], values_tensor: int64[2] = [1, 2], default_tensor: int64[1] = [9]", "int64"),
    ],
)
def test_numbers_become_the_values_beside_them(kind, attributes, made):
    """The last of equal keys counts, NaN is a key, others get the default."""
    text = encoder(kind, attributes, made)
    ours, reference = (ml_session(text, opset=OPSET, is_reference=is_reference) for is_reference in (False, True))
    assert native(ours)
    dtype = {"int64": np.int64, "int32": np.int32, "float": np.float32, "double": np.float64}[kind]
    x = np.array([[5, -3, 9, 0], [0.5, -0.5, -0.0, 4]]).astype(dtype)
    if x.dtype.kind == "f":
        x[1, 3] = np.nan
    for rows in (x, x[:, :1], x[:0]):
        (y,), (expected,) = ours.run(None, {"x": rows}), reference.run(None, {"x": rows})
        assert (y.dtype, y.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(
    ("kind", "attributes", "made", "reason"),
    [
        ("int64", 'keys_int64s = [5], values_strings = ["a"]', "string", "text"),
        ("int64", "keys_int64s = [5], values_int64s = [1, 2]", "int64", "not as many"),
        ("float", "keys_int64s = [5], values_int64s = [1]", "int64", "keys of type int64 for data of type float"),
        ("float", "keys_floats = [nan], values_int64s = [1]", "int64", "NaN is its only key"),
        ("int64", "keys_int64s = [5], keys_floats = [1.0], values_int64s = [1]", "int64", "not as many"),
        ("int64", "keys_int64s = [5], values_tensor: int32[1] = [1], default_int64 = 4294967296", "int32", "no number of the"),
        ("int64", 'keys_int64s = [5], values_int64s = [1], default_tensor: string[1] = ["a"]', "int64", "no number of the"),
        ("int64", "keys_int64s = [5], values_int64s = [1], default_tensor: int64[0] = []", "int64", "no number of the"),
    ],
)
def test_what_is_left_to_the_reference_provider(kind, attributes, made, reason):
    """It has text, and refuses what does not fit."""
    (place,) = ml_session(encoder(kind, attributes, made), opset=OPSET).explain()
    assert reason in place.declined["CPUExecutionProvider"]


@pytest.mark.parametrize(("kind", "dtype"), [("int64", np.int64), ("float", np.float32), ("int32", np.int32)])
def test_unknown_elements_are_refused_where_zeros_is_0(kind, dtype):
    """With the place of the first one that is found; equal categories share the last column."""
    text = f"""graph(x: {kind}[n,m]) -> (y: float[n,m,4]) {{
        y = ai.onnx.ml.OneHotEncoder(x) {{cats_int64s = [3, 1, 3, -2], zeros = 0}} }}"""
    ours, reference = (ml_session(text, opset=OPSET, is_reference=is_reference) for is_reference in (False, True))
    assert native(ours)
    x = np.array([[3, 1], [1, -2], [3, 3]], dtype)
    for rows in (x, x[:1], x[:0]):
        np.testing.assert_array_equal(ours.run(None, {"x": rows})[0], reference.run(None, {"x": rows})[0])
    x[1, 1] = 2
    with pytest.raises(sardonyx.InvalidArgument, match="OneHotEncoder.*element 3 is in no category and zeros=0; add the category"):
        ours.run(None, {"x": x})


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
@pytest.mark.parametrize("columns", [1, 3, 20, 70, 1100])
def test_rows_are_normalized(norm, columns):
    """A size of 0 divides as 1; NaN stays; also of no rows, and with what comes after in the store."""
    text = f"""graph(x: float[n,m]) -> (y: float[n,m], z: float[n,m]) {{
        y = ai.onnx.ml.Normalizer(x) {{norm = "{norm}"}} \n a = ai.onnx.ml.Normalizer(x) {{norm = "{norm}"}} \n z = Exp(a) }}"""
    ours, reference = ml_session(text), ml_session(text, is_reference=True)
    assert native(ours)
    x = np.random.default_rng(columns).standard_normal((7, columns)).astype(np.float32)
    x[1], x[2, 0], x[3, 0], x[4, -1] = 0, np.nan, np.inf, 1e15
    for rows in (x, x[:1], x[:0]):
        for found, expected in zip(ours.run(None, {"x": rows}), reference.run(None, {"x": rows}), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
@pytest.mark.parametrize(("kind", "dtype"), [("double", np.float64), ("int32", np.int32), ("int64", np.int64)])
def test_rows_of_other_types_are_normalized_in_double(kind, dtype, norm):
    """Short and long ones, of numbers as large and as small as the type has, and of zeros."""
    text = f'graph(x: {kind}[n,m]) -> (y: float[n,m]) {{ y = ai.onnx.ml.Normalizer(x) {{norm = "{norm}"}} }}'
    ours, reference = ml_session(text), ml_session(text, is_reference=True)
    assert native(ours)
    for columns in (1, 2, 3, 8, 20, 70):
        x = (np.random.default_rng(columns).standard_normal((40, columns)) * 1000).astype(dtype)
        x[1] = 0
        x[2, 0] = np.iinfo(dtype).max if dtype is not np.float64 else 5e-310
        np.testing.assert_allclose(ours.run(None, {"x": x})[0], reference.run(None, {"x": x})[0], rtol=3e-7)


def test_a_vector_is_one_row_to_a_normalizer():
    """And its last axis is all of it."""
    text = 'graph(x: float[m]) -> (y: float[m]) { y = ai.onnx.ml.Normalizer(x) {norm = "L1"} }'
    session = ml_session(text)
    assert native(session)
    np.testing.assert_array_equal(session.run(None, {"x": np.array([1, -3], np.float32)})[0], [0.25, -0.75])


def test_lengths_give_the_nearest_floats() -> None:
    """Trees that scikit-learn trained compare with what it divides in double."""
    x = np.random.default_rng(7).uniform(0.1, 8, (200, 2)).astype(np.float32)
    node = helper.make_node("Normalizer", ["x"], ["y"], norm="L2", domain="ai.onnx.ml")
    info = helper.make_tensor_value_info
    graph = helper.make_graph([node], "g", [info("x", 1, [None, 2])], [info("y", 1, [None, 2])])
    opsets = [helper.make_opsetid("", 15), helper.make_opsetid("ai.onnx.ml", 1)]
    content = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    wide = x.astype(np.float64)
    wanted = (wide / np.sqrt((wide * wide).sum(axis=1, keepdims=True))).astype(np.float32)
    for provider in ("CPUExecutionProvider", "ReferenceExecutionProvider"):
        np.testing.assert_array_equal(sardonyx.InferenceSession(content, providers=[provider]).run(None, {"x": x})[0], wanted)
