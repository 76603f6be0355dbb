"""Checking and converting what a user feeds, and making results the user's own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sardonyx.cancellation import check_cancelled
from sardonyx.dtypes import Array, DataType, OnnxValue
from sardonyx.errors import InvalidArgument, describe
from sardonyx.forks import without_fork
from sardonyx.ir import MapType, OptionalType, SequenceType, Shape, SparseTensorType, TensorType, Value, ValueType
from sardonyx.ir.shape import Expr
from sardonyx.spelling import nearest
from sardonyx.values.dlpack import from_dlpack

if TYPE_CHECKING:
    from sardonyx.values.sparse_tensor import SparseTensor

__all__ = [
    "SharedSymbols",
    "check_feeds",
    "kept_names",
    "make_sparse",
    "own_results",
    "select_outputs",
    "unknown_output",
    "with_inner_values",
]

_BLOCK_ELEMENTS = 1 << 14
"""How many texts are looked at between two looks at flags and times."""


def check_feeds(
    inputs: Sequence[Value], defaults: Mapping[str, Array], feed: Mapping[str, OnnxValue], label: str
) -> list[OnnxValue]:
    """Return a value for each of `inputs`, in order.

    Arrays pass as they are; lists and numbers become arrays of the input's type where no value changes. What is fed to a tensor
    of strings becomes text. One element of any shape is a scalar. An optional may be left out.

    Raises:
        InvalidArgument: an input is missing, unknown, or of another type, rank or size than the model declares.
    """
    if type(feed) is not dict and not isinstance(feed, Mapping):
        raise InvalidArgument(
            f"model {label}: the feed must be a mapping of input names to values, got {type(feed).__name__}" + _advice(feed, inputs)
        )
    if len(feed) == len(inputs):  # as nearly every feed has all inputs, and nothing else, this must take no time
        for value in inputs:
            if value.name not in feed:
                break
        else:
            return [_checked(value, feed[value.name], label) for value in inputs]
    known = [value.name for value in inputs]
    needed = [value.name for value in inputs if value.name not in feed and not isinstance(value.type, OptionalType)]
    missing = [name for name in needed if name not in defaults]
    if missing:
        given: list[object] = sorted(feed, key=str)
        close = _hint(missing[0], [name for name in given if isinstance(name, str) and name not in known])
        raise InvalidArgument(f"model {label}: Required inputs ({missing}) are missing from input feed ({given}){close}")
    for name in feed:
        if name not in known:
            raise InvalidArgument(f"model {label}: there is no input {name!r}; its inputs are {known}{_hint(name, known)}")
    return [_checked(value, feed[value.name], label) if value.name in feed else defaults.get(value.name) for value in inputs]


def _advice(feed: object, inputs: Sequence[Value]) -> str:
    """Return how to write a feed that is none."""
    if hasattr(feed, "columns") and len(inputs) != 1:
        return "; of a table, feed {name: table[[name]] for name in table.columns}"
    return f"; write {{{inputs[0].name!r}: …}}" if len(inputs) == 1 else ""


def select_outputs(names: Sequence[str] | None, known: Sequence[str], label: str) -> list[int]:
    """Return the indices of the outputs called `names`, texts or bytes; all for None and what is empty.

    Raises:
        InvalidArgument: there is no output of a name.
        TypeError: the names are no collection, or one of them is no text.
    """
    given: object = names
    if given is None or (isinstance(given, (str, bytes, int, list, tuple)) and not given):
        return list(range(len(known)))
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise TypeError(f"model {label}: output names are given in a list, got {given!r:.100}")
    place = {name: index for index, name in reversed(list(enumerate(known)))}
    found = [_place_of(name, place, known, label) for name in given]
    return found or list(range(len(known)))


def kept_names(names: Sequence[str] | None) -> Sequence[str] | None:
    """Return names of outputs in a form that can be read more than once."""
    if names is None:
        return None
    given: object = names
    return list(given) if isinstance(given, Iterator) else names


def _place_of(given: object, place: Mapping[str, int], known: Sequence[str], label: str) -> int:
    name = given.decode(errors="replace") if isinstance(given, bytes) else given
    if not isinstance(name, str):
        raise TypeError(f"model {label}: output names are texts, got {name!r:.100}")
    if name not in place:
        raise InvalidArgument(f"model {label}: {unknown_output(name, known)}")
    return place[name]


def with_inner_values(names: object, outputs: frozenset[str]) -> Sequence[str]:
    """Return the names that a run asks for, where they are in a collection and one of them is no output; else none."""
    if (
        names is None
        or not isinstance(names, Collection)
        or isinstance(names, (str, bytes))
        or not all(isinstance(name, str) for name in names)
    ):
        return ()
    return () if outputs.issuperset(names) else tuple(names)


def unknown_output(name: object, known: Sequence[str]) -> str:
    """Return the message for a name that is none of the outputs `known`, with the one that is nearest."""
    return f"there is no output {name!r}; its outputs are {list(known)}{_hint(name, known)}"


def _hint(name: object, known: Sequence[str]) -> str:
    close = nearest(str(name), known, likeness=0.6)
    return f"; did you mean {close!r}?" if close else ""


class SharedSymbols:
    """The symbols that occur more than once in the shapes of a model's inputs."""

    def __init__(self, inputs: Sequence[Value]) -> None:
        """Find them."""
        self._inputs = inputs
        places: dict[str, list[tuple[int, int]]] = {}
        for index, value in enumerate(inputs):
            for axis, dim in enumerate(value.shape or ()):
                if isinstance(dim, Expr) and dim.name is not None:
                    places.setdefault(dim.name, []).append((index, axis))
        self._names = [name for name, group in places.items() if len(group) > 1]
        self._groups = [places[name] for name in self._names]

    @property
    def are_shared(self) -> bool:
        """Whether there is any."""
        return bool(self._groups)

    def hold(self, values: Sequence[OnnxValue]) -> bool:
        """Return whether a checked feed gives each of them one size."""
        for (first, axis), *others in self._groups:
            size = values[first].shape[axis]
            for index, other_axis in others:
                if values[index].shape[other_axis] != size:
                    return False
        return True

    def contradiction(self, values: Sequence[OnnxValue]) -> str | None:
        """Return, in words, which inputs of a checked feed give one of them two sizes; None where none do."""
        for name, ((first, axis), *others) in zip(self._names, self._groups, strict=True):
            for index, other_axis in others:
                size, other = values[first].shape[axis], values[index].shape[other_axis]
                if size != other:
                    inputs = f"{self._inputs[first].name!r} and {self._inputs[index].name!r}"
                    return f"inputs {inputs} give the dimension {name} two sizes, {size} and {other}"
        return None


def symbol_sizes(inputs: Sequence[Value], values: Sequence[OnnxValue]) -> dict[str, int]:
    """Return the sizes that a checked feed gives the symbols in the shapes of `inputs`; the first where it gives several."""
    found: dict[str, int] = {}
    for value, array in zip(inputs, values, strict=True):
        for dim, size in zip(value.shape or (), getattr(array, "shape", ()), strict=False):
            if isinstance(dim, Expr) and dim.name is not None:
                found.setdefault(dim.name, size)
    return found


def own_results(results: Sequence[OnnxValue], given: Iterable[OnnxValue]) -> list[OnnxValue]:
    """Make results that the user may keep and write to: dense, and sharing memory with nothing that was given or is constant.

    Args:
        results: what the plan returned.
        given: the values that were fed.
    """
    fed = list(given)
    taken = {id(_root(value)) for value in fed if isinstance(value, np.ndarray)}
    if _are_owned(results, taken):
        return list(results)
    if any(isinstance(value, (list, dict)) for value in fed):
        return [_own(value, taken) for value in results]
    return [value if _is_new_maps(value, taken) else _own(value, taken) for value in results]


def make_sparse(results: Sequence[OnnxValue], is_sparse: Sequence[bool]) -> list[OnnxValue]:
    """Return each result, and a SparseTensor of what differs from zero, by coordinates, for each that the model declares sparse."""
    return [
        _sparse_of(value) if chosen and isinstance(value, np.ndarray) else value
        for value, chosen in zip(results, is_sparse, strict=True)
    ]


def _sparse_of(dense: Array) -> SparseTensor:
    places = np.flatnonzero(dense != ("" if dense.dtype == object else 0))
    with without_fork():
        from sardonyx.values.sparse_tensor import SparseTensor  # which few models have

    return SparseTensor.sparse_coo_from_numpy(dense.shape, dense.reshape(-1)[places], places)


_OWN = 0x1 | 0x4 | 0x400
"""The flags of an array that is dense, owns its data and is writeable, as NumPy's C interface numbers them."""


def _are_owned(results: Sequence[OnnxValue], taken: set[int]) -> bool:
    """Return whether all results are the user's own as they are: what nearly every run makes, so it must take no time."""
    found = set(taken)
    for value in results:
        if type(value) is not np.ndarray or value.flags.num & _OWN != _OWN:
            return False
        found.add(id(value))
    return len(found) == len(results) + len(taken)


def _own(value: OnnxValue, taken: set[int]) -> OnnxValue:
    if isinstance(value, np.ndarray):
        if value.flags.num & _OWN == _OWN and id(value) not in taken:
            taken.add(id(value))
            return value
        root = _root(value)
        shared = id(root) in taken or not root.flags.owndata or not value.flags.writeable
        if shared or not value.flags.c_contiguous:
            value = value.copy(order="C")
            root = value
        taken.add(id(root))
        return value
    if isinstance(value, list):
        return [_own(item, taken) for item in value]
    if isinstance(value, dict):
        return {key: _own(item, taken) for key, item in value.items()}
    return value


def _is_new_maps(value: OnnxValue, taken: set[int]) -> bool:
    """Return whether a result is a list of maps to numbers or texts, all of one type, that is no other result too."""
    if not isinstance(value, list) or not value or not isinstance(value[0], dict) or id(value) in taken:
        return False
    taken.add(id(value))
    return isinstance(next(iter(value[0].values()), None), (float, int, str))


def _root(array: Array) -> Array:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _checked(value: Value, given: OnnxValue, label: str) -> OnnxValue:
    if type(given) is np.ndarray and _fits(value.type, given):
        return given
    return _convert(value.type, given, f"model {label}, input {value.name!r}")


def _fits(kind: ValueType | None, array: Array) -> bool:
    """Return whether an array is of a type as it is: what nearly every feed is, so it must take no time."""
    if type(kind) is not TensorType or kind.shape is None:
        return False
    wanted = kind.dtype.numpy
    if wanted.hasobject or (array.dtype is not wanted and array.dtype != wanted):
        return False
    return kind.allows(array.shape)


def _dense(given: OnnxValue) -> OnnxValue:
    with without_fork():
        from sardonyx.values.sparse_tensor import SparseTensor  # which few models have

    return given.to_dense() if isinstance(given, SparseTensor) else given


def _convert(kind: ValueType | None, given: OnnxValue, place: str) -> OnnxValue:
    if isinstance(kind, TensorType):
        return _tensor(kind, given, place)
    if isinstance(kind, SequenceType):
        if not isinstance(given, (list, tuple)):
            raise InvalidArgument(f"{place}: expected a list for {kind}, got {type(given).__name__}")
        return [_convert(kind.element, item, f"{place}[{index}]") for index, item in enumerate(given)]
    if isinstance(kind, OptionalType):
        return None if given is None else _convert(kind.element, given, place)
    if isinstance(kind, MapType):
        if not isinstance(given, Mapping):
            raise InvalidArgument(f"{place}: expected a dict for {kind}, got {type(given).__name__}")
        value = _one_element(kind.value)
        return _numbers(value, given) or {key: _convert(value, item, f"{place}[{key!r}]") for key, item in given.items()}
    if isinstance(kind, SparseTensorType):
        return _tensor(TensorType(kind.dtype, kind.shape), _dense(given), place)
    return np.asarray(given) if isinstance(given, (int, float, np.generic)) else given


def _one_element(kind: ValueType | None) -> ValueType | None:
    """Return the type of a map's values: converters declare scalars as tensors of one element."""
    return TensorType(kind.dtype, ()) if isinstance(kind, TensorType) and kind.shape == (1,) else kind


def _numbers(kind: ValueType | None, given: Mapping[OnnxValue, OnnxValue]) -> dict[OnnxValue, OnnxValue] | None:
    """Return a map of Python's numbers, converted together; None where it is another map, or one of them does not fit."""
    numbers = list(given.values())
    is_plain = set(map(type, numbers)) in ({float}, {int})
    if not is_plain or not isinstance(kind, TensorType) or kind.shape or kind.dtype is DataType.STRING:
        return None
    try:
        return dict(zip(given, _tensor(TensorType(kind.dtype, (len(numbers),)), numbers, ""), strict=True))
    except InvalidArgument:
        return None


def _tensor(kind: TensorType, given: OnnxValue, place: str) -> Array:
    array = np.asarray(given) if isinstance(given, np.ndarray) else _array(kind, given, place)  # of a matrix its plain array
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype != kind.dtype.numpy:
        array = _retyped(kind, array, _has_own_type(given), place)
    elif array.dtype.hasobject:
        array = _texts(array, place, takes_any=array is given)
    if kind.shape == () and array.size == 1:
        return array.reshape(())
    if kind.shape is not None and array.shape != kind.shape:
        _check_shape(kind, array, place)
    return array


def _array(kind: TensorType, given: OnnxValue, place: str) -> Array:
    numpy = getattr(given, "numpy", None)
    if callable(numpy):
        return _array_of(given, numpy, place)
    if given is None:
        raise InvalidArgument(f"{place}: expected {kind}, got None")
    try:
        array = np.asarray(given, dtype=object if kind.dtype is DataType.STRING else None)
        if array.ndim or not array.dtype.hasobject or kind.dtype is DataType.STRING:
            return array
        advice = "feed what its toarray() returns" if callable(getattr(given, "toarray", None)) else "feed an array or a list"
        raise InvalidArgument(f"{place}: expected {kind}, got a {type(given).__name__}, which is no array; {advice}")
    except (RuntimeError, TypeError, ValueError) as error:  # torch raises TypeError for elements of a list that it does not convert
        raise InvalidArgument(
            f"{place}: expected {kind}, got a {type(given).__name__} that is no array: {describe(error)}"
        ) from error


def _has_own_type(given: OnnxValue) -> bool:
    """Return whether what was given is a tensor, of whatever package, and not Python's numbers, whose type may be chosen."""
    return isinstance(given, np.ndarray) or callable(getattr(given, "numpy", None))


def _array_of(given: OnnxValue, numpy: Callable[[], OnnxValue], place: str) -> Array:
    """Return the array of a tensor with a method `numpy`: by that, or by DLPack for types that NumPy lacks.

    An OrtValue gives its own, as its `numpy` has bytes for numbers of float8.
    """
    with without_fork():
        from sardonyx.values.ort_value import OrtValue  # whoever has one has imported it
    if isinstance(given, OrtValue) and given.is_tensor():
        array: Array = given.value
        return array
    try:
        return np.asarray(numpy())
    except (RuntimeError, TypeError) as error:
        if not hasattr(given, "__dlpack__"):
            raise InvalidArgument(f"{place}: the {type(given).__name__} is no array: {describe(error)}") from error
    try:
        return from_dlpack(given)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise InvalidArgument(f"{place}: the {type(given).__name__} is no array: {describe(error)}") from error


def _retyped(kind: TensorType, array: Array, is_array: bool, place: str) -> Array:
    if kind.dtype is DataType.STRING and array.dtype.kind in "OUSTV" and array.dtype.names is None:
        return _texts(array, place)
    if not is_array and array.dtype.kind in "biuf" and kind.dtype is not DataType.STRING:
        return _cast_exactly(kind, array, place)
    raise InvalidArgument(f"{place}: expected {kind}, got {_type_of(array)} of shape {array.shape}; convert it with astype")


def _type_of(array: Array) -> str:
    """Return the type of an array's elements, for messages."""
    if array.dtype.hasobject and array.dtype.names is None:
        kinds = sorted({type(item).__name__ for item in array.ravel()[:1000].tolist()})
        return f"an array of objects ({', '.join(kinds) or 'none'})"
    try:
        return f"tensor({DataType.from_numpy(array.dtype)})"
    except KeyError:
        return f"an array of {array.dtype}"


def _texts(array: Array, place: str, *, takes_any: bool = False) -> Array:
    """Return elements of any type as texts; the array itself where they are texts.

    Collections are none unless `takes_any`: in a list they are a mistake, in an array of objects they were put on purpose.
    """
    if array.dtype.hasobject and all(set(map(type, block)) <= {str} for block in _blocks(array)):
        return array
    items = (item for block in _blocks(array) for item in block)
    nested = next((item for item in items if isinstance(item, (list, tuple, dict, set, np.ndarray))), None)
    if nested is not None and not takes_any:
        raise InvalidArgument(
            f"{place}: expected texts, got a {type(nested).__name__} as an element, {nested!r:.80}; lists in a list must have one "
            "length, as the rows of an array have"
        )
    try:
        texts = [item.decode("utf-8") if isinstance(item, bytes) else str(item) for block in _blocks(array) for item in block]
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"{place}: expected text or its UTF-8 bytes, got {error.object!r:.100}: {error.reason}") from error
    made = np.empty(len(texts), dtype=object)
    made[:] = texts
    return made.reshape(array.shape)


def _blocks(array: Array) -> Iterator[list[Any]]:
    """Yield the elements of an array, of which there may be very many; raises as `check_cancelled` between blocks."""
    flat = array.ravel()
    if flat.size <= _BLOCK_ELEMENTS:
        yield flat.tolist()
        return
    for start in range(0, flat.size, _BLOCK_ELEMENTS):
        check_cancelled()
        yield flat[start : start + _BLOCK_ELEMENTS].tolist()


def _cast_exactly(kind: TensorType, array: Array, place: str) -> Array:
    with np.errstate(all="ignore"):
        cast = array.astype(kind.dtype.numpy)
        exact = array.dtype.kind == "f" and kind.dtype.numpy.kind not in "biu"
        if exact or array.size == 0 or bool((np.real(cast).astype(array.dtype) == array).all()):
            return cast
    raise InvalidArgument(f"{place}: expected {kind}, got numbers that do not fit it: {array.ravel()[:5].tolist()}")


def _check_shape(kind: TensorType, array: Array, place: str) -> None:
    shape = kind.shape or ()
    if len(shape) != array.ndim:
        column = "; reshape(-1, 1) makes a column of it" if array.ndim == 1 and len(shape) == 2 and shape[1] == 1 else ""
        found = f"got rank {array.ndim}, shape {array.shape}{column}"
        raise InvalidArgument(f"{place}: expected rank {len(shape)}, shape {_declared(shape)}, {found}")
    for axis, (dim, size) in enumerate(zip(shape, array.shape, strict=True)):
        if isinstance(dim, Expr) or dim == size:
            continue
        raise InvalidArgument(
            f"{place}: expected shape {_declared(shape)}, got {array.shape}: axis {axis} must be {dim}, not {size}"
        )


def _declared(shape: Shape) -> str:
    return f"({', '.join('?' if str(dim).startswith('?') else str(dim) for dim in shape)})"
