"""The subgraphs of a file while they become graphs."""

from __future__ import annotations

import numpy as np
import pytest
from formats.tflite.running import run
from support.flat_models import Sketch

import sardonyx
from sardonyx import errors


def _calling(levels: int, calls: int) -> bytes:
    """Return a model whose subgraphs each call the next several times."""
    sketch = Sketch()
    for level in range(levels):
        if level:
            sketch.begin(f"level {level}")
        value = sketch.input((2,))
        for _ in range(calls if level + 1 < levels else 1):
            made = sketch.tensor((2,))
            if level + 1 < levels:
                sketch.operator("CALL", [value], [made], ("CallOptions", {"subgraph": level + 1}))
            else:
                sketch.operator("NEG", [value], [made])
            value = made
        sketch.outputs(value)
    return sketch.model()


def test_a_call_is_written_where_it_stands() -> None:
    """As often as it is called."""
    assert run(_calling(3, 3), np.array([1, 2], np.float32))[0].tolist() == [-1, -2]


def test_calls_that_grow_without_bound_are_refused() -> None:
    """Each level calls the next ten times."""
    with pytest.raises(errors.InvalidFlatBuffer, match="subgraphs are called so often"):
        sardonyx.InferenceSession(_calling(9, 10))


def test_a_subgraph_that_calls_itself_is_refused() -> None:
    """It would never end."""
    sketch = Sketch()
    x, y = sketch.input((2,)), sketch.tensor((2,))
    sketch.operator("CALL", [x], [y], ("CallOptions", {"subgraph": 1}))
    sketch.outputs(y)
    sketch.begin("inner")
    x, y = sketch.input((2,)), sketch.tensor((2,))
    sketch.operator("CALL", [x], [y], ("CallOptions", {"subgraph": 1}))
    with pytest.raises(errors.InvalidFlatBuffer, match="subgraph 1 is called from within itself"):
        sardonyx.InferenceSession(sketch.model([y]))


@pytest.mark.parametrize("subgraph", [7, 1 << 31])
def test_a_subgraph_that_is_not_there_is_refused(subgraph: int) -> None:
    """With how many there are."""
    sketch = Sketch()
    x, y = sketch.input((2,)), sketch.tensor((2,))
    sketch.operator("CALL", [x], [y], ("CallOptions", {"subgraph": subgraph}))
    with pytest.raises(errors.InvalidFlatBuffer, match=f"there is no subgraph {subgraph}; the model has 1"):
        sardonyx.InferenceSession(sketch.model([y]))
