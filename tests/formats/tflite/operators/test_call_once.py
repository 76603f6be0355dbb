"""Values that variables of TensorFlow Lite models begin with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.flat_models import Sketch

import sardonyx
from sardonyx import errors

Assign = Callable[[Sketch], int]


def _counting(make: Assign, *, inside: bool = False) -> bytes:
    """Return a model with a variable to which each run adds its input, and which begins with what `make` computes.

    With `inside` a branch of the main graph calls what computes it.
    """
    sketch = Sketch()
    if inside:
        condition, x, y = sketch.input((), "BOOL"), sketch.input((1,)), sketch.tensor((1,))
        sketch.operator("IF", [condition, x], [y], ("IfOptions", {"then_subgraph_index": 1, "else_subgraph_index": 1}))
        sketch.outputs(y)
        sketch.begin("branch")
    sketch.operator("CALL_ONCE", [], [], ("CallOnceOptions", {"init_subgraph_index": 1 + inside}))
    x, handle, before, after = sketch.input((1,), name="x"), sketch.tensor((), "RESOURCE"), sketch.tensor((1,)), sketch.tensor((1,))
    sketch.operator("VAR_HANDLE", [], [handle], ("VarHandleOptions", {"shared_name": "sum"}))
    sketch.operator("READ_VARIABLE", [handle], [before])
    sketch.operator("ADD", [before, x], [after])
    sketch.operator("ASSIGN_VARIABLE", [handle, after], [])
    sketch.outputs(after)
    sketch.begin("once")
    handle = sketch.tensor((), "RESOURCE")
    sketch.operator("VAR_HANDLE", [], [handle], ("VarHandleOptions", {"shared_name": "sum"}))
    sketch.operator("ASSIGN_VARIABLE", [handle, make(sketch)], [])
    return sketch.model()


def _half(sketch: Sketch) -> int:
    made = sketch.tensor((1,))
    sketch.operator("DEQUANTIZE", [sketch.constant(np.array([10], np.float16))], [made])
    return made


def _integer(sketch: Sketch) -> int:
    made = sketch.tensor((1,))
    sketch.operator("DEQUANTIZE", [sketch.constant(np.array([23], np.int8), ([0.5], [3]))], [made])
    return made


def _sum(sketch: Sketch) -> int:
    made = sketch.tensor((1,))
    sketch.operator("ADD", [_half(sketch), sketch.constant(np.array([0], np.float32))], [made])
    return made


@pytest.mark.parametrize("make", [_half, _integer, _sum])
def test_variables_begin_with_what_a_subgraph_computes(make: Assign) -> None:
    """Of a narrower constant, or by any operators; again after they are reset."""
    session = sardonyx.InferenceSession(_counting(make))
    feed = {"x": np.array([2], np.float32)}
    for _ in range(2):
        assert [session.run(None, feed)[0].tolist() for _ in range(3)] == [[12], [14], [16]]
        session.reset_all_variables()


def test_a_narrow_constant_takes_no_node() -> None:
    """Runs add, and give out what they keep."""
    session = sardonyx.InferenceSession(_counting(_half))
    assert sorted(place.op_type for place in session.explain()) == ["Add", "Identity"]


def test_computed_beginnings_in_branches_are_refused() -> None:
    """By the variable's name."""
    with pytest.raises(errors.NotImplemented, match="'sum' gets a value that is computed"):
        sardonyx.InferenceSession(_counting(_sum, inside=True))
