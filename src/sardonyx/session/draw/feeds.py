"""Random feeds for the inputs of a model: arrays of sizes that fit together, of elements that its operators take."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.config import LIMITS
from sardonyx.dtypes import Array, DataType, OnnxValue, is_float, is_signed
from sardonyx.errors import InvalidArgument
from sardonyx.formats import models
from sardonyx.ir import Dim, Expr, MapType, Model, OptionalType, SequenceType, TensorType, Value, ValueType
from sardonyx.ir.shape import substitute, symbols_in
from sardonyx.session.draw.elements import Elements, elements_of
from sardonyx.session.draw.sizes import shape_of, solve_sizes
from sardonyx.session.inference_session import InferenceSession

__all__ = ["Range", "random_feeds"]

Range = tuple[float, float]
"""The least and the greatest value of an input."""

_COMPLEX = (DataType.COMPLEX64, DataType.COMPLEX128)
_BYTES = (DataType.UINT8, DataType.INT8)
_LARGE = 1 << 30
"""An end of a slice that is beyond every tensor's."""
_ITEMS = 2
"""How many elements a sequence gets, and a map whose keys are not known."""


def random_feeds(
    session_or_model: InferenceSession | Model | Any,
    *,
    dims: Mapping[str, int] | None = None,
    ranges: Mapping[str, Range] | None = None,
    seed: int = 0,
    given: Mapping[str, OnnxValue] | None = None,
) -> dict[str, OnnxValue]:
    """Return values for the inputs that a run needs, such that the model accepts them; the same for the same seed.

    Symbolic dimensions get the sizes that the model's operators imply of one another (total = past + new), else 1, or, where a
    model is too small with 1, a usual size. Integers that index rows of a tensor are drawn among its rows, masks
    are 1, texts come from the vocabularies of the model's encoders; floats are normally distributed.

    Args:
        session_or_model: a session that was made of a path or of bytes that it keeps, or what a session is made of.
        dims: name of a symbolic dimension, or INPUT:AXIS for one without name -> its size.
        ranges: input -> the least and greatest value.
        seed: of the random numbers.
        given: values of some inputs, which also say what their symbolic dimensions are.

    Raises:
        InvalidArgument: a name in `dims`, `ranges` or `given` is none of the model's; a range is empty; an input is of a type
            that cannot be drawn; or the session keeps no model.
    """
    model, inputs = _model_and_inputs(session_or_model)
    known = {} if given is None else given
    _check_names("input", [*(ranges or {}), *known], [value.name for value in inputs])
    fixed = _sizes_of_given(inputs, known) | _fixed_sizes(inputs, dims or {})
    sizes, facts = solve_sizes(model, inputs, fixed)
    rng = np.random.default_rng(seed)
    feed = dict(known)
    for value in inputs:
        if value.name in feed:
            continue
        interval = None if ranges is None else ranges.get(value.name)
        draw = _Draw(rng, value.name, elements_of(model, value, facts), _checked_range(value.name, interval))
        drawn = draw.value(_concrete(value.type, sizes))
        if drawn is not None:
            feed[value.name] = drawn
    return feed


def _model_and_inputs(given: InferenceSession | Model | Any) -> tuple[Model, list[Value]]:
    if not isinstance(given, InferenceSession):
        model = given if isinstance(given, Model) else models.load(given)
        return model, [value for value in model.graph.inputs if value.name not in model.graph.initializers]
    source = given._model_path or given._model_bytes
    if source is None:
        raise InvalidArgument(
            "the session keeps no model to read sizes and indices from; make it of a path, or give the model here"
        )
    model = models.load(source)
    by_name = {argument.name: argument for argument in given.get_inputs()}
    inputs = [value for value in model.graph.inputs if value.name in by_name]
    for value in inputs:
        _fix_as_session(value, by_name[value.name].shape)
    return model, inputs


def _fix_as_session(value: Value, shape: Sequence[int | str | None]) -> None:
    """Give an input's dimensions the sizes that a session's options fixed."""
    if isinstance(value.type, TensorType) and value.type.shape is not None and len(value.type.shape) == len(shape):
        dims: tuple[Dim, ...] = tuple(
            new if isinstance(new, int) else old for old, new in zip(value.type.shape, shape, strict=True)
        )
        value.type = TensorType(value.type.dtype, dims)


def _check_names(what: str, names: Iterable[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known) or 'none'}"
            raise InvalidArgument(f"the model has no {what} {name!r}; {hint}")


def _fixed_sizes(inputs: Sequence[Value], dims: Mapping[str, int]) -> dict[str, int]:
    """Return symbol -> size for the dimensions that are named."""
    places = {f"{value.name}:{axis}": dim for value in inputs for axis, dim in enumerate(shape_of(value.type) or ())}
    symbols = {name for dim in places.values() for name in symbols_in(dim)}
    open_places = [place for place, dim in places.items() if isinstance(dim, Expr)]
    visible = [name for name in sorted(symbols) if not name.startswith("?")]
    _check_names("symbolic dimension", (name for name in dims if name not in symbols), [*visible, *open_places])
    found = {}
    for name, size in dims.items():
        dim = places.get(name)
        found[name if name in symbols or not isinstance(dim, Expr) else dim.name or name] = size
    return found


def _sizes_of_given(inputs: Sequence[Value], given: Mapping[str, OnnxValue]) -> dict[str, int]:
    found: dict[str, int] = {}
    for value in inputs:
        array, shape = given.get(value.name), shape_of(value.type)
        if isinstance(array, np.ndarray) and shape is not None and len(shape) == array.ndim:
            found |= {dim.name: size for dim, size in zip(shape, array.shape, strict=True) if isinstance(dim, Expr) and dim.name}
    return found


def _checked_range(name: str, interval: Range | None) -> Range | None:
    if interval is not None and not interval[0] <= interval[1]:
        raise InvalidArgument(f"the range of input {name!r} is empty: {interval[0]} is greater than {interval[1]}")
    return interval


def _concrete(kind: ValueType | None, sizes: Mapping[str, Dim]) -> ValueType | None:
    if isinstance(kind, TensorType):
        return TensorType(kind.dtype, tuple(substitute(dim, sizes) for dim in kind.shape or ()))
    if isinstance(kind, SequenceType):
        return SequenceType(_concrete(kind.element, sizes))
    return OptionalType(_concrete(kind.element, sizes)) if isinstance(kind, OptionalType) else kind


class _Draw:
    """Draws one input."""

    def __init__(self, rng: np.random.Generator, name: str, elements: Elements, interval: Range | None) -> None:
        self._rng, self._name, self._elements, self._interval = rng, name, elements, interval

    def value(self, kind: ValueType | None) -> OnnxValue:
        """Return a value of a type whose dimensions are numbers; None for an optional that is left out."""
        if isinstance(kind, TensorType):
            return self._array(kind.dtype, [dim if isinstance(dim, int) else 1 for dim in kind.shape or ()])
        if isinstance(kind, SequenceType):
            return [self.value(kind.element) for _ in range(_ITEMS)]
        if isinstance(kind, OptionalType):
            return None if kind.element is None else self.value(kind.element)
        if isinstance(kind, MapType):
            keys = self._elements.vocabulary or tuple(str(key) if kind.key is DataType.STRING else key for key in range(_ITEMS))
            return {key: self.value(kind.value).reshape(())[()] for key in keys}
        raise InvalidArgument(f"input {self._name!r} is a {kind or 'value of unknown type'}, which cannot be drawn; feed it")

    def _array(self, dtype: DataType, shape: list[int]) -> Array:
        size_bytes = math.prod(shape) * np.dtype(np.float64).itemsize
        if size_bytes > LIMITS.tensor_bytes:
            raise InvalidArgument(
                f"input {self._name!r} of shape {shape} takes {size_bytes} bytes while it is drawn, beyond the limit of "
                f"{LIMITS.tensor_bytes}: give smaller dimensions, feed it, or raise SARDONYX_MAX_TENSOR_BYTES"
            )
        if self._elements.vocabulary and (dtype is DataType.STRING) == isinstance(self._elements.vocabulary[0], str):
            return self._rng.choice(np.array(self._elements.vocabulary, dtype.numpy), shape)
        if dtype is DataType.STRING:
            return np.full(shape, "text", dtype=object)
        if self._elements.distinct:
            return (self._elements.low or 0) + np.arange(int(np.prod(shape))).reshape(shape).astype(dtype.numpy)
        if is_float(dtype) or dtype in _COMPLEX:
            return self._floats(shape).astype(dtype.numpy)
        low, high = self._bounds(dtype)
        return self._rng.integers(low, high, shape, dtype=np.int64, endpoint=True).astype(dtype.numpy)

    def _floats(self, shape: list[int]) -> Array:
        if self._interval is not None:
            return np.asarray(self._rng.uniform(*self._interval, shape))
        if self._is_mask:
            return np.ones(shape)
        if self._elements.low is not None:
            return np.asarray(
                self._rng.integers(self._elements.low, self._elements.high or self._elements.low, shape, endpoint=True)
            )
        return np.asarray(self._rng.standard_normal(shape))

    def _bounds(self, dtype: DataType) -> tuple[int, int]:
        if self._interval is not None:
            return int(np.ceil(self._interval[0])), int(np.floor(self._interval[1]))
        low, high = self._elements.low, self._elements.high
        if low is not None or high is not None:
            return (low if low is not None else min(0, high or 0)), (high if high is not None else max(_LARGE, low or 0))
        if self._is_mask:
            return 1, 1
        if dtype in _BYTES:
            return (-128, 127) if is_signed(dtype) else (0, 255)
        return 0, 1

    @property
    def _is_mask(self) -> bool:
        return "mask" in self._name.lower()
