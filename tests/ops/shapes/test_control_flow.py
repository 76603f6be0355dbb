"""Facts about If, Loop, Scan and SequenceMap."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.infer_op import UNKNOWN_DIM, A, B, error_of, floats, infer_op, infer_shape, plain, scalar

from sardonyx.dtypes import DataType
from sardonyx.ir import Graph, Node, SequenceType, Tensor, TensorType, Value
from sardonyx.ops.fact import UNKNOWN, Fact, known, tensor
from sardonyx.ops.infer import infer_graph

BOOL = tensor(DataType.BOOL, ())
TRUE = known(DataType.BOOL, np.array(True))
VERSION = 21


def zeros(*shape: int) -> Graph:
    """A branch without inputs that gives zeros of this shape."""
    made = Node("ConstantOfShape", [constant(shape)], [Value("zeros")], version=VERSION)
    return Graph("zeros", [], made.outputs, [], [made])


def constant(data: Any) -> Value:
    tensor_ = Tensor.from_array(np.asarray(data))
    return Value("constant", TensorType(tensor_.dtype, tensor_.shape), tensor_)


def body(*steps: str) -> Graph:
    """A Loop body (i, cond, state) -> (cond, state changed by `steps`, a copy of it)."""
    index, condition, state = Value("i"), Value("cond"), Value("state")
    kept = Node("Identity", [condition], [Value("cond_out")], version=VERSION)
    nodes, value = [kept], state
    for step in steps:
        inputs = [value, value] if step == "Concat" else [value]
        nodes.append(Node(step, inputs, [Value("")], {"axis": 0} if step == "Concat" else {}, version=VERSION))
        value = nodes[-1].output
    return Graph("body", [index, condition, state], [kept.output, value, value], [], nodes)


def test_if_takes_the_branch_of_a_known_condition() -> None:
    """A known condition picks its branch."""
    assert infer_shape("If", TRUE, then_branch=zeros(2, 3), else_branch=zeros(4)) == (2, 3)


def test_if_keeps_what_the_branches_share() -> None:
    """Of an unknown condition equal sizes are known, others are not; different ranks are unknown."""
    assert infer_shape("If", BOOL, then_branch=zeros(2, 3), else_branch=zeros(2, 4)) == (2, UNKNOWN_DIM)
    assert infer_shape("If", BOOL, then_branch=zeros(2, 3), else_branch=zeros(2)) is None


def test_branches_need_as_many_outputs_as_the_node() -> None:
    """A branch with another number of outputs is refused."""
    message = error_of("If", BOOL, then_branch=zeros(2), else_branch=zeros(2), outputs=2)
    assert "then_branch has 1 outputs, but the node has 2" in message


def test_loop_state_of_fixed_shape() -> None:
    """A state that the body leaves in shape keeps it, and a copy is stacked."""
    facts = infer_op("Loop", scalar(5), TRUE, floats(A, 3), body=body("Relu"), outputs=2)
    assert plain(facts[0]) == (A, 3)
    assert plain(facts[1]) == (5, A, 3)


def test_loop_state_that_grows_is_unknown_in_that_axis() -> None:
    """An axis that changes from one iteration to the next is unknown, the others stay."""
    facts = infer_op("Loop", scalar(5), TRUE, floats(2, B), body=body("Concat"), outputs=2)
    assert plain(facts[0]) == (UNKNOWN_DIM, B)
    assert plain(facts[1]) == (5, UNKNOWN_DIM, B)


def test_sizes_of_a_loop_that_may_not_run() -> None:
    """Sizes of its scan outputs that are no numbers are not those of the body, and 0 where it never runs; others stay."""
    may = infer_op("Loop", tensor(DataType.INT64, ()), TRUE, floats(A, 3), body=body("Relu"), outputs=2)
    assert plain(may[0]) == (A, 3)
    assert plain(may[1]) == (UNKNOWN_DIM, UNKNOWN_DIM, 3)
    never = infer_op("Loop", scalar(0), TRUE, floats(A, 3), body=body("Relu"), outputs=2)
    assert plain(never[1]) == (0, 0, 3)


def test_loop_state_that_changes_rank_is_unknown() -> None:
    """A state whose rank changes has no known shape."""
    (state, _) = infer_op("Loop", scalar(5), TRUE, floats(2, 3), body=body("Shape"), outputs=2)
    assert state.type is None or state.shape is None


def test_loop_checks_its_body() -> None:
    """The body's inputs and outputs must match the node's."""
    assert "expected 4 and 3" in error_of("Loop", scalar(5), TRUE, floats(1), floats(1), body=body("Relu"), outputs=2)


def test_scan_stacks_along_the_scanned_axis() -> None:
    """The state stays, and outputs are as long as the inputs."""
    state, item = Value("state"), Value("item")
    added = Node("Add", [state, item], [Value("sum")], version=VERSION)
    graph = Graph("body", [state, item], [added.output, added.output], [], [added])
    facts = infer_op("Scan", floats(3), floats(A, 3), body=graph, num_scan_inputs=1, outputs=2)
    assert plain(facts[0]) == (3,)
    assert plain(facts[1]) == (A, 3)
    turned = infer_op(
        "Scan", floats(3), floats(3, A), body=graph, num_scan_inputs=1, scan_input_axes=(1,), scan_output_axes=(-1,), outputs=2
    )
    assert plain(turned[1]) == (3, A)


def test_scan_8_has_a_batch() -> None:
    """Before opset 9 everything had a batch axis in front."""
    state, item = Value("state"), Value("item")
    added = Node("Add", [state, item], [Value("sum")], version=8)
    graph = Graph("body", [state, item], [added.output, added.output], [], [added])
    facts = infer_op("Scan", None, floats(B, 3), floats(B, A, 3), body=graph, num_scan_inputs=1, outputs=2, version=8)
    assert plain(facts[0]) == (B, 3)
    assert plain(facts[1]) == (B, A, 3)


def test_scan_checks_its_counts() -> None:
    """There must be scan inputs, and no more than inputs."""
    assert "num_scan_inputs is 3 for 2 inputs" in error_of("Scan", floats(3), floats(A, 3), body=body(), num_scan_inputs=3)


def test_sequence_map_maps_elements() -> None:
    """Each element of a sequence is mapped; a tensor is passed to every call."""
    first, second = Value("first"), Value("second")
    product = Node("MatMul", [first, second], [Value("product")], version=VERSION)
    graph = Graph("body", [first, second], product.outputs, [], [product])
    sequence = Fact(SequenceType(TensorType(DataType.FLOAT, (A, 3))))
    (fact,) = infer_op("SequenceMap", sequence, floats(3, 5), body=graph)
    assert fact.type == SequenceType(TensorType(DataType.FLOAT, (A, 5)))
    assert infer_op("SequenceMap", UNKNOWN, floats(3, 5), body=graph)[0].type is not None


def test_dead_branch_does_not_matter() -> None:
    """A branch that could never run gives no error, and the other one's shape."""
    x, condition = Value("x", TensorType(DataType.FLOAT, (2, 3))), Value("c", TensorType(DataType.BOOL, ()))
    squeezed = Node("Squeeze", [x, constant([0])], [Value("squeezed")], version=VERSION)
    dead = Graph("dead", [], squeezed.outputs, [], [squeezed])
    branch = Node("If", [condition], 1, {"then_branch": dead, "else_branch": zeros(4)}, version=VERSION)
    facts = infer_graph(Graph("g", [x, condition], branch.outputs, [], [branch]))
    assert facts[branch.output].shape == (4,)


def test_body_that_cannot_run_is_not_reached() -> None:
    """A body that the shapes rule out is refused only where it surely runs; else the states are as they were."""
    graph = body("Det")
    (state, copy) = infer_op("Loop", tensor(DataType.INT64, ()), TRUE, floats(3), body=graph, outputs=2, events=1)
    assert state.shape == (3,)
    assert copy.type is None
    assert "X has shape [3]" in error_of("Loop", scalar(2), TRUE, floats(3), body=graph, outputs=2)
