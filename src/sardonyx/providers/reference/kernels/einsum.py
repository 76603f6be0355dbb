"""Reference kernel of Einsum: the equation is read and checked here, and pairs of operands are contracted by BLAS."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.dimensions import check_output_size
from sardonyx.providers.reference.algorithms.precision import quiet, widen
from sardonyx.providers.reference.algorithms.product import multiply
from sardonyx.providers.reference.registry import Call, kernel

__all__: list[str] = []

_Labels = tuple[str, ...]
"""One label per axis: a letter, or a number for an axis of the ellipsis."""


@kernel("Einsum", since=12)
@quiet
def einsum(node: Call, *inputs: Array, equation: str) -> Array:
    """Compute the Einstein summation of the inputs that `equation` describes, such as "bij,bjk->bik". Source: ONNX Einsum-28.

    Axes of length 1 broadcast. Half types compute in float32; integers wrap.
    """
    terms, output = _read_equation(equation, [x.ndim for x in inputs])
    sizes = _label_sizes(equation, inputs, terms)
    check_output_size([sizes[label] for label in output], inputs[0].dtype.itemsize)
    operands = [_reduce_repeated(_broadcast(widen(x), term, sizes), term) for x, term in zip(inputs, terms, strict=True)]
    while len(operands) > 1:
        left, right = _cheapest_pair(operands, output, sizes)
        rest = [operand for operand in operands if operand is not left and operand is not right]
        kept = set(output).union(*(operand.labels for operand in rest))
        operands = [*rest, _contract(_sum_out(left, kept.union(right.labels)), _sum_out(right, kept.union(left.labels)), kept)]
    result = _sum_out(operands[0], set(output))
    y = result.array.transpose([result.labels.index(label) for label in output])
    return y.astype(inputs[0].dtype, copy=False)


@dataclasses.dataclass(frozen=True, slots=True)
class _Operand:
    """An array and the labels of its axes, each once."""

    array: Array
    """The array."""
    labels: _Labels
    """One label per axis."""


def _read_equation(equation: str, ranks: Sequence[int]) -> tuple[list[_Labels], _Labels]:
    """Return the labels of each operand and of the output; raises InvalidArgument for what the standard does not allow."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    texts = left.split(",")
    if len(texts) != len(ranks):
        raise InvalidArgument(f"equation {equation!r} has {len(texts)} terms for {len(ranks)} inputs; give one term per input")
    ellipsis = _ellipsis_rank(equation, texts, ranks)
    terms = [_read_term(equation, text, ellipsis) for text in texts]
    for term, text, rank in zip(terms, texts, ranks, strict=True):
        if len(term) != rank:
            raise InvalidArgument(f"equation {equation!r}: term {text!r} names {len(term)} axes of an input of rank {rank}")
    counts = Counter(itertools.chain.from_iterable(terms))
    if not arrow:
        dots = tuple(str(axis) for axis in range(ellipsis))
        return terms, dots + tuple(sorted(label for label, count in counts.items() if count == 1 and label.isalpha()))
    output = _read_term(equation, right, ellipsis)
    unknown = [label for label in output if label not in counts]
    if unknown or len(set(output)) != len(output):
        raise InvalidArgument(f"equation {equation!r}: the output {right!r} may name each axis of the inputs once, and no others")
    return terms, output


def _ellipsis_rank(equation: str, texts: Sequence[str], ranks: Sequence[int]) -> int:
    """Return how many axes "..." stands for: the same in every term that has it."""
    found = {rank - len(text.replace("...", "")) for text, rank in zip(texts, ranks, strict=True) if "..." in text}
    if len(found) > 1 or min(found, default=0) < 0:
        raise InvalidArgument(f"equation {equation!r}: the ellipsis stands for {sorted(found)} axes; it must stand for one number")
    return max(found, default=0)


def _read_term(equation: str, text: str, ellipsis: int) -> _Labels:
    before, dots, after = text.partition("...")
    letters = before + after
    if not all(letter.isascii() and letter.isalpha() for letter in letters):
        raise InvalidArgument(f"equation {equation!r}: term {text!r} may hold letters a-z, A-Z and at most one ellipsis")
    middle = tuple(str(axis) for axis in range(ellipsis)) if dots else ()
    return (*before, *middle, *after)


def _label_sizes(equation: str, inputs: Sequence[Array], terms: Sequence[_Labels]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for x, term in zip(inputs, terms, strict=True):
        for label, size in zip(term, x.shape, strict=True):
            known = sizes.get(label, 1)
            if size not in (1, known) and known != 1:
                name = f"axis {label} of the ellipsis" if label.isdigit() else repr(label)
                raise InvalidArgument(f"equation {equation!r}: {name} has length {known} in one input and {size} in another")
            sizes[label] = size if known == 1 else known
    return sizes


def _broadcast(x: Array, term: _Labels, sizes: dict[str, int]) -> Array:
    shape = tuple(sizes[label] for label in term)
    return x if x.shape == shape else np.broadcast_to(x, shape)


def _reduce_repeated(x: Array, term: _Labels) -> _Operand:
    """Replace the axes of a label that occurs twice in one term by their diagonal."""
    labels = list(term)
    for label, count in Counter(term).items():
        for _ in range(count - 1):
            first = labels.index(label)
            second = labels.index(label, first + 1)
            x = np.diagonal(x, axis1=first, axis2=second)
            del labels[second], labels[first]
            labels.append(label)
    return _Operand(x, tuple(labels))


def _cheapest_pair(operands: Sequence[_Operand], output: _Labels, sizes: dict[str, int]) -> tuple[_Operand, _Operand]:
    """Return the two operands whose contraction leaves the smallest array; O(operands^2)."""

    def left_over(pair: tuple[_Operand, _Operand]) -> int:
        others = [operand.labels for operand in operands if operand is not pair[0] and operand is not pair[1]]
        kept = set(output).union(*others)
        return math.prod(sizes[label] for label in {*pair[0].labels, *pair[1].labels} & kept)

    return min(itertools.combinations(operands, 2), key=left_over)


def _sum_out(operand: _Operand, kept: set[str]) -> _Operand:
    """Sum over the axes whose labels are not `kept`."""
    gone = tuple(axis for axis, label in enumerate(operand.labels) if label not in kept)
    if not gone:
        return operand
    total: Array = np.sum(operand.array, axis=gone, dtype=operand.array.dtype)
    return _Operand(np.asarray(total), tuple(label for label in operand.labels if label in kept))


def _contract(left: _Operand, right: _Operand, kept: set[str]) -> _Operand:
    """Multiply and sum over the shared labels that are not `kept`, as one stack of matrix products."""
    shared = [label for label in left.labels if label in right.labels]
    batch = [label for label in shared if label in kept]
    inner = [label for label in shared if label not in kept]
    rows = [label for label in left.labels if label not in shared]
    columns = [label for label in right.labels if label not in shared]
    sizes = dict(zip(left.labels + right.labels, left.array.shape + right.array.shape, strict=True))
    a = _as_matrices(left, batch, rows, inner)
    b = _as_matrices(right, batch, inner, columns)
    labels = (*batch, *rows, *columns)
    products = multiply(a, b) if inner else a * b
    return _Operand(products.reshape([sizes[label] for label in labels]), labels)


def _as_matrices(operand: _Operand, batch: Sequence[str], rows: Sequence[str], columns: Sequence[str]) -> Array:
    """Reorder the axes and merge them to (*batch, rows, columns)."""
    sizes = dict(zip(operand.labels, operand.array.shape, strict=True))
    ordered = operand.array.transpose([operand.labels.index(label) for label in (*batch, *rows, *columns)])
    lengths = [math.prod(sizes[label] for label in group) for group in (rows, columns)]
    return ordered.reshape(*(sizes[label] for label in batch), *lengths)
