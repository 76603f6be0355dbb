"""Partitions compiled for the reference provider."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.models import graph

from sardonyx import errors
from sardonyx.cancellation import Cancellation, Flag, reset_cancellation, set_cancellation
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument, InvalidGraph, RunTerminated
from sardonyx.ir import Graph, SparseTensor, Tensor
from sardonyx.provider import Body
from sardonyx.providers.reference.algorithms.blocks import BLOCK_ELEMENTS, map_blocks
from sardonyx.providers.reference.algorithms.cast_string import parse_strings, print_numbers
from sardonyx.providers.reference.kernels.random import random_normal, random_uniform
from sardonyx.providers.reference.program import ReferenceProgram, dense


def _no_body(body: Graph) -> Body:
    raise KeyError(body)


def _program(text: str) -> ReferenceProgram:
    held = graph(text)
    return ReferenceProgram(tuple(held), held.inputs, tuple(held.initializers.values()), held.outputs, _no_body)


def test_calls_run_in_order_over_slots() -> None:
    """Inputs, constants and results meet in the frame."""
    program = _program("graph(x: float[2]) -> (y: float[2]) {\nk: float[2] = [1, 2]\na = Add(x, k)\ny = Mul(a, a)\n}")
    (y,) = program.run(None, [np.float32([1, 1])], (), None)
    assert y.tolist() == [4, 9]


def test_a_program_keeps_nothing_between_runs() -> None:
    """The frame of one run is not the next one's."""
    program = _program("graph(x: float[2]) -> (y: float[2]) {\na = Neg(x)\ny = Neg(a)\n}")
    first = program.run(None, [np.float32([1, 2])], (), None)
    second = program.run(None, [np.float32([3, 4])], (), None)
    assert (first[0].tolist(), second[0].tolist()) == ([1, 2], [3, 4])


def test_an_optional_input_that_is_left_out_arrives_as_none() -> None:
    """Clip without a minimum."""
    program = _program("graph(x: float[3]) -> (y: float[3]) {\nhigh: float[] = 1.0\ny = Clip(x, _, high)\n}")
    assert program.run(None, [np.float32([-5, 0, 5])], (), None)[0].tolist() == [-5, 0, 1]


def test_a_kernels_refusal_names_the_node_and_its_inputs() -> None:
    """The kernel knows no names; the program adds them."""
    program = _program("graph(x: float[2], y: float[3]) -> (z: float[2]) {\nz = Add(x, y) @sum\n}")
    with pytest.raises(InvalidArgument, match=r"node 'sum' \(Add-21\) on \(float32\[2\], float32\[3\]\)"):
        program.run(None, [np.zeros(2, np.float32), np.zeros(3, np.float32)], (), None)


def test_an_attribute_that_a_view_refuses_names_the_node() -> None:
    """Views are made before the first run, and know no names."""
    with pytest.raises(InvalidGraph, match=r"node 'pool' \(GlobalLpPool-21 -> y\): p=0, expected a number above 0"):
        _program("graph(x: float[1, 2, 3]) -> (y) {\ny = GlobalLpPool(x) {p = 0} @pool\n}")


def test_a_sparse_tensor_becomes_dense() -> None:
    """Indices are flat, or one row per element."""
    values = Tensor.from_array(np.float32([5, 6]))
    flat = SparseTensor(values, Tensor.from_array(np.int64([1, 3])), (2, 2))
    rows = SparseTensor(values, Tensor.from_array(np.int64([[0, 1], [1, 1]])), (2, 2))
    assert dense(flat).tolist() == dense(rows).tolist() == [[0, 5], [0, 6]]


def test_a_sparse_index_outside_the_shape_is_refused() -> None:
    """A hostile index writes nowhere."""
    bad = SparseTensor(Tensor.from_array(np.float32([5])), Tensor.from_array(np.int64([4])), (2, 2))
    with pytest.raises(InvalidArgument, match="index outside"):
        dense(bad)


def test_a_call_that_the_kernel_does_not_take_is_refused_when_compiled() -> None:
    """An attribute that it cannot do without is missing, or there are more inputs than it takes."""
    with pytest.raises(InvalidGraph, match=r"node 'n' .*the attributes \['to'\] are missing"):
        _program("graph(x: float[2]) -> (y) {\ny = Cast(x) @n\n}")
    with pytest.raises(errors.NotImplemented, match="has 2 inputs; the reference kernel takes 1"):
        _program("graph(x: float[2]) -> (y) {\ny = Relu(x, x) @n\n}")


def test_a_failure_inside_a_kernel_says_what_the_inputs_are() -> None:
    """The failure itself, in NumPy's words, is the cause."""
    program = _program("graph(x: float[2]) -> (y) {\ny = Exp(x) @n\n}")
    with pytest.raises(InvalidArgument, match=r"node 'n' \(Exp-21\) on \(object\[1\]\): the operator does not compute") as caught:
        program.run(None, [np.array(["a"], object)], (), None)
    assert isinstance(caught.value.__cause__, TypeError)


def test_an_output_that_a_kernel_does_not_make_and_others_read_is_told() -> None:
    """BatchNormalization gives statistics in training only."""
    held = graph("""graph(x: float[1, 2], s: float[2]) -> (y: float[1, 2], m: float[2]) {
        y, m: float[2], v: float[2] = BatchNormalization(x, s, s, s, s)
    }""")
    program = ReferenceProgram(tuple(held), held.inputs, (), held.outputs, _no_body)
    with pytest.raises(InvalidGraph, match="BatchNormalization.* its output 1 'm', which is read, is not made by this operator"):
        program.run(None, [np.ones((1, 2), np.float32), np.ones(2, np.float32)], (), None)


def test_operators_that_only_move_may_be_called_as_they_are() -> None:
    """For each output what makes it, and of which inputs; constants are given."""
    program = _program("""graph(x: float[1, 2], i: int64[2]) -> (y, z) {
        c: string[2] = ["a", "b"]
        y = ai.onnx.ml.ZipMap(x) {classlabels_int64s = [4, 5]}
        z = Gather(c, i)
    }""")
    plain = program.plain_calls()
    assert plain is not None
    (maps, first), (texts, second) = plain.calls
    assert (first, second, plain.outputs) == ((0,), (1,), (2, 3))
    assert maps(np.ones((1, 2), np.float32)) == [{4: 1, 5: 1}]
    assert texts(np.array([1, 0])).tolist() == ["b", "a"]


def test_calls_read_what_calls_before_them_made() -> None:
    """Texts that are reshaped and cut on their way to numbers; constants stand where the node has them."""
    program = _program("""graph(x: string[2, 1]) -> (y: float[2, 2]) {
        s: int64[1] = [-1]
        flat: string[2] = Reshape(x, s)
        low: string[2] = StringNormalizer(flat) {case_change_action = "LOWER"}
        words: string[2, k] = com.microsoft.Tokenizer(low) {mark = 0, mincharnum = 1, pad_value = "", tokenexp = "[a-z]+"}
        y = TfIdfVectorizer(words) {mode = "TF", min_gram_length = 1, max_gram_length = 1, max_skip_count = 0, ngram_counts = [0],
            ngram_indexes = [0, 1], pool_strings = ["a", "b"]}
    }""")
    plain = program.plain_calls()
    assert plain is not None
    values: list[Any] = [np.array([["A b,a"], ["B"]], object)]
    for call, arguments in plain.calls:
        values.append(call(*[values[place] for place in arguments]))
    assert [values[place].tolist() for place in plain.outputs] == [[[2, 1], [0, 1]]]


def test_an_output_may_view_what_a_call_has_made_for_it_alone() -> None:
    """Labels are taken, and given another shape."""
    program = _program("""graph(i: int64[1, 2]) -> (z: string[2]) {
        c: string[2] = ["a", "b"]
        y: string[1, 2] = ai.onnx.ml.ArrayFeatureExtractor(c, i)
        s: int64[1] = [-1]
        z = Reshape(y, s)
    }""")
    plain = program.plain_calls()
    assert plain is not None
    values: list[Any] = [np.array([[1, 0]])]
    for call, arguments in plain.calls:
        values.append(call(*[values[place] for place in arguments]))
    assert values[plain.outputs[0]].tolist() == ["b", "a"]


@pytest.mark.parametrize(
    "text",
    [
        "graph(x: float[2]) -> (y) { y = Exp(x) }",
        "graph(x: float[1,2]) -> (z) { y = Flatten(x) \n z = Gather(y, i) \n i: int64[1] = [0] }",
        "graph(x: string[1,2]) -> (y) { y = Flatten(x) }",
        'graph(i: int64[2]) -> (y, z) { c: string[2] = ["a", "b"] y: string[2] = Gather(c, i) z = Flatten(y) }',
        "graph(x: float[3]) -> (y, y2) { i: int64[1] = [0] \n y = Gather(x, i) \n y2 = Exp(x) }",
    ],
)
def test_programs_that_compute_or_give_out_views_are_called_by_run_alone(text: str) -> None:
    """Of operators that compute, and where an output is the memory of an input."""
    assert _program(text).plain_calls() is None


def _convolve_transposed() -> None:
    text = "graph(x: float[1, 1, 9], w: float[1, 1, 3]) -> (y) {\ny = ConvTranspose(x, w)\n}"
    _program(text).run(None, [np.ones((1, 1, 9), np.float32), np.ones((1, 1, 3), np.float32)], (), None)


@pytest.mark.parametrize(
    "work",
    [
        lambda: print_numbers(np.arange(200), np.dtype(np.int64)),
        lambda: parse_strings(np.array(["1"] * 200, object), DataType.INT64),
        lambda: map_blocks(lambda x, out: np.copyto(out, x), np.zeros(100 * BLOCK_ELEMENTS, np.float32)),
        lambda: random_normal(None, shape=(3,)),
        lambda: random_uniform(None, shape=(3,)),
        _convolve_transposed,
    ],
    ids=["print", "parse", "blocks", "normal", "uniform", "transposed convolution"],
)
def test_long_kernels_are_ended_between_their_blocks(work: Callable[[], object]) -> None:
    """A run that is to end is ended in the middle of a node."""
    token = set_cancellation(Cancellation(Flag(True), lambda: RunTerminated("ended")))
    try:
        with pytest.raises(RunTerminated):
            work()
    finally:
        reset_cancellation(token)
