"""Facts about feature preparation."""

import functools

import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument

run_ml = functools.partial(run_op, domain="ai.onnx.ml")
ROWS = np.float32([[1, -2, 3], [0, 0, 0], [-1, -5, -2]])


def words(*values):
    return np.array(values, object)


def test_array_feature_extractor_takes_from_the_last_axis():
    """A vector becomes a row; a negative index is none."""
    assert run_ml("ArrayFeatureExtractor", ROWS, np.array([[2, 0]])).tolist() == [[3, 1], [0, 0], [-2, -1]]
    assert run_ml("ArrayFeatureExtractor", words("a", "b"), np.array([1])).tolist() == [["b"]]
    with pytest.raises(InvalidArgument, match=r"\[0, 2\]"):
        run_ml("ArrayFeatureExtractor", ROWS, np.array([-1]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_binarizer_keeps_the_type(dtype):
    """Only elements above the threshold are 1."""
    result = run_ml("Binarizer", np.array([1, 2, 3], dtype), threshold=2.0)
    assert (result.dtype, result.tolist()) == (dtype, [0, 0, 1])


def test_scaler_shifts_then_scales():
    """One number for all, or one for each feature; the result is float."""
    result = run_ml("Scaler", ROWS.astype(np.int64), scale=(2.0,), offset=(1.0, 0.0, 0.5))
    assert (result.dtype, result[0].tolist()) == (np.float32, [0, -4, 5])
    with pytest.raises(InvalidArgument, match="2 scales"):
        run_ml("Scaler", ROWS, scale=(1.0, 2.0), offset=(0.0,))


@pytest.mark.parametrize(("norm", "want"), [("MAX", [1 / 3, -2 / 3, 1]), ("L1", [1 / 6, -1 / 3, 1 / 2]), ("L2", None)])
def test_normalizer_divides_rows(norm, want):
    """A row of zeros stays."""
    result = run_ml("Normalizer", ROWS, norm=norm)
    np.testing.assert_allclose(result[0], want or ROWS[0] / np.sqrt(14), rtol=1e-6)
    assert result[1].tolist() == [0, 0, 0]
    assert run_ml("Normalizer", ROWS[0], norm=norm).shape == (3,)


def test_imputer_replaces_a_value_or_nan():
    """Floats use the float attributes, integers the integer ones."""
    data = np.float32([[1, np.nan], [np.nan, 2]])
    assert run_ml("Imputer", data, imputed_value_floats=(5.0, 6.0), replaced_value_float=np.nan).tolist() == [[1, 6], [5, 2]]
    result = run_ml("Imputer", np.array([[1, 2]], np.int32), imputed_value_int64s=(9,), replaced_value_int64=2)
    assert (result.dtype, result.tolist()) == (np.int32, [[1, 9]])
    with pytest.raises(InvalidArgument, match="3 imputed values"):
        run_ml("Imputer", data, imputed_value_floats=(1.0, 2.0, 3.0))


def test_feature_vectorizer_joins_cuts_and_pads():
    """Each input takes the columns that inputdimensions give it."""
    left, right = np.float64([[1, 2], [3, 4]]), np.float64([[5], [6]])
    assert run_ml("FeatureVectorizer", left, right, inputdimensions=(1, 2)).tolist() == [[1, 5, 0], [3, 6, 0]]
    assert run_ml("FeatureVectorizer", left[0], right[0]).tolist() == [[1, 2, 5]]
    with pytest.raises(InvalidArgument, match="number of rows"):
        run_ml("FeatureVectorizer", left, right[:1])
    with pytest.raises(InvalidArgument, match="at most"):
        run_ml("FeatureVectorizer", left, inputdimensions=(1 << 60,))


def test_one_hot_encoder_adds_an_axis():
    """Numbers are cut to integers; an unknown one gives zeros, or an error."""
    encoded = run_ml("OneHotEncoder", np.float32([[1.7, 3], [9, 2]]), cats_int64s=(1, 2, 3))
    assert encoded.tolist() == [[[1, 0, 0], [0, 0, 1]], [[0, 0, 0], [0, 1, 0]]]
    assert run_ml("OneHotEncoder", words("b"), cats_strings=("a", "b")).tolist() == [[0, 1]]
    with pytest.raises(InvalidArgument, match="'x'"):
        run_ml("OneHotEncoder", words("x"), cats_strings=("a",), zeros=0)
    with pytest.raises(InvalidArgument, match="categories of the data's kind"):
        run_ml("OneHotEncoder", words("x"), cats_int64s=(1,))


def test_category_mapper_goes_both_ways():
    """Unknown keys take the default of the other type."""
    pairs = {"cats_strings": ("a", "b"), "cats_int64s": (5, 6)}
    assert run_ml("CategoryMapper", words("b", "z"), **pairs).tolist() == [6, -1]
    assert run_ml("CategoryMapper", np.array([6, 9]), **pairs).tolist() == ["b", "_Unused"]


def test_label_encoder_1_numbers_classes():
    """A class stands for its position, and a position for its class."""
    assert run_ml("LabelEncoder", words("b", "z"), version=1, classes_strings=("a", "b")).tolist() == [1, -1]
    assert run_ml("LabelEncoder", np.array([0, 5, -1]), version=1, classes_strings=("a", "b")).tolist() == [
        "a",
        "_Unused",
        "_Unused",
    ]


def test_label_encoder_maps_any_type_to_any():
    """The output has the type of the values; NaN is a key."""
    result = run_ml("LabelEncoder", np.float32([np.nan, 1, 2]), keys_floats=(np.nan, 1.0), values_strings=("none", "one"))
    assert result.tolist() == ["none", "one", "_Unused"]
    tensors = {"keys_tensor": words("a", "b"), "values_tensor": np.array([1, 2], np.int16)}
    result = run_ml("LabelEncoder", words("b", "c"), default_tensor=np.array([42], np.int16), **tensors)
    assert (result.dtype, result.tolist()) == (np.int16, [2, 42])
    assert run_ml("LabelEncoder", np.int64(7), keys_int64s=(7,), values_floats=(0.5,)).tolist() == 0.5


def test_label_encoder_rejects_unclear_tables():
    """One kind of keys and one of values, as many of each, of the data's kind."""
    for attributes in (
        {"keys_strings": ("a",)},
        {"keys_strings": ("a", "b"), "values_int64s": (1,)},
        {"keys_int64s": (1,), "values_int64s": (1,)},
    ):
        with pytest.raises(InvalidArgument):
            run_ml("LabelEncoder", words("a"), **attributes)


def test_cast_map_orders_by_key():
    """Dense lists the values there are; sparse puts them at their keys and drops those beyond."""
    assert run_ml("CastMap", {3: 1.5, 1: 2.25}).tolist() == [[2.25, 1.5]]
    assert run_ml("CastMap", {3: 1.5, 9: 2.0}, map_form="SPARSE", max_map=4, cast_to="TO_INT64").tolist() == [[0, 0, 0, 1]]
    assert run_ml("CastMap", {1: "2.5"}, cast_to="TO_FLOAT").tolist() == [[2.5]]
    assert run_ml("CastMap", {1: 2.5}, cast_to="TO_STRING").tolist() == [["2.500000"]]
    with pytest.raises(InvalidArgument, match="'x'"):
        run_ml("CastMap", {1: "x"})
    with pytest.raises(InvalidArgument, match="key -1"):
        run_ml("CastMap", {-1: 1.0}, map_form="SPARSE")


def test_dict_vectorizer_places_values_by_vocabulary():
    """The type is that of the map's values, or the one that the model states."""
    assert run_ml("DictVectorizer", {"a": 4.0, "c": 8.0}, string_vocabulary=("a", "c", "b", "z")).tolist() == [[4, 8, 0, 0]]
    assert run_ml("DictVectorizer", {4: "x"}, int64_vocabulary=(3, 4)).tolist() == [["", "x"]]
    assert run_ml("DictVectorizer", {4: 2}, int64_vocabulary=(3, 4)).dtype == np.int64
    stated = run_ml("DictVectorizer", {4: 2.0}, int64_vocabulary=(4,), output_types=(DataType.DOUBLE,))
    assert stated.dtype == np.float64


def test_zip_map_makes_a_map_of_each_row():
    """The labels are the keys."""
    assert run_ml("ZipMap", np.float32([[0.5, 0.25], [1, 2]]), classlabels_int64s=(4, 5)) == [{4: 0.5, 5: 0.25}, {4: 1, 5: 2}]
    assert run_ml("ZipMap", np.float32([1, 2]), classlabels_strings=("a", "b")) == [{"a": 1, "b": 2}]
    with pytest.raises(InvalidArgument, match=r"\(N, 2\)"):
        run_ml("ZipMap", np.float32([[1, 2, 3]]), classlabels_int64s=(4, 5))


@pytest.mark.parametrize("labels", [0, 1, 2, 3, 24, 25, 60])
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_zip_map_takes_any_number_of_labels(labels, rows):
    """Integers or text; of a label that occurs twice the last score stays."""
    scores = np.arange(rows * labels, dtype=np.float32).reshape(rows, labels)
    for names in (tuple(range(labels)), tuple(f"label {place}" for place in range(labels)), (7,) * labels):
        kind = "classlabels_strings" if names and isinstance(names[0], str) else "classlabels_int64s"
        expected = [dict(zip(names, row, strict=True)) for row in scores.tolist()]
        assert run_ml("ZipMap", scores, **{kind: names}) == expected
