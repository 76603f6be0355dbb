"""Images with a border of zeros."""

from collections.abc import Callable

import numpy as np
import pytest

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.border import BorderParams, write_border
from sardonyx.codegen.target import Target


@pytest.mark.parametrize("channels", [1, 3, 17])
@pytest.mark.parametrize("sizes", [(5,), (3, 4), (2, 3, 7)])
def test_the_border_is_zeros(target: Target, run: Callable[..., None], sizes: tuple[int, ...], channels: int) -> None:
    """Along each axis there may be zeros before and after, as many as one likes."""
    rank = len(sizes)
    befores, afters = (2, 0, 3)[:rank], (1, 4, 0)[:rank]
    x = np.random.default_rng(0).standard_normal((2, *sizes, channels)).astype(np.float32)
    expected = np.pad(x, [(0, 0), *zip(befores, afters, strict=True), (0, 0)])
    result = np.full(expected.shape, 7, np.float32)
    params = BorderParams(2, channels, sizes, befores, expected.shape[1:-1])
    module = Module(target)
    write_border(module, "border", rank)
    run(module, "border", [x, result], params.words(), 0, params.tasks())
    assert (result == expected).all()
