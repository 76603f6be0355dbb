"""Compare kernels that move elements with the reference provider: they must agree to the bit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from support.cpu_run import cpu_session, reference

from sardonyx.dtypes import Array
from sardonyx.provider import Layout

__all__ = ["TYPES", "filled", "same"]

TYPES = {
    "float": np.float32,
    "double": np.float64,
    "int64": np.int64,
    "bool": np.bool_,
    "uint8": np.uint8,
    "float16": np.float16,
    "int32": np.int32,
}
"""Element types of every size, by their name in the text form."""


def filled(shape: Sequence[int], kind: str = "float") -> Array:
    """Random elements, the same ones for the same shape."""
    found: Array = (np.random.default_rng(0).standard_normal(shape) * 3).astype(TYPES[kind])
    return found


def same(
    body: str,
    *cases: Mapping[str, Any] | Sequence[int],
    opset: int = 21,
    isa: str | None = None,
    kind: str = "float",
    layout: Layout = Layout.NCHW,
) -> None:
    """One session, run for all cases, gives what the reference provider gives, on one thread and on two.

    Args:
        body: the graph.
        cases: feeds, or shapes of the input x, which is then filled with elements of `kind`.
        opset: the version of ai.onnx.
        isa: the instruction set level.
        kind: the element type of x where a case is a shape.
        layout: what layout-sensitive operators are converted to.
    """
    for threads in (1, 2):
        session = cpu_session(body, opset=opset, isa=isa, threads=threads, layout=layout)
        for case in cases:
            feeds = dict(case) if isinstance(case, Mapping) else {"x": filled(case, kind)}
            for found, wanted in zip(session.run(None, feeds), reference(body, feeds, opset=opset), strict=True):
                assert found.dtype == wanted.dtype
                np.testing.assert_array_equal(found, wanted)
