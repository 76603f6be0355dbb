"""Write what takes, joins and encodes columns of features (ai.onnx.ml) as operators of ai.onnx.

    ArrayFeatureExtractor(x, places)      ->      Slice or Gather along the last axis
    FeatureVectorizer(a, b, …)            ->      Concat(Cast(a), Cast(b), …), each cut or padded to its width
    OneHotEncoder(x)                      ->      Cast(Unsqueeze(x) == categories), OneHotEncoder(Cast(x)) where zeros=0

Left alone:
    strings
    places that are constant and outside the axis, and widths and categories that do not fit, which the reference provider refuses
    an encoder of int64 that refuses unknown elements, and one without a category of integers, or with one twice
    inputs of unknown rank
    inputs of a vectorizer whose numbers of rows may differ
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Value
from sardonyx.optimize.helpers.ml_scores import ML, NUMBERS, Maker, ml
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_ARRAY_FEATURE_EXTRACTOR", "EXPAND_FEATURE_VECTORIZER", "EXPAND_ONE_HOT_ENCODER"]

_MOST_PLACES = 1 << 20
_NEVER_NEGATIVE = ("ArgMax", "ArgMin", "TopK")
"""Operators whose int64 results are places."""


def _extractor_pattern(op: PatternBuilder, x: Term, places: Term) -> Term:
    return op.ArrayFeatureExtractor(x, places, _domain=ML)


def _check_extractor(match: Match) -> str | None:
    x, places = match["x"], match["places"]
    if x.dtype not in NUMBERS or not x.shape or places.shape is None or places.dtype is not DataType.INT64:
        return f"data of type {x.dtype} and shape {x.shape}, places of type {places.dtype}"
    if match.tensor("places") is None:
        return None
    numbers = match.constant("places", _MOST_PLACES)
    if numbers is None or not numbers.size or numbers.min() < 0:
        return "no places, or negative ones, or too many of them"
    last = x.shape[-1]
    return f"a place outside an axis of {last}" if isinstance(last, int) and numbers.max() >= last else None


def _replace_extractor(op: Builder, match: Match, learned: None) -> Value:
    make, x = Maker(op), match["x"]
    taken = _taken(make, match, x)
    return make("Unsqueeze", taken, np.array([0], np.int64)) if x.shape is not None and len(x.shape) == 1 else taken


def _taken(make: Maker, match: Match, x: Value) -> Value:
    numbers = match.constant("places", _MOST_PLACES)
    if numbers is None:
        return make("Gather", x, _flat_places(make, match["places"]), axis=-1)
    flat = numbers.reshape(-1)
    if x.shape is not None and isinstance(x.shape[-1], int) and np.array_equal(flat, np.arange(flat[0], flat[0] + flat.size)):
        ends = [np.array([number], np.int64) for number in (flat[0], flat[0] + flat.size, -1)]
        return make("Slice", x, *ends)
    return make("Gather", x, flat, axis=-1)


def _flat_places(make: Maker, places: Value) -> Value:
    """Return computed places as one dimension, negative ones as a place that no axis has: Gather would count them from the end."""
    flat = places if places.shape is not None and len(places.shape) == 1 else make.reshape(places, -1)
    if places.producer is not None and places.producer.op_type in _NEVER_NEGATIVE and places.producer.domain == "":
        return flat
    return make("Where", make("Less", flat, np.int64(0)), np.int64(np.iinfo(np.int64).max), flat)


def _vectorizer_pattern(op: PatternBuilder) -> Term:
    return op.FeatureVectorizer(op.rest("parts"), _domain=ML)


def _check_vectorizer(match: Match) -> str | None:
    parts, widths = match.rest("parts"), match.root.integers("inputdimensions", ())
    if len(widths) not in (0, len(parts)) or not parts or any(width < 0 for width in widths):
        return f"{len(parts)} inputs, widths {widths}"
    if any(part is None or part.dtype not in NUMBERS or part.shape is None for part in parts):
        return "inputs of other types, or of unknown rank"
    if len({part.shape[0] for part in parts if part is not None and part.shape is not None and len(part.shape) > 1}) > 1:
        return "inputs whose numbers of rows may differ"
    return "columns of unknown number" if widths and any(_width(part) is None for part in parts) else None


def _width(part: Value | None) -> int | None:
    """Return how many columns an input makes, if it is known."""
    dims = () if part is None or part.shape is None else part.shape[-1:] if len(part.shape) < 2 else part.shape[1:]
    width = 1
    for dim in dims:
        if not isinstance(dim, int):
            return None
        width *= dim
    return width


def _replace_vectorizer(op: Builder, match: Match, learned: None) -> Value:
    make, widths = Maker(op), match.root.integers("inputdimensions", ())
    columns = [_columns(make, part) for part in match.rest("parts") if part is not None]
    fitted = [_fitted(make, column, width) for column, width in zip(columns, widths, strict=True)] if widths else columns
    return make("Concat", *fitted, axis=1)


def _columns(make: Maker, part: Value) -> Value:
    shape = part.shape or ()
    rows = make.reshape(part, 1, -1) if len(shape) < 2 else part if len(shape) == 2 else make("Flatten", part, axis=1)
    return make.cast(rows, DataType.FLOAT)


def _fitted(make: Maker, columns: Value, width: int) -> Value:
    """Return columns cut to a width, or with zeros behind."""
    have = _width(columns)
    if have is not None and have < width:
        return make("Pad", columns, np.array([0, 0, 0, width - have], np.int64))
    if have == width:
        return columns
    return make("Slice", columns, *(np.array([number], np.int64) for number in (0, width, 1)))


def _encoder_pattern(op: PatternBuilder, x: Term) -> Term:
    return op.OneHotEncoder(x, _domain=ML)


def _check_encoder(match: Match) -> str | None:
    node, x = match.root, match["x"]
    categories = node.integers("cats_int64s", ())
    if x.dtype not in NUMBERS or x.shape is None or node.texts("cats_strings", ()):
        return f"data of type {x.dtype} and shape {x.shape}"
    if not node.integer("zeros", 1):
        return "unknown elements are refused" if x.dtype is DataType.INT64 else None
    return None if categories and len(set(categories)) == len(categories) else "no categories, or one of them twice"


def _replace_encoder(op: Builder, match: Match, learned: None) -> Value:
    make = Maker(op)
    integers = make.cast(match["x"], DataType.INT64)
    if not match.root.integer("zeros", 1):
        return op.OneHotEncoder(integers, _domain=ML, _attributes=match.root.attributes)
    column = make("Unsqueeze", integers, np.array([-1], np.int64))
    equal = make("Equal", column, np.array(match.root.integers("cats_int64s", ()), np.int64))
    return make.cast(equal, DataType.FLOAT)


EXPAND_ARRAY_FEATURE_EXTRACTOR = Rule(
    "expand_array_feature_extractor",
    _extractor_pattern,
    _replace_extractor,
    _check_extractor,
    takes_apart=ml("ArrayFeatureExtractor"),
    summary="Write ArrayFeatureExtractor of ai.onnx.ml as Slice or Gather.",
)
EXPAND_FEATURE_VECTORIZER = Rule(
    "expand_feature_vectorizer",
    _vectorizer_pattern,
    _replace_vectorizer,
    _check_vectorizer,
    takes_apart=ml("FeatureVectorizer"),
    summary="Write FeatureVectorizer of ai.onnx.ml as a concatenation of floats.",
)
EXPAND_ONE_HOT_ENCODER = Rule(
    "expand_one_hot_encoder",
    _encoder_pattern,
    _replace_encoder,
    _check_encoder,
    takes_apart=ml("OneHotEncoder"),
    summary="Write OneHotEncoder of ai.onnx.ml as a comparison with its categories.",
)
