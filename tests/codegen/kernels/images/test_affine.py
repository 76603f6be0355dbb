"""Evenly spaced positions, mapped."""

import math

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, F64, Type
from sardonyx.codegen.kernels.images.affine import write_affine
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("width", [1, 15, 16, 17, 33])
def test_the_identity(target: Target, width: int, align: bool) -> None:
    """Positions as they are, the last axis first."""
    engine, module = Engine(target), Module(target)
    write_affine(module, "affine", F32, 2, align_corners=align)
    engine.add(module)
    y = np.full((1, 3, width, 2), -7, np.float32)
    call(engine, "affine", [np.array([[1, 0, 0], [0, 1, 0]], np.float32), y], [3, 3, width], 0, 3)
    ends = [(0.0 if count == 1 else 1.0) if align else 1 - 1 / count for count in (3, width)]
    np.testing.assert_allclose(y[0, :, 0, 1], np.linspace(-ends[0], ends[0], 3), atol=1e-6)
    np.testing.assert_allclose(y[0, 1, :, 0], np.linspace(-ends[1], ends[1], width), atol=1e-6)


@pytest.mark.parametrize("width", [1, 7, 8, 9, 33])
@pytest.mark.parametrize("kind", [F32, F64])
@pytest.mark.parametrize("rank", [2, 3])
def test_any_matrix(target: Target, rank: int, kind: Type, width: int) -> None:
    """Every part of every position, of one image after another, and nothing beside the result is written."""
    engine, module = Engine(target), Module(target)
    write_affine(module, "affine", kind, rank, align_corners=False)
    engine.add(module)
    dtype = {F32: np.float32, F64: np.float64}[kind]
    theta = np.random.default_rng(0).standard_normal((2, rank, rank + 1)).astype(dtype)
    sizes = (4, 3, width)[-rank:]
    guarded = np.full(2 * math.prod(sizes) * rank + 16, -7, dtype)
    rows = math.prod(sizes[:-1])
    call(engine, "affine", [theta, guarded[8:]], [rows, *sizes], 0, 2 * rows)
    along = [(2 * np.arange(size) + 1) / size - 1 for size in sizes]
    places = np.stack([*np.meshgrid(*along, indexing="ij")[::-1], np.ones(sizes)], -1)
    wanted = np.einsum("...a,npa->n...p", places, theta.astype(np.float64))
    np.testing.assert_allclose(guarded[8:-8].reshape(wanted.shape), wanted, atol=1e-6)
    assert (guarded[[0, 7, -8, -1]] == -7).all()
