"""Elements that are sampled outside of an axis."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I32
from sardonyx.codegen.kernels.images.outside import write_outside
from sardonyx.codegen.kernels.resize import TableWords
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target


@pytest.mark.parametrize("inner", [1, 15, 17])
def test_they_are_overwritten(target: Target, inner: int) -> None:
    """Outputs at -1, 1, 3 and 5 of an axis of 4 elements."""
    engine, module = Engine(target), Module(target)
    write_outside(module, "outside", I32)
    engine.add(module)
    y = np.ones((2, 4, inner), np.int32)
    words = TableWords(4, 4, factor=2.0, offset=-1.0).words()
    call(engine, "outside", [y, np.array([9], np.int32)], [*words, inner], 0, 2)
    assert (y == np.array([9, 1, 1, 9])[:, None]).all()
