"""Fold a batch normalization into the product before it.

    BatchNormalization(Gemm(a, w, c?), scale, shift, mean, variance)         ->      Gemm(a, w * k, c * k + s)
    BatchNormalization(MatMul(a, w), ...)                                    ->      MatMul(a, w * k) + s
    BatchNormalization(MatMul(a, w) + bias, ...)                             ->      MatMul(a, w * k) + (bias * k + s)

with k = scale / sqrt(variance + epsilon) and s = shift - mean * k per column of w, computed in float64 and rounded once. Where a
Transpose stands between, which makes the columns the channels, or a Reshape or Flatten to rows, it stays after the product.

Left alone:
    weights, bias or statistics that are no constants: they may differ from run to run
    a normalization in training mode, which computes statistics, or one whose further outputs are used
    a product whose result has other users: both results are needed
    weights with other users, that are no matrix, or no floating-point numbers
    a result of the product of more than two dimensions whose last does not become the second, which channels are
    C of Gemm that is neither a number nor one row
"""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.ir import Node, Tensor, Value
from sardonyx.ops.views.matmul import Gemm
from sardonyx.ops.views.reshape import Transpose
from sardonyx.optimize.helpers.channels import FLOATS, Affine, normalization
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["FUSE_MATMUL_BATCHNORM"]


def _pattern(op: PatternBuilder, a: Term, w: Term, scale: Term, shift: Term, mean: Term, variance: Term) -> Term:
    weights = op.constant(w)
    matmul = op.MatMul(a, weights, _as="product")
    product = op.any_of(op.Gemm(a, weights, op.optional_constant("c"), _as="product"), matmul, op.Add(matmul, op.constant("c")))
    statistics = [op.constant(value) for value in (scale, shift, mean, variance)]
    moves = (op.Transpose(product), op.Reshape(product, op.rest("shape")), op.Flatten(product))
    moved = op.any_of(*moves, product)
    return op.BatchNormalization(moved, *statistics)


def _check(match: Match) -> str | Affine:
    node, weights = match.node("product"), match.tensor("w")
    if weights is None or len(weights.shape) != 2 or weights.dtype not in FLOATS:
        return "the weights are no matrix of floating-point numbers"
    if match["w"].use_count > 1:
        return "the weights have other users"
    columns, product = _columns(node, weights), node.outputs[0]
    if product.shape is None or not _ends_as_channels(len(product.shape), columns, _move(match)):
        return "the columns of the product are not the channels"
    bias = match.tensor("c")
    if bias is not None and bias.shape not in ((), (1,), (columns,), (1, 1), (1, columns)):
        return f"what is added has shape {bias.shape}, expected one row of {columns}"
    return normalization(match, columns)


def _move(match: Match) -> Node | None:
    return next((node for node in match.nodes if node.op_type in ("Transpose", "Reshape", "Flatten")), None)


def _ends_as_channels(rank: int, columns: int, move: Node | None) -> bool:
    """Return whether the last of `rank` dimensions, `columns`, is the second where it is normalized."""
    if move is None:
        return rank == 2
    if move.op_type != "Transpose":
        shape = move.output.shape
        return shape is not None and len(shape) == 2 and shape[1] == columns
    perm = Transpose.of(move).order(rank)
    return len(perm) == rank >= 2 and perm[1] == rank - 1


def _columns(node: Node, weights: Tensor) -> int:
    return weights.shape[Gemm.of(node).column_axis]


def _replace(op: Builder, match: Match, learned: Affine) -> Value:
    node, weights, given = match.node("product"), match.tensor("w"), match.tensor("c")
    if weights is None:
        raise ValueError("the weights are no constant")
    name, dtype = match["w"].name, weights.dtype.numpy
    factor = learned.factor[:, None] if Gemm.of(node).transposes_b else learned.factor
    scaled = op.constant((weights.numpy().astype(np.float64) * factor).astype(dtype), f"{name}/scaled")
    before = np.zeros(()) if given is None else given.numpy().astype(np.float64)
    beta = Gemm.of(node).beta if node.op_type == "Gemm" else 1.0
    added: Array = (before.reshape(-1) * beta * learned.factor + learned.shift).astype(dtype)
    bias = op.constant(added, f"{name}/bias")
    if node.op_type == "Gemm":
        result = op.Gemm(match["a"], scaled, bias, _attributes=node.attributes, _version=node.version, beta=1.0)
    else:
        result = op.Add(op.MatMul(match["a"], scaled, _version=node.version), bias)
    move = _move(match)
    return result if move is None else op.node(move.op_type, result, *move.inputs[1:], _attributes=move.attributes)


FUSE_MATMUL_BATCHNORM = Rule("fuse_matmul_batchnorm", _pattern, _replace, _check, aliases=("MatMul_BatchNormalization_Fusion",))
