"""Strings."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.dtypes import DataType
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor
from sardonyx.ops.shapes.broadcast import broadcast

__all__: list[str] = []


@shape_function("StringConcat")
def string_concat(call: ShapeCall, left: Fact, right: Fact) -> Fact:
    """Broadcast the inputs."""
    return tensor(DataType.STRING, broadcast((left.shape, right.shape)))


@shape_function("RegexFullMatch")
def regex_full_match(call: ShapeCall, x: Fact) -> Fact:
    """Return a bool for each string."""
    return tensor(DataType.BOOL, x.shape)


@shape_function("StringSplit")
def string_split(call: ShapeCall, x: Fact) -> tuple[Fact, ...]:
    """Return a new last axis as long as the most parts, and the number of parts of each string."""
    return tensor(DataType.STRING, None if x.shape is None else (*x.shape, anonymous())), tensor(DataType.INT64, x.shape)


@shape_function("StringNormalizer")
def string_normalizer(call: ShapeCall, x: Fact, *, stopwords: Sequence[str] = ()) -> Fact:
    """Infer (C) or (1, C) -> the same, without the stop words in it."""
    if x.shape is None or not stopwords:
        return tensor(DataType.STRING, x.shape)
    return tensor(DataType.STRING, (*x.shape[:-1], anonymous()))


@shape_function("TfIdfVectorizer")
def tf_idf_vectorizer(call: ShapeCall, x: Fact, *, ngram_indexes: Sequence[int] = ()) -> Fact:
    """Infer (C) or (N, C) -> as many columns as the largest index asks for."""
    columns = max(ngram_indexes, default=-1) + 1
    return tensor(DataType.FLOAT, None if x.shape is None else (*x.shape[:-1], columns))
