"""Evenly spaced positions, mapped."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32
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
