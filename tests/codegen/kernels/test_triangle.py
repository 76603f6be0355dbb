"""Triangles of matrices."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I16
from sardonyx.codegen.kernels.triangle import write_triangle
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target


@pytest.mark.parametrize("upper", [False, True])
def test_one_part_is_kept(target: Target, upper: bool) -> None:
    """For any diagonal, batch, and in place."""
    module = Module(target)
    write_triangle(module, "triangle", I16, upper=upper)
    engine = Engine(target)
    engine.add(module)
    for shape in (
        (2, 5, 5),
        (1, 3, 70),
        (3, 9, 2),
        (1, 4, 0),
        (99, 3, 3),
        (40, 1, 1),
        (31, 7, 5),
        (9, 32, 32),
        (8, 2, 31),
        (9, 33, 33),
    ):
        data = np.arange(1, 1 + np.prod(shape), dtype=np.int32).astype(np.int16).reshape(shape)
        for k in (0, 1, -1, 3, 1000, -1000, (1 << 63) - 1, -(1 << 63)):
            made = data.copy()
            rows, near = shape[0] * shape[1], max(min(k, 100), -100)
            call(engine, "triangle", [made, np.array([k]), made], [rows, shape[1], shape[2], 2], 0, -(-rows // 2))
            np.testing.assert_array_equal(made, np.triu(data, near) if upper else np.tril(data, near))
