"""Types, dimensions and tensor elements in the IR text form, printed and parsed side by side.

    float[batch, 3, 2*width + 1]   float[]   float   seq(int64[?])   optional(float)   map(string, float[])
    sparse_tensor(float[3])

A type without brackets has unknown rank. `?` is a dimension about which nothing is known; where one such dimension occurs
several times it has a tag, `?1`. Elements are nested lists or one flat list; `...` stands for zeros, `... 7` for normally
distributed numbers seeded with 7.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sardonyx.config import LIMITS
from sardonyx.dtypes import Array, DataType, is_float
from sardonyx.ir.shape import FUNCTIONS, Dim, Expr, Shape, anonymous, substitute, symbol, symbols_in
from sardonyx.ir.tensor import Tensor
from sardonyx.ir.text_tokens import Token, Tokens, quoted, spelled
from sardonyx.ir.types import MapType, OptionalType, SequenceType, SparseTensorType, TensorType, ValueType

__all__ = ["parse_elements", "parse_number", "parse_type", "print_dim", "print_elements", "print_float", "print_type"]


def print_type(type: ValueType, tags: Mapping[str, str]) -> str:
    """Return `type` as text; `tags` gives the text of anonymous symbols that occur more than once."""
    if isinstance(type, TensorType):
        return f"{type.dtype}{_print_shape(type.shape, tags)}"
    if isinstance(type, SparseTensorType):
        return f"sparse_tensor({type.dtype}{_print_shape(type.shape, tags)})"
    if isinstance(type, MapType):
        return f"map({type.key}, {_print_inner(type.value, tags)})" if type.value is not None else f"map({type.key})"
    name = "seq" if isinstance(type, SequenceType) else "optional"
    return f"{name}({_print_inner(type.element, tags)})"


def _print_inner(type: ValueType | None, tags: Mapping[str, str]) -> str:
    return "" if type is None else print_type(type, tags)


def _print_shape(shape: Shape | None, tags: Mapping[str, str]) -> str:
    return "" if shape is None else f"[{', '.join(print_dim(dim, tags) for dim in shape)}]"


def print_dim(dim: Dim, tags: Mapping[str, str]) -> str:
    """Return `dim` as text; each symbol whose name is no identifier is quoted."""
    if not isinstance(dim, Expr):
        return str(dim)
    texts = {name: tags.get(name, "?") if name.startswith("?") else spelled(name) for name in symbols_in(dim)}
    if dim.name is not None:
        return texts[dim.name]
    return str(substitute(dim, {name: symbol(text) for name, text in texts.items() if text != name}))


def parse_type(tokens: Tokens, tagged: dict[str, Dim]) -> ValueType:
    """Read a type; `tagged` holds the anonymous dimensions met so far by their tags and is added to."""
    text, begin = tokens.bracketed(), tokens.count_read
    found = tokens.known.get(text) if text else None
    if found is not None:
        known: ValueType = found[0]
        tokens.skip(found[1])
        return known
    made = _parse_type(tokens, tagged)
    if text:
        tokens.known[text] = made, tokens.count_read - begin
    return made


def _parse_type(tokens: Tokens, tagged: dict[str, Dim]) -> ValueType:
    token = tokens.read_kind("name", "a type such as float[batch, 3]")
    if token.text == "map":
        return _parse_map(tokens, tagged)
    wrapper = _WRAPPERS.get(token.text)
    if wrapper is not None:
        tokens.expect("(")
        inner = None if tokens.at(")") else parse_type(tokens, tagged)
        tokens.expect(")")
        return wrapper(inner)
    if token.text == "sparse_tensor":
        tokens.expect("(")
        start = tokens.peek()
        dense = parse_type(tokens, tagged)
        if not isinstance(dense, TensorType):
            tokens.fail("a tensor type inside sparse_tensor(...)", start)
        tokens.expect(")")
        return SparseTensorType(dense.dtype, dense.shape)
    return TensorType(_dtype(tokens, token), _parse_shape(tokens, tagged) if tokens.at("[") else None)


_WRAPPERS: dict[str, Callable[[ValueType | None], ValueType]] = {"seq": SequenceType, "optional": OptionalType}


def _parse_map(tokens: Tokens, tagged: dict[str, Dim]) -> MapType:
    tokens.expect("(")
    key = _dtype(tokens, tokens.read_kind("name", "the type of the map's keys"))
    value = parse_type(tokens, tagged) if tokens.accept(",") else None
    tokens.expect(")")
    return MapType(key, value)


def _dtype(tokens: Tokens, token: Token) -> DataType:
    try:
        return DataType.parse(token.text)
    except KeyError:
        tokens.fail(f"an element type ({', '.join(map(str, list(DataType)[1:]))}), seq, optional, map or sparse_tensor", token)


def _parse_shape(tokens: Tokens, tagged: dict[str, Dim]) -> Shape:
    tokens.expect("[")
    dims: list[Dim] = []
    while not tokens.at("]"):
        dims.append(_parse_sum(tokens, tagged))
        if not tokens.at("]"):
            tokens.expect(",", "or ']' after a dimension")
    tokens.expect("]")
    return tuple(dims)


def _parse_sum(tokens: Tokens, tagged: dict[str, Dim]) -> Dim:
    total: Dim = -_parse_product(tokens, tagged) if tokens.accept("-") else _parse_product(tokens, tagged)
    while tokens.at("+", "-"):
        negative = tokens.read().text == "-"
        term = _parse_product(tokens, tagged)
        total = total - term if negative else total + term
    return total


def _parse_product(tokens: Tokens, tagged: dict[str, Dim]) -> Dim:
    total = _parse_power(tokens, tagged)
    while tokens.accept("*"):
        total = total * _parse_power(tokens, tagged)
    return total


def _parse_power(tokens: Tokens, tagged: dict[str, Dim]) -> Dim:
    base = _parse_atom(tokens, tagged)
    if not tokens.accept("^"):
        return base
    result: Dim = 1
    for _ in range(min(int(tokens.read_kind("int", "an exponent").text), LIMITS.rank)):
        result = result * base
    return result


def _parse_atom(tokens: Tokens, tagged: dict[str, Dim]) -> Dim:
    token = tokens.read_kind("int name string anonymous mark", "a dimension: a number, a symbol or ?")
    if token.kind == "int":
        return int(token.text)
    if token.kind == "anonymous":
        return anonymous() if token.text == "?" else tagged.setdefault(token.text, anonymous())
    if token.kind == "mark":
        if token.text != "(":
            tokens.fail("a dimension: a number, a symbol or ?", token)
        inner = _parse_sum(tokens, tagged)
        tokens.expect(")")
        return inner
    function = FUNCTIONS.get(token.text) if token.kind == "name" and tokens.at("(") else None
    if function is None:
        return symbol(token.text)
    tokens.expect("(")
    left = _parse_sum(tokens, tagged)
    tokens.expect(",")
    right = _parse_sum(tokens, tagged)
    tokens.expect(")")
    return function(left, right)


def print_float(value: float) -> str:
    """Return a float as the fewest digits that give it back, at float32 where it is one; always recognisable as no integer."""
    with np.errstate(over="ignore"):
        single = np.float32(value)
    text = str(single) if float(single) == value else repr(float(value))
    return text if any(mark in text for mark in ".enf") else f"{text}.0"


def print_elements(tensor: Tensor, limit: int | None) -> str:
    """Return the elements as nested lists, or `...` where there are more than `limit`."""
    if limit is not None and tensor.size > limit:
        return "..."
    return _print_nested(tensor.numpy(), _element_printer(tensor.dtype))


def _print_nested(array: Array, element: Callable[[object], str]) -> str:
    if array.ndim == 0:
        return element(array[()])
    return f"[{', '.join(_print_nested(part, element) for part in array[...])}]" if array.ndim > 1 else _print_row(array, element)


def _print_row(array: Array, element: Callable[[object], str]) -> str:
    return f"[{', '.join(element(item) for item in array)}]"


def _element_printer(dtype: DataType) -> Callable[[Any], str]:
    if dtype is DataType.STRING:
        return lambda item: quoted(str(item))
    if dtype is DataType.BOOL:
        return lambda item: "true" if item else "false"
    if dtype in (DataType.COMPLEX64, DataType.COMPLEX128):
        return lambda item: f"({float(item.real)!r}, {float(item.imag)!r})"
    if is_float(dtype):
        return _print_float_element
    return lambda item: str(int(item))


def _print_float_element(item: Any) -> str:
    short, value = str(item), float(item)
    exact = value != value or float(type(item)(float(short))) == value
    return short if exact and any(mark in short for mark in ".enf") else repr(value)


def parse_elements(tokens: Tokens, type: ValueType, name: str = "") -> Tensor:
    """Read the elements of a tensor of `type`, whose shape must be numbers, from nested or flat lists, or `...` with a seed."""
    start = tokens.peek()
    if not isinstance(type, TensorType) or type.shape is None or any(isinstance(dim, Expr) for dim in type.shape):
        tokens.refuse(f"a constant needs a tensor type whose dimensions are numbers, such as float[2, 3], found {type!r}", start)
    shape = tuple(int(dim) for dim in type.shape if not isinstance(dim, Expr))
    if tokens.accept("..."):
        seed = int(tokens.read().text) if tokens.peek().kind == "int" else None
        return Tensor(type.dtype, shape, lambda: _placeholder(type.dtype, shape, seed), name)
    items: list[str | bool | float | complex] = []
    _read_items(tokens, items)
    if len(items) != math.prod(shape):
        tokens.refuse(f"expected {math.prod(shape)} elements for {type.dtype}{list(shape)}, found {len(items)}", start)
    array = np.empty(len(items), object)
    array[:] = items
    try:
        return Tensor.from_array(array.astype(type.dtype.numpy).reshape(shape), name)
    except (TypeError, ValueError, OverflowError) as error:
        tokens.refuse(f"expected elements of type {type.dtype}: {error}", start)


def _placeholder(dtype: DataType, shape: tuple[int, ...], seed: int | None) -> Array:
    if seed is None:
        return np.full(shape, "" if dtype is DataType.STRING else 0, dtype.numpy)
    return np.asarray(np.random.default_rng(seed).standard_normal(shape)).astype(dtype.numpy)


def _read_items(tokens: Tokens, items: list[str | bool | float | complex]) -> None:
    if not tokens.accept("["):
        items.append(_read_item(tokens))
        return
    while not tokens.at("]"):
        _read_items(tokens, items)
        if not tokens.at("]"):
            tokens.expect(",", "or ']' after an element")
    tokens.expect("]")


def _read_item(tokens: Tokens) -> str | bool | float | complex:
    if tokens.peek().kind == "string":
        return tokens.read().text
    if tokens.at("true", "false"):
        return tokens.read().text == "true"
    if tokens.accept("("):
        real = parse_number(tokens)
        tokens.expect(",")
        imaginary = parse_number(tokens)
        tokens.expect(")")
        return complex(real, imaginary)
    return parse_number(tokens)


def parse_number(tokens: Tokens) -> int | float:
    """Read an integer, or a float, which has a point, an exponent, or is `nan` or `inf`."""
    negative = tokens.accept("-")
    token = tokens.peek()
    if token.kind == "int":
        value: int | float = int(tokens.read().text)
    elif token.kind == "float" or tokens.at("nan", "inf"):
        value = float(tokens.read().text)
    else:
        tokens.fail("a number")
    return -value if negative else value
