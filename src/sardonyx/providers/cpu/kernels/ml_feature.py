"""Numbers that are looked up: LabelEncoder from numbers to numbers, and OneHotEncoder where it refuses unknown ones (ai.onnx.ml).

Other preparations of features are element-wise, and rewritten so (`optimize/rules/ml/`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.expr import OPERATORS, ElementExpr, argument
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.row_expr import fold_row
from sardonyx.codegen.emit.types import F32, F64, Type
from sardonyx.codegen.kernels.lookup import LookupParams, write_encoder, write_lookup
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Node, Tensor
from sardonyx.ir.shape import product
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.expressions import element_type
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.rows import RowsSpec, joins_rows, rows
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import STATUS
from sardonyx.providers.cpu.strided import moved_type

_ML = "ai.onnx.ml"
_KEYS = (DataType.FLOAT, DataType.DOUBLE, DataType.INT64, DataType.INT32)


@dataclasses.dataclass(frozen=True, slots=True)
class LookupSpec:
    """Numbers that are looked up."""

    key: Type
    """The type of the keys."""
    element: Type
    """The type as which values are moved."""
    keys: Array
    """The keys in ascending order, without NaN."""
    values: Array
    """Their values, then those of other numbers and of NaN."""


def _column(node: Node, side: str) -> Array | None:
    """Return the keys or values of a LabelEncoder, which has them in one attribute; None for text, and for none or several."""
    integers, floats = node.integers(f"{side}_int64s", ()), node.numbers(f"{side}_floats", ())
    given_tensor = node.attributes.get(f"{side}_tensor")
    tensor = None if given_tensor is None else given_tensor.value
    if [bool(integers), bool(floats), tensor is not None, f"{side}_strings" in node.attributes].count(True) != 1:
        return None
    if isinstance(tensor, Tensor):
        return None if tensor.dtype is DataType.STRING else tensor.numpy().reshape(-1)
    if not integers and not floats:
        return None
    return np.array(integers, np.int64) if integers else np.array(floats, np.float32)


def _default(node: Node, dtype: np.dtype[np.generic]) -> Array | None:
    """Return what other numbers become, (1,), for values of a type; None where that is no number of the type."""
    attribute = node.attributes.get("default_tensor")
    if attribute is not None and isinstance(attribute.value, Tensor):
        given_default = attribute.value.numpy().reshape(-1)[:1]
    else:
        number = node.integer("default_int64", -1) if dtype.kind == "i" else node.number("default_float", -0.0)
        given_default = np.array([number if dtype.kind in "if" else 0])
    if given_default.dtype.kind not in "iuf" or not given_default.size:
        return None
    with np.errstate(all="ignore"):
        default = given_default.astype(dtype)
    return default if dtype.kind == "f" or default == given_default else None


def claim_label_encoder(node: Node) -> LookupSpec | str:
    """Return what a LabelEncoder looks up, or why it cannot be compiled."""
    keys, values, dtype = _column(node, "keys"), _column(node, "values"), given(node.inputs[0]).dtype
    if keys is None or values is None or not keys.size or len(keys) != len(values):
        return "its keys or values are text, none, or not as many of each"
    key, element = element_type(dtype), moved_type(node.output.dtype or DataType.UNDEFINED)
    if dtype not in _KEYS or key is None or keys.dtype != dtype.numpy:
        return f"keys of type {keys.dtype} for data of type {dtype}"
    if element is None or element.size_bytes < 4 or values.dtype != (node.output.dtype or DataType.UNDEFINED).numpy:
        return f"values of type {values.dtype} for elements of type {node.output.dtype}"
    default = _default(node, values.dtype)
    if default is None or np.isnan(keys).all():
        return "its default is no number of the values' type, or NaN is its only key"
    return LookupSpec(key, element, *_tables(keys, values, default))


def _sorted(keys: Array) -> tuple[Array, Array]:
    """Return keys in ascending order and the place of each: of equal keys the last one counts."""
    ordered, last = np.unique(keys[::-1], return_index=True)
    return ordered, len(keys) - 1 - last


def _tables(keys: Array, values: Array, default: Array) -> tuple[Array, Array]:
    """Return keys in order, and their values, then those of other numbers and of NaN."""
    ordered, places = _sorted(keys)
    count = len(ordered) - int(np.isnan(ordered[-1]))
    nan = values[places[count:]] if count < len(ordered) else default
    return np.ascontiguousarray(ordered[:count]), np.concatenate([values[places[:count]], default, nan])


@dataclasses.dataclass(frozen=True, slots=True)
class LookupKernel:
    """Values beside keys."""

    key: Type
    """The type of the keys."""
    element: Type
    """The type as which values are moved."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"lookup_{self.key.kind.value}{self.key.bits}_{self.element.size_bytes}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_lookup(module, symbol, self.key, self.element)


@lowers("LabelEncoder", claim=claim_label_encoder, domain=_ML)
def label_encoder(low: Lowering, group: Group, spec: LookupSpec) -> None:
    """Lower to one kernel."""
    source, result = low.of(group.node.inputs[0]), low.result(group.result)

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = LookupParams(sizes(product(source.shape)), len(spec.keys))
        return params.words(), params.tasks()

    buffers = [source, low.constant(spec.keys), low.constant(spec.values), result]
    low.step(group, low.kernel(LookupKernel(spec.key, spec.element)), buffers, writes=[3], plan=plan)


_NORMS: Mapping[str, Callable[[ElementExpr], ElementExpr]] = {
    "L1": lambda x: fold_row("row_sum", OPERATORS["abs"](x)),
    "L2": lambda x: OPERATORS["sqrt"](fold_row("row_sum", x * x)),
    "MAX": lambda x: fold_row("row_max", x),
}
"""norm -> the size of a row, of its elements."""


def claim_normalizer(node: Node) -> RowsSpec | str:
    """Return what a Normalizer divides rows by, or why it cannot be compiled.

    Other types than float, and lengths of floats, are computed with in double, so that the nearest float results. Integers are
    multiplied by the inverse: no size of theirs is so small that it has none.
    """
    x, norm = given(node.inputs[0]), node.text("norm", "MAX")
    if x.dtype not in _KEYS or len(shape_of(x)) not in (1, 2) or norm not in _NORMS:
        return f"norm={norm} of data of type {x.dtype} and shape {x.shape}"
    element = argument(0, F32).to(F64 if norm == "L2" else F32) if x.dtype is DataType.FLOAT else argument(0, F64)
    size = _NORMS[norm](element)
    divisor = OPERATORS["select"](size.eq(0), 1, size)
    is_integer = x.dtype in (DataType.INT32, DataType.INT64)
    result = element * (1 / divisor) if is_integer else element / divisor
    return RowsSpec(result.to(F32), 0, ())


@lowers("Normalizer", claim=claim_normalizer, joins=joins_rows, domain=_ML)
def normalizer(low: Lowering, group: Group, spec: RowsSpec) -> None:
    """Divide each row by its norm."""
    rows(low, group, spec)


@dataclasses.dataclass(frozen=True, slots=True)
class EncoderSpec:
    """Categories that are encoded; unknown ones are refused."""

    key: Type
    """The type of the categories."""
    categories: tuple[int, ...]
    """The categories: the tuple of the attribute itself, not a copy."""


def claim_one_hot_encoder(node: Node) -> EncoderSpec | str:
    """Return what a OneHotEncoder encodes, or why it cannot be compiled."""
    dtype = given(node.inputs[0]).dtype
    if dtype is not DataType.INT64 or node.texts("cats_strings", ()) or not node.integers("cats_int64s", ()):
        return f"categories of text, or none of integers, for data of type {dtype}"
    if node.integer("zeros", 1):
        return "unknown elements become zeros, which optimization writes as a comparison unless a category is there twice"
    key = element_type(dtype)
    return "elements of an unknown type" if key is None else EncoderSpec(key, node.integers("cats_int64s", ()))


@dataclasses.dataclass(frozen=True, slots=True)
class EncoderKernel:
    """Rows with a 1 at a category."""

    key: Type
    """The type of the categories."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"encode_{self.key.kind.value}{self.key.bits}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_encoder(module, symbol, self.key)


@lowers("OneHotEncoder", claim=claim_one_hot_encoder, domain=_ML)
def one_hot_encoder(low: Lowering, group: Group, spec: EncoderSpec) -> None:
    """Lower to one kernel, which reports unknown elements."""
    source, result = low.of(group.node.inputs[0]), low.result(group.result)
    keys, columns = _sorted(np.array(spec.categories, np.int64))

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        params = LookupParams(sizes(product(source.shape)), len(keys), len(spec.categories))
        return params.words(), params.tasks()

    buffers = [source, low.constant(keys), low.constant(columns.astype(np.int64)), result, STATUS]
    failure = "element {} is in no category and zeros=0; add the category, or set zeros=1"
    low.step(group, low.kernel(EncoderKernel(spec.key)), buffers, writes=[3], plan=plan, failure=failure)
