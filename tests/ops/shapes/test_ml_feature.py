"""Facts about features of classical machine learning."""

from __future__ import annotations

import numpy as np
import pytest
from support.infer_op import UNKNOWN_DIM, A, B, dtype_of, floats, infer_op, infer_shape, plain

from sardonyx.dtypes import DataType
from sardonyx.ir import MapType, SequenceType, Tensor, TensorType
from sardonyx.ops.fact import Fact, tensor

ML = "ai.onnx.ml"
INTEGERS = tensor(DataType.INT64, (A, 3))


@pytest.mark.parametrize("op_type", ["Scaler", "Normalizer"])
def test_scaled_features_are_floats(op_type: str) -> None:
    """The shape is kept and the output is float."""
    assert dtype_of(op_type, INTEGERS, domain=ML) is DataType.FLOAT
    assert infer_shape(op_type, INTEGERS, domain=ML) == (A, 3)


def test_filled_and_thresholded_features_keep_their_type() -> None:
    """Imputer and Binarizer keep type and shape."""
    assert dtype_of("Imputer", INTEGERS, domain=ML) is DataType.INT64
    assert infer_shape("Binarizer", floats(A, 3), domain=ML) == (A, 3)


def test_extraction_takes_columns() -> None:
    """The last axis becomes as long as the list of indices; a vector gets a row."""
    assert infer_shape("ArrayFeatureExtractor", floats(A, 3), tensor(DataType.INT64, (B,)), domain=ML) == (A, B)
    assert infer_shape("ArrayFeatureExtractor", floats(3), tensor(DataType.INT64, (2,)), domain=ML) == (1, 2)


def test_extraction_counts_all_indices() -> None:
    """Indices of any rank are one list: as many columns as they have elements."""
    assert infer_shape("ArrayFeatureExtractor", floats(3), tensor(DataType.INT64, (A, 1)), domain=ML) == (1, A)
    assert infer_shape("ArrayFeatureExtractor", floats(B, 3), tensor(DataType.INT64, (2, 3)), domain=ML) == (B, 6)


def test_labels_change_type() -> None:
    """The type follows from the attributes, and from the input in CategoryMapper and old LabelEncoder."""
    assert dtype_of("CategoryMapper", INTEGERS, domain=ML) is DataType.STRING
    assert dtype_of("LabelEncoder", INTEGERS, domain=ML, values_floats=(1.0,)) is DataType.FLOAT
    assert dtype_of("LabelEncoder", INTEGERS, domain=ML, values_tensor=Tensor.from_array(np.ones(1, np.int16))) is DataType.INT16
    assert dtype_of("LabelEncoder", tensor(DataType.STRING, (A,)), domain=ML, version=1, classes_strings=("a",)) is DataType.INT64


def test_columns_are_added() -> None:
    """OneHotEncoder adds an axis of categories, FeatureVectorizer puts columns side by side."""
    assert infer_shape("OneHotEncoder", INTEGERS, domain=ML, cats_int64s=(1, 2)) == (A, 3, 2)
    assert infer_shape("FeatureVectorizer", floats(A, 3), floats(A, B), domain=ML) == (A, B + 3)
    assert infer_shape("FeatureVectorizer", floats(A, 3), floats(A, B), domain=ML, inputdimensions=(3, 4)) == (A, 7)


def test_maps() -> None:
    """Maps become rows, and scores become maps."""
    scores = Fact(MapType(DataType.INT64, TensorType(DataType.FLOAT, ())))
    assert plain(infer_op("CastMap", scores, domain=ML)[0]) == (1, UNKNOWN_DIM)
    assert infer_shape("CastMap", scores, domain=ML, map_form="SPARSE", max_map=5) == (1, 5)
    assert infer_shape("DictVectorizer", scores, domain=ML, int64_vocabulary=(1, 2, 3)) == (1, 3)
    zipped = infer_op("ZipMap", floats(A, 2), domain=ML, classlabels_strings=("a", "b"))[0].type
    assert zipped == SequenceType(MapType(DataType.STRING, TensorType(DataType.FLOAT, ())))
