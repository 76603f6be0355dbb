"""What a function may do, and what is said of one that does something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.custom_operators import mine_session

import sardonyx
from sardonyx.errors import InvalidArgument, RuntimeException

X = np.float32([1, 2])
GRAPH = "(x: float[n]) -> (y: float[n]) {\ny = mine.F(x) @here\n}"


def _run(function: Callable[..., Any], **arguments: Any) -> Any:
    return mine_session(GRAPH, sardonyx.op("mine", "F", **arguments)(function)).run(None, {"x": X})[0]


def test_a_value_error_keeps_its_text_and_names_node_and_model() -> None:
    """It is an InvalidArgument: the inputs are wrong."""

    def function(x: Any) -> Any:
        raise ValueError("x must be sorted")

    with pytest.raises(InvalidArgument, match=r'model main: node "here" \(mine\.F, opset 1\): x must be sorted') as caught:
        _run(function)
    assert isinstance(caught.value.__cause__, Exception)


def test_any_other_error_is_one_of_the_run() -> None:
    """With its class, text and node."""

    def function(x: Any) -> Any:
        return {}["missing"]

    with pytest.raises(RuntimeException, match=r"node \"here\" \(mine\.F, opset 1\): KeyError: 'missing'"):
        _run(function)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (X.astype(np.float64), r"mine\.F returned elements of double for output 0 'y', which is declared as float; return array"),
        ((), r"mine\.F returned 0 outputs; the node has 1"),
        (np.array(["2020"], "datetime64[Y]"), r"mine\.F returned datetime64\[Y\] for output 0 'y', which no tensor holds"),
    ],
)
def test_an_output_that_was_not_declared_is_blamed_on_the_operator(result: Any, message: str) -> None:
    """With what came and what was expected."""
    with pytest.raises(RuntimeException, match=message):
        _run(lambda x: result)


def test_an_output_of_another_shape_than_the_shape_function_gives_is_blamed_on_the_operator() -> None:
    """What the model declares is not believed; what the operator's own function says is."""
    with pytest.raises(RuntimeException, match=r"mine\.F returned the shape \[1, 2\] for output 0 'y', which is declared as"):
        _run(lambda x: np.float32([[1, 2]]), shape=lambda x: x)


def test_inputs_cannot_be_written_to() -> None:
    """They may be the caller's own."""

    def function(x: Any) -> Any:
        x += 1
        return x

    with pytest.raises(InvalidArgument, match="read-only"):
        _run(function)
    assert X.tolist() == [1, 2]


def test_what_a_user_gets_is_his_own_though_the_function_returned_its_input() -> None:
    """Writeable, and of other memory than the feed."""
    made = _run(lambda x: x)
    assert made.flags.writeable
    assert not np.shares_memory(made, X)


def test_a_number_stands_for_an_array() -> None:
    """A NumPy scalar of the right type, for a tensor of rank 0."""
    session = mine_session("(x: float[n]) -> (y: float[]) {\ny = mine.F(x)\n}", sardonyx.op("mine", "F")(lambda x: x.sum()))
    assert session.run(None, {"x": X})[0] == 3


@pytest.mark.parametrize(("result", "what"), [(None, "None"), ([X, X], "a list"), ({}, "a dict"), (iter(()), "a tuple_iterator")])
def test_what_is_no_array_is_named_as_what_it_is(result: Any, what: str) -> None:
    """NumPy would wrap it in an array of objects."""
    with pytest.raises(RuntimeException, match=f"mine.F returned {what} for output 0 'y', which is declared as a tensor of float"):
        _run(lambda x: result, outputs=["x"])
