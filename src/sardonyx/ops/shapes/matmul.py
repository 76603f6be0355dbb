"""Matrix products."""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph
from sardonyx.ir import Dim, Shape
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, dims_text, shape_function, tensor
from sardonyx.ops.shapes.axes import require_rank, unknown_shape
from sardonyx.ops.shapes.broadcast import broadcast, broadcast_dims
from sardonyx.ops.views.matmul import Gemm

__all__: list[str] = []


@shape_function("MatMul")
def matmul(call: ShapeCall, a: Fact, b: Fact) -> Fact:
    """Return numpy.matmul: (…, M, K) x (…, K, N) -> (…, M, N)."""
    return tensor(a.dtype if a.dtype is not None else b.dtype, product_shape(a.shape, b.shape))


@shape_function("MatMulInteger")
def matmul_integer(call: ShapeCall, a: Fact, b: Fact, a_zero: Fact | None = None, b_zero: Fact | None = None) -> Fact:
    """Return the same, of integers, into int32."""
    return tensor(DataType.INT32, product_shape(a.shape, b.shape))


@shape_function("QLinearMatMul")
def qlinear_matmul(
    call: ShapeCall, a: Fact, a_scale: Fact, a_zero: Fact, b: Fact, b_scale: Fact, b_zero: Fact, y_scale: Fact, y_zero: Fact
) -> Fact:
    """Return the same, of quantized tensors, into the type of the last zero point."""
    return tensor(y_zero.dtype, product_shape(a.shape, b.shape))


def product_shape(a: Shape | None, b: Shape | None) -> Shape | None:
    """Return the shape of numpy.matmul's result; raises InvalidGraph where the inner sizes differ."""
    if a is None or b is None:
        return None
    if not a or not b:
        raise InvalidGraph(f"a scalar has no matrix product: got shapes {dims_text(a)} and {dims_text(b)}")
    left, right = (1, *a) if len(a) == 1 else a, (*b, 1) if len(b) == 1 else b
    K, other = left[-1], right[-2]
    if isinstance(K, int) and isinstance(other, int) and other != K:
        raise InvalidGraph(f"the inner sizes of shapes {dims_text(a)} and {dims_text(b)} differ: {K} and {other}")
    batch = broadcast((left[:-2], right[:-2])) or ()
    rows = () if len(a) == 1 else (left[-2],)
    columns = () if len(b) == 1 else (right[-1],)
    return batch + rows + columns


@shape_function("Gemm")
def gemm(call: ShapeCall, a: Fact, b: Fact, c: Fact | None = None) -> Fact:
    """Infer (M, K) x (K, N) -> (M, N), to which the third input broadcasts."""
    view, first, second = Gemm.of(call), require_rank(a, "A", 2, 2), require_rank(b, "B", 2, 2)
    dtype = a.dtype if a.dtype is not None else b.dtype
    M, K = (anonymous(), None) if first is None else first[::-1] if view.transposes_a else first
    other, N = (None, anonymous()) if second is None else second[::-1] if view.transposes_b else second
    if isinstance(K, int) and isinstance(other, int) and other != K:
        raise InvalidGraph(
            f"the inner sizes of shapes {dims_text(first)}{' transposed' if view.transposes_a else ''} and "
            f"{dims_text(second)}{' transposed' if view.transposes_b else ''} differ: {K} and {other}"
        )
    if c is not None and c.shape is not None:
        _check_bias(c.shape, (M, N))
    return tensor(dtype, (M, N))


def _check_bias(bias: Shape, shape: Shape) -> None:
    widths = list(zip(reversed(bias), reversed(shape), strict=False))
    if len(bias) > 2 or any(isinstance(a, int) and isinstance(b, int) and a not in (1, b) for a, b in widths):
        raise InvalidGraph(f"C of shape {dims_text(bias)} does not broadcast to the product's shape {dims_text(shape)}")


@shape_function("Det")
def det(call: ShapeCall, x: Fact) -> Fact:
    """Infer (…, M, M) -> (…)."""
    shape = require_rank(x, "X", 2)
    return tensor(x.dtype, None if shape is None else shape[:-2])


@shape_function("Einsum")
def einsum(call: ShapeCall, *inputs: Fact | None, equation: str = "") -> Fact:
    """Return the dimensions that the letters after the arrow name."""
    dtype = next((fact.dtype for fact in inputs if fact is not None and fact.dtype is not None), None)
    shapes = [None if fact is None else fact.shape for fact in inputs]
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(inputs):
        raise InvalidGraph(f"the equation {equation!r} has {len(terms)} terms for {len(inputs)} inputs")
    if None in shapes:
        return tensor(dtype, unknown_shape(len(right)) if arrow and "." not in right else None)
    sizes: dict[str, Dim] = {}
    dots: Shape = ()
    for term, shape in zip(terms, shapes, strict=True):
        dots = _bind(term, shape or (), sizes, dots, equation)
    result = right if arrow else _implied(left)
    head, ellipsis, tail = result.partition("...")
    middle = dots if ellipsis else ()
    return tensor(dtype, (*[sizes[letter] for letter in head], *middle, *[sizes[letter] for letter in tail]))


def _bind(term: str, shape: Shape, sizes: dict[str, Dim], dots: Shape, equation: str) -> Shape:
    """Give each letter of a term its size and return what the ellipsis stands for."""
    head, ellipsis, tail = term.partition("...")
    named = len(head) + len(tail)
    if len(shape) < named or (not ellipsis and len(shape) != named):
        raise InvalidGraph(f"term {term!r} of {equation!r} does not fit shape {dims_text(shape)}")
    end = len(shape) - len(tail)
    for letter, dim in [*zip(head, shape, strict=False), *zip(tail, shape[end:], strict=True)]:
        sizes[letter] = broadcast_dims(sizes[letter], dim) if letter in sizes else dim
    return (broadcast((dots, shape[len(head) : end])) or ()) if ellipsis else dots


def _implied(left: str) -> str:
    """Return the output that an equation without arrow means: the letters that occur once, in order, after the ellipsis."""
    letters = [letter for letter in left if letter.isalpha()]
    once = sorted(letter for letter in set(letters) if letters.count(letter) == 1)
    return ("..." if "..." in left else "") + "".join(once)
