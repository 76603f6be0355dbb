"""Features of ai.onnx.ml."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.dtypes import DataType
from sardonyx.ir import Dim, MapType, SequenceType, Tensor, TensorType
from sardonyx.ir.shape import anonymous, product
from sardonyx.ops.fact import UNKNOWN, Fact, ShapeCall, shape_function, tensor

__all__: list[str] = []

_ML = "ai.onnx.ml"


@shape_function("Binarizer", "Imputer", domain=_ML)
def same(call: ShapeCall, x: Fact) -> Fact:
    """Give the output the shape and type of the input."""
    return tensor(x.dtype, x.shape)


@shape_function("Normalizer", "Scaler", domain=_ML)
def as_float(call: ShapeCall, x: Fact) -> Fact:
    """Give the output float in the input's shape."""
    return tensor(DataType.FLOAT, x.shape)


@shape_function("ArrayFeatureExtractor", domain=_ML)
def array_feature_extractor(call: ShapeCall, x: Fact, indices: Fact) -> Fact:
    """Return the entries of the last axis that all elements of the second input name; a vector becomes (1, entries)."""
    if x.shape is None or indices.shape is None or not x.shape:
        return tensor(x.dtype)
    count = product(indices.shape)
    return tensor(x.dtype, (1, count) if len(x.shape) == 1 else (*x.shape[:-1], count))


@shape_function("CategoryMapper", domain=_ML)
def category_mapper(call: ShapeCall, x: Fact) -> Fact:
    """Turn strings into integers, integers into strings."""
    return tensor(DataType.INT64 if x.dtype is DataType.STRING else DataType.STRING, x.shape)


@shape_function("LabelEncoder", domain=_ML)
def label_encoder(
    call: ShapeCall,
    x: Fact,
    *,
    classes_strings: Sequence[str] = (),
    values_strings: Sequence[str] | None = None,
    values_int64s: Sequence[int] | None = None,
    values_floats: Sequence[float] | None = None,
    values_tensor: Tensor | None = None,
) -> Fact:
    """Give the output the type of the values, in the input's shape."""
    if classes_strings:
        return tensor(DataType.INT64 if x.dtype is DataType.STRING else DataType.STRING, x.shape)
    if values_tensor is not None:
        return tensor(values_tensor.dtype, x.shape)
    for values, dtype in ((values_strings, DataType.STRING), (values_int64s, DataType.INT64), (values_floats, DataType.FLOAT)):
        if values is not None:
            return tensor(dtype, x.shape)
    return UNKNOWN


@shape_function("OneHotEncoder", domain=_ML)
def one_hot_encoder(call: ShapeCall, x: Fact, *, cats_int64s: Sequence[int] = (), cats_strings: Sequence[str] = ()) -> Fact:
    """Return a new last axis with one entry for each category."""
    count = max(len(cats_int64s), len(cats_strings))
    return tensor(DataType.FLOAT, None if x.shape is None else (*x.shape, count))


@shape_function("FeatureVectorizer", domain=_ML)
def feature_vectorizer(call: ShapeCall, *inputs: Fact | None, inputdimensions: Sequence[int] = ()) -> Fact:
    """Return columns side by side, (N, sum of the widths), in float; an input of one dimension is a row."""
    shapes = [fact.shape for fact in inputs if fact is not None and fact.shape is not None]
    rows: list[Dim] = [1 if len(shape) < 2 else shape[0] for shape in shapes]
    total: Dim = sum(inputdimensions)
    if not inputdimensions:
        widths = [product(shape if len(shape) < 2 else shape[1:]) for shape in shapes]
        total = sum(widths) if len(shapes) == len(inputs) else anonymous()
    known = [row for row in rows if isinstance(row, int)]
    return tensor(DataType.FLOAT, ((*known, *rows, anonymous())[0], total))


@shape_function("CastMap", domain=_ML)
def cast_map(call: ShapeCall, x: Fact, *, cast_to: str = "TO_FLOAT", map_form: str = "DENSE", max_map: int = 1) -> Fact:
    """Return (1, values of the map)."""
    types = {"TO_FLOAT": DataType.FLOAT, "TO_STRING": DataType.STRING, "TO_INT64": DataType.INT64}
    return tensor(types.get(cast_to), (1, max_map if map_form == "SPARSE" else anonymous()))


@shape_function("DictVectorizer", domain=_ML)
def dict_vectorizer(
    call: ShapeCall, x: Fact, *, int64_vocabulary: Sequence[int] = (), string_vocabulary: Sequence[str] = ()
) -> Fact:
    """Return (1, entries of the vocabulary), in the type of the map's values."""
    dtype = x.type.value.dtype if isinstance(x.type, MapType) and isinstance(x.type.value, TensorType) else None
    return tensor(dtype, (1, max(len(int64_vocabulary), len(string_vocabulary))))


@shape_function("ZipMap", domain=_ML)
def zip_map(call: ShapeCall, x: Fact, *, classlabels_strings: Sequence[str] = ()) -> Fact:
    """Return a sequence of maps from labels to scores, one for each row."""
    key = DataType.STRING if classlabels_strings else DataType.INT64
    return Fact(SequenceType(MapType(key, TensorType(DataType.FLOAT, ()))))
