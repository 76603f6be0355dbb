"""Convolutions of float64 on the CPU provider, beside the reference provider."""

from __future__ import annotations

import numpy as np
from support.constant_nodes import node_model, open_session
from support.cpu_run import assert_same_bits

__all__ = ["compare_wide"]


def compare_wide(
    op_type: str, x: tuple[int, ...], w: tuple[int, ...], biases: int, *, computed: bool = False, **about: object
) -> None:
    """Compare one node, for two batches and on one thread and two; with filters that are constants, or that are fed."""
    rng = np.random.default_rng(0)
    data, filters, bias = (rng.standard_normal(shape) for shape in ((2, *x), w, biases))
    model = node_model(
        op_type,
        [("x", data), ("w", filters) if computed else filters, bias],
        domain="",
        shapes={"x": ["n", *(f"d{axis}" if axis else size for axis, size in enumerate(x))]},
        **about,
    )
    for count in (2, 1):
        feeds = {"x": data[:count]} | ({"w": filters} if computed else {})
        exact = open_session(model, "Reference").run(None, feeds)[0]
        found = open_session(model).run(None, feeds)[0]
        np.testing.assert_allclose(found, exact, rtol=1e-12, atol=1e-12)
        assert_same_bits(open_session(model, threads=2).run(None, feeds)[0], found)
