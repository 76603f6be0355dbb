"""Branches, loops, variables and hash tables of TensorFlow Lite."""

from __future__ import annotations

import numpy as np
import pytest
from formats.tflite.running import run
from support.flat_models import Sketch

import sardonyx
from sardonyx import errors


def _branches() -> bytes:
    sketch = Sketch()
    condition, x, y = sketch.input((), "BOOL"), sketch.input((2,)), sketch.tensor((2,))
    sketch.operator("IF", [condition, x], [y], ("IfOptions", {"then_subgraph_index": 1, "else_subgraph_index": 2}))
    sketch.outputs(y)
    sketch.begin("negative")
    x, y = sketch.input((2,)), sketch.tensor((2,))
    sketch.operator("NEG", [x], [y])
    sketch.outputs(y)
    sketch.begin("same")
    sketch.outputs(sketch.input((2,)))
    return sketch.model()


def test_a_branch_is_chosen() -> None:
    """Also one that gives back its input."""
    x = np.array([1, 2], np.float32)
    assert run(_branches(), np.array(True), x)[0].tolist() == [-1, -2]
    assert run(_branches(), np.array(False), x)[0].tolist() == [1, 2]


def _cases(count: int) -> bytes:
    """Return a model that chooses a subgraph by number; each adds its own number times ten."""
    sketch = Sketch()
    number, x, y = sketch.input((), "INT32"), sketch.input((1,)), sketch.tensor((1,))
    options = ("StablehloCaseOptions", {"branch_subgraph_indices": list(range(1, count + 1))})
    sketch.operator("STABLEHLO_CASE", [number, x], [y], options)
    sketch.outputs(y)
    for place in range(count):
        sketch.begin(f"branch {place}")
        x, y = sketch.input((1,)), sketch.tensor((1,))
        sketch.operator("ADD", [x, sketch.constant(np.array([10 * place], np.float32))], [y])
        sketch.outputs(y)
    return sketch.model()


@pytest.mark.parametrize("count", [1, 2, 4])
def test_one_of_several_subgraphs_is_chosen_by_number(count: int) -> None:
    """The last one where there is none of that number."""
    for number in (-1, 0, 1, 2, 3, 4):
        found = run(_cases(count), np.int32(number), np.array([1], np.float32))[0]
        assert found.tolist() == [1 + 10 * (number if 0 <= number < count else count - 1)]


def test_no_branches_are_refused() -> None:
    """By the operator's name."""
    with pytest.raises(errors.InvalidFlatBuffer, match="no branches"):
        sardonyx.InferenceSession(_cases(0))


def _loop(*, growing: bool) -> bytes:
    """Return a model that doubles or lengthens x as long as a counter is below n."""
    sketch = Sketch()
    i, n, x = sketch.constant(np.int32(0)), sketch.input((), "INT32"), sketch.input((1,))
    made = [sketch.tensor((), "INT32"), sketch.tensor((), "INT32"), sketch.tensor((1,))]
    sketch.operator("WHILE", [i, n, x], made, ("WhileOptions", {"cond_subgraph_index": 1, "body_subgraph_index": 2}))
    sketch.outputs(made[2])
    sketch.begin("condition")
    i, n, x, y = sketch.input((), "INT32"), sketch.input((), "INT32"), sketch.input((1,)), sketch.tensor((), "BOOL")
    sketch.operator("LESS", [i, n], [y])
    sketch.outputs(y)
    sketch.begin("body")
    i, n, x = sketch.input((), "INT32"), sketch.input((), "INT32"), sketch.input((1,))
    j, y = sketch.tensor((), "INT32"), sketch.tensor((2,) if growing else (1,))
    sketch.operator("ADD", [i, sketch.constant(np.int32(1))], [j])
    if growing:
        sketch.operator("CONCATENATION", [x, x], [y])
    else:
        sketch.operator("ADD", [x, x], [y])
    sketch.outputs(j, n, y)
    return sketch.model()


@pytest.mark.parametrize("count", [0, 1, 5])
@pytest.mark.parametrize("growing", [False, True])
def test_a_loop_goes_on_while_its_condition_holds(count: int, growing: bool) -> None:
    """Its values may grow."""
    found = run(_loop(growing=growing), np.int32(count), np.array([3], np.float32))[0]
    assert found.tolist() == ([3] * 2**count if growing else [3 * 2**count])


def _counting() -> bytes:
    """Return a model with a variable that begins at 10, to which each run adds its input."""
    sketch = Sketch()
    sketch.operator("CALL_ONCE", [], [], ("CallOnceOptions", {"init_subgraph_index": 1}))
    handle, x = sketch.tensor((), "RESOURCE"), sketch.input((1,))
    before, after = sketch.tensor((1,)), sketch.tensor((1,))
    sketch.operator("VAR_HANDLE", [], [handle], ("VarHandleOptions", {"shared_name": "sum"}))
    sketch.operator("READ_VARIABLE", [handle], [before])
    sketch.operator("ADD", [before, x], [after])
    sketch.operator("ASSIGN_VARIABLE", [handle, after], [])
    sketch.outputs(after)
    sketch.begin("once")
    handle = sketch.tensor((), "RESOURCE")
    sketch.operator("VAR_HANDLE", [], [handle], ("VarHandleOptions", {"shared_name": "sum"}))
    sketch.operator("ASSIGN_VARIABLE", [handle, sketch.constant(np.array([10], np.float32))], [])
    return sketch.model()


def test_variables_are_kept_from_run_to_run() -> None:
    """They begin with what a subgraph assigns once."""
    session = sardonyx.InferenceSession(_counting())
    feed = {"t1": np.array([2], np.float32)}
    assert [session.run(None, feed)[0].tolist() for _ in range(3)] == [[12], [14], [16]]
    session.reset_all_variables()
    assert session.run(None, feed)[0].tolist() == [12]


def test_a_hash_table_finds_values() -> None:
    """Of words; the default for one that it lacks."""
    sketch = Sketch()
    options = ("HashtableOptions", {"table_id": 3, "key_dtype": "STRING", "value_dtype": "INT64"})
    handle = sketch.tensor((), "RESOURCE")
    sketch.operator("HASHTABLE", [], [handle], options)
    keys, values = sketch.constant(np.array(["a", "b"], object)), sketch.constant(np.array([5, 7], np.int64))
    sketch.operator("HASHTABLE_IMPORT", [handle, keys, values], [])
    found, size = sketch.tensor((3,), "INT64"), sketch.tensor((1,), "INT64")
    sketch.operator("HASHTABLE_FIND", [handle, sketch.input((3,), "STRING"), sketch.constant(np.int64(-1))], [found])
    sketch.operator("HASHTABLE_SIZE", [handle], [size])
    results = run(sketch.model([found, size]), np.array(["b", "x", "a"], object))
    assert [array.tolist() for array in results] == [[7, -1, 5], [2]]


def test_what_refers_to_nothing_is_refused() -> None:
    """A tensor of numbers is no handle."""
    sketch = Sketch()
    x, y = sketch.input((1,)), sketch.tensor((1,))
    sketch.operator("READ_VARIABLE", [x], [y])
    with pytest.raises(errors.InvalidFlatBuffer, match="refers to no variable or table"):
        sardonyx.InferenceSession(sketch.model([y]))


def test_a_loop_with_another_number_of_values_is_refused() -> None:
    """Its body has three."""
    sketch = Sketch()
    x, y = sketch.input((1,)), sketch.tensor((1,))
    sketch.operator("WHILE", [x], [y], ("WhileOptions", {"cond_subgraph_index": 1, "body_subgraph_index": 1}))
    sketch.outputs(y)
    sketch.begin("body")
    sketch.outputs(sketch.input((1,)), sketch.input((1,)))
    with pytest.raises(errors.InvalidFlatBuffer, match="it has 1 inputs and 1 outputs, and its body 2 and 2"):
        sardonyx.InferenceSession(sketch.model())
