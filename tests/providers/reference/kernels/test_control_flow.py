"""If, Loop, Scan and SequenceMap over bodies that are Python functions."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Graph, TensorType, Value, symbol


class FunctionBody:
    """A body that calls a Python function instead of running a graph."""

    def __init__(self, function: Callable[..., list[Any]], inputs: int, outputs: int) -> None:
        self.input_count = inputs
        self.output_count = outputs
        self._function = function

    def __call__(self, *inputs: Any) -> list[Any]:
        assert len(inputs) == self.input_count
        return self._function(*inputs)


class FunctionBodyWithGraph(FunctionBody):
    """The same, with a graph that states the types of its outputs."""

    def __init__(self, function: Callable[..., list[Any]], inputs: int, outputs: Sequence[TensorType]) -> None:
        super().__init__(function, inputs, len(outputs))
        self.graph = Graph(outputs=[Value(str(index), type) for index, type in enumerate(outputs)])


TRUE, FALSE = np.array(True), np.array(False)
BOOL, FLOATS = TensorType(DataType.BOOL, ()), TensorType(DataType.FLOAT, (2,))


def f32(*values: float) -> Array:
    return np.array(values, np.float32)


def trips(count: int) -> Array:
    return np.array(count, np.int64)


SUM = FunctionBody(lambda i, cond, total: [cond, total + np.float32(i), total], 3, 3)
"""Loop body: carries a running sum of the iteration numbers and scans out its old value."""

ADD = FunctionBody(lambda state, x: [state + x, state + x], 2, 2)
"""Scan body: a cumulative sum."""


@pytest.mark.parametrize("cond", [TRUE, np.array([True]), np.array([[True]])])
def test_If_runs_the_branch_that_holds(cond: Array) -> None:
    """The condition may have any rank with one element; outputs come as they are, sequences included."""
    then_branch = FunctionBody(lambda: [f32(1), [f32(2)]], 0, 2)
    else_branch = FunctionBody(lambda: pytest.fail("the other branch ran"), 0, 2)
    tensor, sequence = run_op("If", cond, then_branch=then_branch, else_branch=else_branch)
    assert tensor == 1
    assert sequence == [f32(2)]


def test_If_takes_the_else_branch() -> None:
    """A false condition runs else_branch alone."""
    then_branch = FunctionBody(lambda: pytest.fail("the other branch ran"), 0, 1)
    assert run_op("If", FALSE, then_branch=then_branch, else_branch=FunctionBody(lambda: [None], 0, 1)) == (None,)


def test_If_needs_one_element() -> None:
    """Two conditions are an error."""
    with pytest.raises(InvalidArgument, match=r"cond has shape \(2,\)"):
        run_op("If", np.array([True, False]), then_branch=SUM, else_branch=SUM)


def test_Loop_counts_to_its_trip_count_and_stacks_scan_outputs() -> None:
    """The iteration number is an int64 scalar starting at 0."""
    total, seen = run_op("Loop", trips(4), TRUE, f32(10, 20), body=SUM)
    np.testing.assert_array_equal(total, [16, 26])
    np.testing.assert_array_equal(seen, [[10, 20], [10, 20], [11, 21], [13, 23]])


@pytest.mark.parametrize("count", [None, trips(100)])
def test_Loop_ends_when_the_body_says_so(count: Array | None) -> None:
    """A false condition from the body is the last word on the iteration after it."""
    body = FunctionBody(lambda i, cond, x: [np.asarray(i < 2), x + 1], 3, 2)
    assert run_op("Loop", count, TRUE, f32(0), body=body)[0] == 3


@pytest.mark.parametrize(("count", "cond"), [(trips(0), TRUE), (trips(-5), None), (trips(3), FALSE), (None, np.array([False]))])
def test_Loop_without_iterations_returns_what_it_was_given(count: Array | None, cond: Array | None) -> None:
    """Carried values pass; a scan output is empty with the type that the model states."""
    total, seen = run_op("Loop", count, cond, f32(7), body=SUM, outputs=2, output_types=(DataType.FLOAT, DataType.INT32))
    np.testing.assert_array_equal(total, [7])
    assert (seen.shape, seen.dtype) == ((0,), np.int32)


def test_Loop_without_iterations_takes_trailing_dimensions_from_the_body() -> None:
    """Dimensions that the body leaves open are 0."""
    body = FunctionBodyWithGraph(lambda *_: [], 3, [BOOL, FLOATS, TensorType(DataType.INT8, (3, symbol("n")))])
    _, seen = run_op("Loop", trips(0), TRUE, f32(7), body=body, outputs=2, output_types=(DataType.FLOAT, DataType.DOUBLE))
    assert (seen.shape, seen.dtype) == ((0, 3, 0), np.float64)


def test_Loop_without_iterations_takes_the_type_from_the_body_where_the_node_has_none() -> None:
    """The node's own type comes first."""
    body = FunctionBodyWithGraph(lambda *_: [], 3, [BOOL, FLOATS, TensorType(DataType.INT8)])
    _, seen = run_op("Loop", trips(0), TRUE, f32(7), body=body, outputs=2)
    assert (seen.shape, seen.dtype) == ((0,), np.int8)


def test_Loop_carries_sequences_and_optionals() -> None:
    """A list grows, an optional fills; neither needs a shape."""
    body = FunctionBody(lambda i, cond, seq, opt: [cond, [*(seq or []), i], i], 4, 3)
    sequence, optional = run_op("Loop", trips(3), TRUE, [], None, body=body)
    assert [int(x) for x in sequence] == [0, 1, 2]
    assert optional == 2


def test_Loop_may_change_the_shape_of_carried_values() -> None:
    """Only scan outputs must keep theirs."""
    body = FunctionBody(lambda i, cond, x: [cond, np.concatenate([x, x])], 3, 2)
    assert run_op("Loop", trips(5), TRUE, f32(1), body=body)[0].shape == (32,)


def test_Loop_stacks_strings_and_scalars() -> None:
    """Scalars become a vector; strings stay objects."""
    body = FunctionBody(lambda i, cond: [cond, np.array(str(i), object)], 2, 2)
    (texts,) = run_op("Loop", trips(3), TRUE, body=body)
    assert texts.tolist() == ["0", "1", "2"]
    assert texts.dtype == object


def test_Loop_is_linear_in_its_trips() -> None:
    """100,000 iterations with a scan output take seconds at most, not minutes."""
    start = time.process_time()
    _, seen = run_op("Loop", trips(100_000), TRUE, f32(0), body=SUM)
    assert seen.shape == (100_000, 1)
    assert time.process_time() - start < 20


def test_Loop_refuses_scan_outputs_that_change() -> None:
    """The message lists the shapes that occurred."""
    body = FunctionBody(lambda i, cond: [cond, np.zeros(int(i))], 2, 2)
    with pytest.raises(InvalidArgument, match=r"float64\[0\], float64\[1\]"):
        run_op("Loop", trips(2), TRUE, body=body)


def test_Loop_checks_the_body_against_the_node() -> None:
    """A body with another number of inputs is an error before anything runs."""
    with pytest.raises(InvalidArgument, match="takes 3 inputs, but the node gives it 4"):
        run_op("Loop", trips(1), TRUE, f32(1), f32(2), body=SUM)


def test_Scan_carries_state_over_slices() -> None:
    """The cumulative sum along axis 0."""
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    final, sums = run_op("Scan", f32(0, 0), x, body=ADD, num_scan_inputs=1)
    np.testing.assert_array_equal(sums, np.cumsum(x, axis=0))
    np.testing.assert_array_equal(final, x.sum(axis=0))


@pytest.mark.parametrize("axis", [1, -1])
def test_Scan_axes_and_directions(axis: int) -> None:
    """Reading backwards and prepending gives the sum of what follows, along the chosen axes."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    _, sums = run_op(
        "Scan",
        f32(0, 0),
        x,
        body=ADD,
        num_scan_inputs=1,
        scan_input_axes=(axis,),
        scan_input_directions=(1,),
        scan_output_axes=(axis,),
        scan_output_directions=(1,),
    )
    np.testing.assert_array_equal(sums, np.cumsum(x[:, ::-1], axis=1)[:, ::-1])


def test_Scan_zips_several_inputs() -> None:
    """Without state the body maps over tuples of slices; elements of a vector arrive as 0-d arrays."""
    body = FunctionBody(lambda a, b: [np.asarray(a * b), np.asarray(a.ndim)], 2, 2)
    products, ranks = run_op("Scan", f32(1, 2, 3), f32(4, 5, 6), body=body, num_scan_inputs=2)
    np.testing.assert_array_equal(products, [4, 10, 18])
    np.testing.assert_array_equal(ranks, [0, 0, 0])


def test_Scan_over_nothing() -> None:
    """State passes; the scan output is empty with the stated type and shape."""
    body = FunctionBodyWithGraph(lambda *_: [], 2, [FLOATS, FLOATS])
    types = (DataType.FLOAT, DataType.FLOAT16)
    final, sums = run_op(
        "Scan", f32(1, 2), np.zeros((0, 2), np.float32), body=body, num_scan_inputs=1, outputs=2, output_types=types
    )
    np.testing.assert_array_equal(final, [1, 2])
    assert (sums.shape, sums.dtype) == ((0, 2), np.float16)


def test_Scan_without_elements_takes_sizes_from_what_it_is_given() -> None:
    """Of the state and of an element; what they do not say is 0."""
    a, b, c = (symbol(name) for name in "abc")
    body = FunctionBodyWithGraph(
        lambda *values: list(values), 2, [TensorType(DataType.FLOAT, (a,)), TensorType(DataType.FLOAT, (b, a + b, c))]
    )
    body.graph.inputs = [Value("s", TensorType(DataType.FLOAT, (a,))), Value("x", TensorType(DataType.FLOAT, (b,)))]
    _, scanned = run_op("Scan", f32(1, 2), np.zeros((0, 3), np.float32), body=body, num_scan_inputs=1, outputs=2)
    assert scanned.shape == (0, 3, 5, 0)


@pytest.mark.parametrize(
    ("inputs", "attributes", "message"),
    [
        ((f32(1), f32(1, 2)), {"num_scan_inputs": 3}, "num_scan_inputs is 3"),
        ((f32(1, 2), f32(1)), {"num_scan_inputs": 2}, r"lengths \[2, 1\]"),
        ((f32(1), f32(1, 2)), {"num_scan_inputs": 1, "scan_input_axes": (4,)}, "axis 4 is out of range"),
        ((f32(1), f32(1, 2)), {"num_scan_inputs": 1, "scan_input_axes": (0, 0)}, "has 2 entries; expected 1"),
        ((f32(1), f32(1, 2)), {"num_scan_inputs": 1, "scan_output_axes": (3,)}, "axis 3 is out of range"),
    ],
)
def test_Scan_names_bad_arguments(inputs: Sequence[Array], attributes: dict[str, Any], message: str) -> None:
    """The message holds what was found."""
    with pytest.raises(InvalidArgument, match=message):
        run_op("Scan", *inputs, body=ADD, **attributes)


@pytest.mark.parametrize("backward", [0, 1])
def test_Scan_8_ends_each_batch_element_on_its_own(backward: int) -> None:
    """Axis 0 is the batch, axis 1 the steps; outputs are zero behind sequence_lens; reverse means within the length."""
    x = np.arange(1, 7, dtype=np.float32).reshape(2, 3, 1)
    start = np.zeros((2, 1), np.float32)
    final, sums = run_op("Scan", np.array([2, 3]), start, x, body=ADD, num_scan_inputs=1, directions=(backward,), version=8)
    np.testing.assert_array_equal(final, [[3], [15]])
    expected = [[2, 3, 0], [6, 11, 15]] if backward else [[1, 3, 0], [4, 9, 15]]
    np.testing.assert_array_equal(sums[:, :, 0], expected)


def test_Scan_8_without_sequence_lens_takes_all_steps() -> None:
    """The input may be left out."""
    x = np.ones((2, 3, 1), np.float32)
    final, _ = run_op("Scan", None, np.zeros((2, 1), np.float32), x, body=ADD, num_scan_inputs=1, version=8)
    np.testing.assert_array_equal(final, [[3], [3]])


def test_Scan_8_checks_sequence_lens() -> None:
    """A length beyond the steps is an error."""
    with pytest.raises(InvalidArgument, match="lengths between 0 and 3"):
        run_op("Scan", np.array([4]), f32(0)[None], np.ones((1, 3, 1), np.float32), body=ADD, num_scan_inputs=1, version=8)


def test_SequenceMap_walks_sequences_together_and_repeats_tensors() -> None:
    """Each output of the body is a sequence."""
    body = FunctionBody(lambda a, b, t: [a + b + t, a], 3, 2)
    sums, same = run_op("SequenceMap", [f32(1), f32(2)], [f32(10), f32(20)], f32(100), body=body)
    assert [float(x[0]) for x in sums] == [111, 122]
    assert [float(x[0]) for x in same] == [1, 2]


def test_SequenceMap_over_an_empty_sequence() -> None:
    """Every output is an empty sequence."""
    assert run_op("SequenceMap", [], body=FunctionBody(lambda a: [a, a], 1, 2)) == ([], [])


def test_SequenceMap_needs_equal_lengths() -> None:
    """A shorter second sequence is an error."""
    with pytest.raises(InvalidArgument, match="input 1 is a sequence of 1; the first input has 2"):
        run_op("SequenceMap", [f32(1), f32(2)], [f32(1)], body=FunctionBody(lambda a, b: [a], 2, 1))
