"""Feature preparation of ai.onnx.ml: scaling, encoding, maps to tensors and back."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from sardonyx.dtypes import Array, OnnxValue
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.dimensions import check_output_size
from sardonyx.providers.reference.algorithms.label_tables import Table, looked_up, table_of
from sardonyx.providers.reference.algorithms.memo import remembered
from sardonyx.providers.reference.registry import Call, kernel

__all__: list[str] = []

_ML = "ai.onnx.ml"


def _strings(values: Sequence[str], shape: Sequence[int]) -> Array:
    result = np.empty(len(values), object)
    result[:] = values
    return result.reshape(shape)


@kernel("ArrayFeatureExtractor", domain=_ML)
def array_feature_extractor(_node: Call, data: Array, indices: Array) -> Array:
    """Take entries of the last axis; a 1-D tensor becomes a row (1, count). ONNX ArrayFeatureExtractor-1."""
    places = indices.reshape(-1)
    if data.ndim == 0 or not places.size:
        raise InvalidArgument(f"data has shape {data.shape}, indices {indices.shape}; expected a tensor and at least one index")
    if not 0 <= places.min() <= places.max() < data.shape[-1]:
        raise InvalidArgument(f"indices lie in [{places.min()}, {places.max()}]; expected [0, {data.shape[-1] - 1}]")
    taken = np.take(data, places, axis=-1)
    return taken[None] if data.ndim == 1 else taken


@kernel("Binarizer", domain=_ML)
def binarizer(_node: Call, data: Array, *, threshold: float = 0.0) -> Array:
    """Map elements above the threshold to 1, others to 0, in data's type. ONNX Binarizer-1."""
    return np.greater(data, threshold).astype(data.dtype)


def _wide(data: Array) -> Array:
    """Return numbers as floating point without loss: float32 as it is, all else as double."""
    return data if data.dtype == np.float32 else data.astype(np.float64)


@kernel("Scaler", domain=_ML)
def scaler(_node: Call, data: Array, *, scale: Sequence[float] = (1.0,), offset: Sequence[float] = (0.0,)) -> Array:
    """Compute (x - offset) * scale, each of length 1 or of the last axis: float32 of data's shape. ONNX Scaler-1."""
    features = data.shape[-1] if data.ndim else 1
    if len(scale) not in (1, features) or len(offset) not in (1, features):
        raise InvalidArgument(f"{len(scale)} scales and {len(offset)} offsets for {features} features; expected 1 or {features}")
    numbers = _wide(data)
    scaled: Array = (numbers - np.array(offset, numbers.dtype)) * np.array(scale, numbers.dtype)
    return scaled.astype(np.float32, copy=False).reshape(data.shape)


@kernel("Normalizer", domain=_ML)
def normalizer(_node: Call, data: Array, *, norm: str = "MAX") -> Array:
    """Divide each row of (N, C) or (C,) by its maximum, its sum of absolutes or its length: float32; 0 divides as 1.

    MAX takes the greatest element with its sign, as ONNX Runtime does. ONNX Normalizer-1.
    """
    if data.ndim not in (1, 2):
        raise InvalidArgument(f"data has shape {data.shape}; expected (N, C) or (C,)")
    numbers = data.astype(np.float64) if norm == "L2" else _wide(data)
    if norm == "MAX":
        size = numbers.max(axis=-1, keepdims=True, initial=-np.inf)
    elif norm == "L1":
        size = np.abs(numbers).sum(axis=-1, keepdims=True)
    elif norm == "L2":
        size = np.sqrt((numbers * numbers).sum(axis=-1, keepdims=True))
    else:
        raise InvalidArgument(f"norm={norm!r}; expected MAX, L1 or L2")
    return (numbers / np.where(size == 0, 1, size)).astype(np.float32, copy=False)


@kernel("Imputer", domain=_ML)
def imputer(
    _node: Call,
    data: Array,
    *,
    imputed_value_floats: Sequence[float] = (),
    replaced_value_float: float = 0.0,
    imputed_value_int64s: Sequence[int] = (),
    replaced_value_int64: int = 0,
) -> Array:
    """Replace elements equal to one value (NaN equals NaN) by another, one for all or one for each feature. ONNX Imputer-1."""
    is_float = data.dtype.kind == "f"
    values: Sequence[float] = imputed_value_floats if is_float else imputed_value_int64s
    replaced: float = replaced_value_float if is_float else replaced_value_int64
    if len(values) not in (1, data.shape[-1] if data.ndim else 1):
        raise InvalidArgument(
            f"{len(values)} imputed values for data of shape {data.shape} and type {data.dtype}; expected 1 or one each"
        )
    missing = np.isnan(data) if replaced != replaced else data == replaced
    return np.where(missing, np.array(values, data.dtype), data)


@kernel("FeatureVectorizer", domain=_ML)
def feature_vectorizer(_node: Call, *inputs: Array, inputdimensions: Sequence[int] = ()) -> Array:
    """Join inputs (N, ...), flattened to (N, C), cut or zero-padded to inputdimensions, side by side: float32.

    One of shape (C,) is a row. ONNX FeatureVectorizer-1.
    """
    rows = [part.reshape(1, -1) if part.ndim <= 1 else part.reshape(len(part), math.prod(part.shape[1:])) for part in inputs]
    if not rows or len({len(part) for part in rows}) != 1 or len(inputdimensions) not in (0, len(rows)):
        raise InvalidArgument(
            f"inputs have shapes {[part.shape for part in inputs]}, inputdimensions={list(inputdimensions)}; "
            "expected one number of rows, and one dimension for each input"
        )
    widths = inputdimensions or [part.shape[1] for part in rows]
    if min(widths) < 0:
        raise InvalidArgument(f"inputdimensions={list(inputdimensions)}; expected widths >= 0")
    check_output_size((len(rows[0]), sum(widths)), 4)
    output = np.zeros((len(rows[0]), sum(widths)), np.float32)
    start = 0
    for part, width in zip(rows, widths, strict=True):
        kept = min(width, part.shape[1])
        output[:, start : start + kept] = part[:, :kept]
        start += width
    return output


@remembered
def _categories(strings: Sequence[str], integers: Sequence[int]) -> Table:
    keys = _strings(strings, (-1,)) if strings else np.array(integers, np.int64)
    return table_of(keys)


_MOST_ROWS = 256
"""Categories beyond which no row is kept for each."""


@remembered
def _categories_and_rows(strings: Sequence[str], integers: Sequence[int]) -> tuple[Table, Array | None]:
    """Return the table, and unless there are many categories the row of each, with one of zeros behind them for place -1.

    Rows are read-only, so that a user who is given one gets a copy.
    """
    table = _categories(strings, integers)
    if table.count > _MOST_ROWS:
        return table, None
    rows = np.eye(table.count + 1, table.count, dtype=np.float32)
    rows.flags.writeable = False
    return table, rows


def _whole(data: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return data.astype(np.int64)


@kernel("OneHotEncoder", domain=_ML)
def one_hot_encoder(
    _node: Call, data: Array, *, cats_strings: Sequence[str] = (), cats_int64s: Sequence[int] = (), zeros: int = 1
) -> Array:
    """Turn each element into a row with a 1 at its category, on a new last axis: float32. Numbers are cut to integers.

    An unknown element gives zeros, or an error if `zeros` is 0. ONNX OneHotEncoder-1.
    """
    table, rows = _categories_and_rows(cats_strings, cats_int64s)
    if not table.count or (data.dtype.kind == "O") != table.holds_strings:
        raise InvalidArgument(f"data of type {data.dtype} with {table.count} categories; expected categories of the data's kind")
    if rows is not None and data.size == 1 and zeros and isinstance(text := data.item(), str):  # one row has no time for arrays
        row: Array = rows[table.by_string.get(text, -1)]
        return row.reshape(*data.shape, table.count)
    elements = data if table.holds_strings else _whole(data)
    places = looked_up(table, elements)
    if not zeros and (places < 0).any():
        unknown = elements[places < 0][0]
        raise InvalidArgument(f"the element {unknown!r} is in no category and zeros=0; add the category, or set zeros=1")
    check_output_size((*data.shape, table.count), 4)
    if rows is not None:
        encoded: Array = rows.take(places, axis=0)
        return encoded
    places = places.reshape(-1)
    known = (places >= 0).nonzero()[0]
    output = np.zeros((places.size, table.count), np.float32)
    output[known, places[known]] = 1
    return output.reshape(*data.shape, table.count)


@kernel("CategoryMapper", domain=_ML)
def category_mapper(
    _node: Call,
    data: Array,
    *,
    cats_int64s: Sequence[int],
    cats_strings: Sequence[str],
    default_int64: int = -1,
    default_string: str = "_Unused",
) -> Array:
    """Map strings to the integers beside them, or integers to strings; unknown ones to the default. ONNX CategoryMapper-1."""
    if len(cats_int64s) != len(cats_strings):
        raise InvalidArgument(f"{len(cats_int64s)} cats_int64s and {len(cats_strings)} cats_strings; expected as many of each")
    if data.dtype.kind == "O":
        return _integers_and(cats_int64s, default_int64).take(looked_up(_categories(cats_strings, ()), data))
    return _strings_and(cats_strings, default_string).take(looked_up(_categories((), cats_int64s), data))


def _with_default(values: Array, default: object) -> Array:
    """Return values with the default behind them, at place -1."""
    last = np.empty(1, values.dtype)
    last[0] = default
    return np.concatenate([values, last])


@remembered
def _strings_and(values: Sequence[str], default: str) -> Array:
    return _with_default(_strings(values, (-1,)), default)


@remembered
def _integers_and(values: Sequence[int], default: int) -> Array:
    return _with_default(np.array(values, np.int64), default)


@remembered
def _positions_and(values: Sequence[str], default: int) -> Array:
    return _with_default(np.arange(len(values)), default)


@kernel("LabelEncoder", domain=_ML)
def label_encoder_1(
    _node: Call, data: Array, *, classes_strings: Sequence[str], default_int64: int = -1, default_string: str = "_Unused"
) -> Array:
    """Map class names to their positions, or positions to names; unknown ones to the default. ONNX LabelEncoder-1."""
    if data.dtype.kind == "O":
        return _positions_and(classes_strings, default_int64).take(looked_up(_categories(classes_strings, ()), data))
    places = np.where((data >= 0) & (data < len(classes_strings)), data, -1)
    return _strings_and(classes_strings, default_string).take(places)


@remembered
def _pairs(
    keys_strings: Sequence[str],
    keys_int64s: Sequence[int],
    keys_floats: Sequence[float],
    keys_tensor: Array | None,
    values_strings: Sequence[str],
    values_int64s: Sequence[int],
    values_floats: Sequence[float],
    values_tensor: Array | None,
    default_string: str,
    default_int64: int,
    default_float: float,
    default_tensor: Array | None,
) -> tuple[Table, Array]:
    """Return the table of keys, and the values with the default behind them."""
    keys = _one_array("keys", keys_strings, keys_int64s, keys_floats, keys_tensor)
    values = _one_array("values", values_strings, values_int64s, values_floats, values_tensor)
    if len(keys) != len(values):
        raise InvalidArgument(f"{len(keys)} keys and {len(values)} values; expected as many of each")
    default: object = {"O": default_string, "i": default_int64, "f": default_float}.get(values.dtype.kind, 0)
    if default_tensor is not None:
        default = default_tensor.reshape(-1)[0]
    return table_of(keys), _with_default(values, default)


def _one_array(what: str, strings: Sequence[str], integers: Sequence[int], floats: Sequence[float], tensor: Array | None) -> Array:
    given = [bool(strings), bool(integers), bool(floats), tensor is not None]
    if given.count(True) != 1:
        raise InvalidArgument(f"{given.count(True)} of the {what}_* attributes are set; expected exactly one")
    if tensor is not None:
        return tensor.reshape(-1)
    if strings:
        return _strings(strings, (-1,))
    return np.array(integers, np.int64) if integers else np.array(floats, np.float32)


@kernel("LabelEncoder", since=2, domain=_ML)
def label_encoder(
    _node: Call,
    data: Array,
    *,
    keys_strings: Sequence[str] = (),
    keys_int64s: Sequence[int] = (),
    keys_floats: Sequence[float] = (),
    keys_tensor: Array | None = None,
    values_strings: Sequence[str] = (),
    values_int64s: Sequence[int] = (),
    values_floats: Sequence[float] = (),
    values_tensor: Array | None = None,
    default_string: str = "_Unused",
    default_int64: int = -1,
    default_float: float = -0.0,
    default_tensor: Array | None = None,
) -> Array:
    """Map each element to the value beside its key, or to the default; NaN is a key, the last of equal keys counts.

    The output has data's shape and the values' type. ONNX LabelEncoder-2, -4 (tensors).
    """
    table, values = _pairs(
        *(keys_strings, keys_int64s, keys_floats, keys_tensor),
        *(values_strings, values_int64s, values_floats, values_tensor),
        *(default_string, default_int64, default_float, default_tensor),
    )
    if (data.dtype.kind == "O") != table.holds_strings:
        raise InvalidArgument(f"data has type {data.dtype}, the keys are {'strings' if table.holds_strings else 'numbers'}")
    return values.take(looked_up(table, data))


_CASTS = {"TO_FLOAT": np.float32, "TO_INT64": np.int64, "TO_STRING": object}
_PADDING = {"TO_FLOAT": 0.0, "TO_INT64": 0, "TO_STRING": "0.f"}


def _cast_value(value: OnnxValue, cast_to: str) -> object:
    if cast_to == "TO_STRING":
        return value if isinstance(value, str) else f"{float(value):f}"
    try:
        return float(value) if cast_to == "TO_FLOAT" else int(float(value) if not isinstance(value, str) else value)
    except (ValueError, OverflowError) as error:
        raise InvalidArgument(f"the value {value!r} cannot be read as {cast_to[3:].lower()}") from error


@kernel("CastMap", domain=_ML)
def cast_map(
    _node: Call, data: Mapping[int, object], *, cast_to: str = "TO_FLOAT", map_form: str = "DENSE", max_map: int = 1
) -> Array:
    """List a map's values in the order of their keys, or (SPARSE) at the places the keys name: (1, count or max_map).

    SPARSE drops keys from max_map on, as ONNX Runtime does, and fills gaps with 0. ONNX CastMap-1.
    """
    if cast_to not in _CASTS or map_form not in ("DENSE", "SPARSE"):
        raise InvalidArgument(f"cast_to={cast_to!r}, map_form={map_form!r}; expected one of {', '.join(_CASTS)}, DENSE or SPARSE")
    keys = sorted(data)
    if map_form == "DENSE":
        places = list(range(len(keys)))
    elif not keys or keys[0] >= 0:
        places, keys = [key for key in keys if key < max_map], [key for key in keys if key < max_map]
    else:
        raise InvalidArgument(f"the map has the key {keys[0]}; a sparse map has keys >= 0")
    length = len(keys) if map_form == "DENSE" else max_map
    check_output_size((1, max(length, 0)), 8)
    output = np.full((1, max(length, 0)), _PADDING[cast_to], _CASTS[cast_to])
    for place, key in zip(places, keys, strict=True):
        output[0, place] = _cast_value(data[key], cast_to)
    return output


@kernel("DictVectorizer", domain=_ML)
def dict_vectorizer(
    node: Call,
    data: Mapping[OnnxValue, OnnxValue],
    *,
    string_vocabulary: Sequence[str] = (),
    int64_vocabulary: Sequence[int] = (),
) -> Array:
    """Set the map's values at the places of their keys in the vocabulary, 0 (or "") elsewhere: (1, vocabulary).

    Keys outside the vocabulary are dropped, as in ONNX Runtime. ONNX DictVectorizer-1.
    """
    vocabulary: Sequence[object] = string_vocabulary or int64_vocabulary
    declared = node.output_types[0] if node.output_types else None
    dtype = declared.numpy if declared is not None else _value_type(data)
    output = np.full((1, len(vocabulary)), "" if dtype.kind == "O" else 0, dtype)
    for place, key in enumerate(vocabulary):
        if key in data:
            output[0, place] = data[key]
    return output


def _value_type(data: Mapping[OnnxValue, OnnxValue]) -> np.dtype[np.generic]:
    value = next(iter(data.values()), 0.0)
    if isinstance(value, np.float64):
        return np.dtype(np.float64)
    if isinstance(value, (int, np.integer)):
        return np.dtype(np.int64)
    return np.dtype(object) if isinstance(value, str) else np.dtype(np.float32)


@kernel("ZipMap", domain=_ML)
def zip_map(
    _node: Call, data: Array, *, classlabels_strings: Sequence[str] = (), classlabels_int64s: Sequence[int] = ()
) -> list[dict[int | str, float]]:
    """Turn each row of (N, C), or the one of (C,), into a map from label to score. ONNX ZipMap-1."""
    labels: tuple[int | str, ...] = tuple(classlabels_strings or classlabels_int64s)
    if data.ndim == 2 and data.shape[1] == len(labels) and 0 < len(labels) <= _MOST_DISPLAYED:
        return _map_maker(labels)(data.T.tolist())
    rows = data[None] if data.ndim == 1 else data
    if rows.ndim != 2 or rows.shape[1] != len(labels):
        raise InvalidArgument(f"data has shape {data.shape}; expected (N, {len(labels)}), one column for each label")
    return [dict(zip(labels, row, strict=True)) for row in rows.tolist()]


_MOST_DISPLAYED = 24
"""Labels beyond which a function that names each of them gains nothing."""


@functools.lru_cache(256)
def _map_maker(labels: tuple[int | str, ...]) -> Callable[[list[list[float]]], list[dict[int | str, float]]]:
    """Return a function from columns of scores, one for each label, to maps.

    It is made of text, as there is no other way to write a dict display of any length: dicts of displays have their final size
    at once, and take a third of the time of those that are filled.
    """
    keys, values = ([f"{letter}{place}" for place in range(len(labels))] for letter in "kv")
    items = ", ".join(f"{key}: {value}" for key, value in zip(keys, values, strict=True))
    text = f"lambda {', '.join(keys)}: lambda columns: [{{{items}}} for {', '.join(values)}, in zip(*columns)]"
    made: Callable[[list[list[float]]], list[dict[int | str, float]]] = eval(text, {"zip": zip})(*labels)
    return made
