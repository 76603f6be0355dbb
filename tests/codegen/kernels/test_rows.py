"""Kernels of expressions that fold rows."""

from __future__ import annotations

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.expr import OPERATORS, ElementExpr, argument
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.row_expr import fold_row, split_rows
from sardonyx.codegen.emit.types import F32, F64, I32, I64
from sardonyx.codegen.kernels.lines import Along, ExtraOperand, LineParams
from sardonyx.codegen.kernels.rows import write_rows
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

_WIDE = argument(0, F64)
X, SCALE = argument(0, F32), argument(1, F32)
_E = OPERATORS["exp"](X - fold_row("row_max", X))
_WIDTH = fold_row("row_max", X) - fold_row("row_min", X)


def _write(module: Module, symbol: str, expr: ElementExpr, *extra_operands: ExtraOperand) -> None:
    split = split_rows(expr, 1 + len(extra_operands))
    write_rows(module, symbol, folds=split.folds, after=split.result, extra_operands=extra_operands)


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """A softmax, which stores what it folds, a scaled mean that reads another tensor, and the width of a row."""
    module = Module(target)
    _write(module, "softmax", _E / fold_row("row_sum", _E))
    _write(module, "scaled", X * SCALE - fold_row("row_mean", X * SCALE), ExtraOperand(F32, True, (False,)))
    _write(module, "width", _WIDTH)
    for kind, name in ((F64, "float64"), (I32, "int32"), (I64, "int64")):
        share = split_rows((_WIDE / (fold_row("row_sum", OPERATORS["abs"](_WIDE)) + 1)).to(F32), 1)
        write_rows(module, f"share_{name}", folds=share.folds, after=share.result, extra_operands=[], source=kind)
    engine = Engine(target)
    engine.add(module)
    return engine


def _run(engine: Engine, name: str, x: Array, *extra_operands: Array) -> Array:
    params = LineParams(x.shape[0], 1, x.shape[1], Along.ROWS)
    y = np.full_like(x, 99)
    walk = [x.shape[0], 0] if extra_operands else []
    call(engine, name, [x, y, *extra_operands], [*params.words(), *walk], 0, params.tasks())
    return y


_SHAPES = [
    (1, 1),
    (5, 3),
    (6, 16),
    (3, 17),
    (2, 1500),
    (9, 67),
    (4, 5000),
    (33, 1),
    (70, 2),
    (65, 3),
    (47, 5),
    (100, 7),
    (31, 8),
    (40, 15),
]


@pytest.mark.parametrize("shape", _SHAPES)
def test_rows_are_folded_one_fold_after_another(engine: Engine, shape: tuple[int, int]) -> None:
    """A softmax, as float64 has it."""
    x = (np.random.default_rng(0).standard_normal(shape) * 3).astype(np.float32)
    e = np.exp((x - x.max(1, keepdims=True)).astype(np.float64))
    np.testing.assert_allclose(_run(engine, "softmax", x), e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("shape", _SHAPES)
def test_folds_read_other_tensors(engine: Engine, shape: tuple[int, int]) -> None:
    """One that goes along with the row."""
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    scale = np.random.default_rng(1).standard_normal(shape[1]).astype(np.float32)
    product = x.astype(np.float64) * scale
    found = _run(engine, "scaled", x, scale)
    np.testing.assert_allclose(found, product - product.mean(1, keepdims=True), rtol=1e-5, atol=2e-6)


def test_a_fold_alone_is_repeated_along_its_row(engine: Engine) -> None:
    """And NaN passes through extremes."""
    x = np.array([[1, 4, 2], [5, np.nan, 7]], np.float32)
    np.testing.assert_array_equal(_run(engine, "width", x), [[3, 3, 3], [np.nan] * 3])


@pytest.mark.parametrize("shape", _SHAPES)
@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.int64])
def test_elements_of_other_types_are_computed_with_in_double(engine: Engine, dtype: type, shape: tuple[int, int]) -> None:
    """And written as float32; nothing behind the rows is."""
    x: Array = (np.random.default_rng(2).standard_normal(shape) * 100).astype(dtype)
    y, params = np.full(x.size + 32, 99, np.float32), LineParams(shape[0], 1, shape[1], Along.ROWS)
    call(engine, f"share_{np.dtype(dtype)}", [x, y], params.words(), 0, params.tasks())
    expected = x / (np.abs(x.astype(np.float64)).sum(1, keepdims=True) + 1)
    np.testing.assert_array_equal(y[: x.size].reshape(shape), expected.astype(np.float32))
    assert (y[x.size :] == 99).all()
