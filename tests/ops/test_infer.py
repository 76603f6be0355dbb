"""Facts about the flow of facts through graphs."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument, InvalidGraph
from sardonyx.errors import NotImplemented as NotImplemented_
from sardonyx.ir import Attribute, AttributeKind, Dim, Function, Graph, Model, Node, Tensor, TensorType, Value, symbol
from sardonyx.ir.shape import is_anonymous
from sardonyx.ir.text import parse_model
from sardonyx.ops.fact import Fact, ShapeCall, known, shape_function, tensor
from sardonyx.ops.infer import InferenceMemory, fact_of, infer_graph, infer_node
from sardonyx.trace import Event, observe

FLOAT, INT64, BOOL = DataType.FLOAT, DataType.INT64, DataType.BOOL
BATCH, LENGTH = symbol("batch"), symbol("length")
VERSION = 18


def variable(name: str, *shape: Dim, dtype: DataType = FLOAT) -> Value:
    return Value(name, TensorType(dtype, shape))


def constant(name: str, data: Any) -> Value:
    array = Tensor.from_array(np.asarray(data))
    return Value(name, TensorType(array.dtype, array.shape), array)


def node(op_type: str, *inputs: Value | None, outputs: int = 1, version: int = VERSION, **attributes: Any) -> Node:
    made = Node(op_type, inputs, outputs, attributes, version=version, name=op_type.lower())
    for index, value in enumerate(made.outputs):
        value.name = f"{op_type.lower()}_{index}"
    return made


def graph(nodes: list[Node], inputs: list[Value], initializers: list[Value] | None = None) -> Graph:
    return Graph("g", inputs, nodes[-1].outputs, initializers or [], nodes)


def events_of(target: Model | Graph) -> list[Event]:
    seen: list[Event] = []
    with observe(seen.append):
        infer_graph(target)
    return seen


def test_types_of_values_are_set() -> None:
    """Inference sets the type of every value that it learns something about."""
    relu = node("Relu", variable("x", BATCH, 3))
    infer_graph(graph([relu], [relu.inputs[0]]))  # type: ignore[list-item]  # the input is there
    assert relu.output.type == TensorType(FLOAT, (BATCH, 3))


def test_shape_chain_resolves_to_symbols() -> None:
    """Shape, Gather, Concat and Reshape keep track of symbolic sizes."""
    x, zero, minus = variable("x", BATCH, LENGTH, 8), constant("zero", np.int64(0)), constant("minus", np.array([-1]))
    shape = node("Shape", x)
    gather = node("Gather", shape.output, zero)
    unsqueeze = node("Unsqueeze", gather.output, constant("axis", np.array([0])))
    concat = node("Concat", unsqueeze.output, minus, axis=0)
    reshape = node("Reshape", x, concat.output)
    facts = infer_graph(graph([shape, gather, unsqueeze, concat, reshape], [x], [zero, minus]))
    assert facts[reshape.output].shape == (BATCH, 8 * LENGTH)
    assert facts[concat.output].elements == [BATCH, -1]
    assert facts[concat.output].constant is None


def test_small_initializers_are_known_and_large_ones_are_not() -> None:
    """Only constants of at most 1,024 elements are read."""
    assert fact_of(constant("small", np.arange(1024))).constant is not None
    assert fact_of(constant("large", np.arange(1025))).constant is None


def test_large_initializer_is_never_read() -> None:
    """The data of a large initializer is not asked for."""

    def refuse() -> Any:
        raise AssertionError("read")

    big = Value("w", None, Tensor(FLOAT, (64, 64), refuse))
    relu = node("Relu", big)
    assert infer_graph(graph([relu], [], [big]))[relu.output].shape == (64, 64)


def test_initializer_that_is_an_input_has_no_known_value() -> None:
    """A default that the caller may override is no constant; before IR version 4 it is."""
    shape = constant("shape", np.array([2, -1]))
    x = variable("x", 4, 3)
    reshape = node("Reshape", x, shape)
    main = Graph("g", [x, shape], reshape.outputs, [shape], [reshape])
    facts = infer_graph(Model(main, {"": VERSION}, ir_version=8))
    assert all(is_anonymous(dim) for dim in facts[reshape.output].shape or ())
    assert infer_graph(Model(main, {"": VERSION}, ir_version=3))[reshape.output].shape == (2, 6)


def test_unknown_operator_leaves_outputs_as_declared() -> None:
    """An operator without shape function raises nothing and keeps what the model says, symbols excepted."""
    x, y = variable("x", 2), variable("y", BATCH, 5)
    custom = Node("Mystery", [x], [y, Value("z")], domain="my.domain", version=1)
    facts = infer_graph(Graph("g", [x], [y], [], [custom]))
    batch, size = facts[y].shape or ()
    assert is_anonymous(batch)
    assert size == 5
    assert facts[custom.outputs[1]].type is None


def test_contradicting_shape_is_overruled_with_an_event() -> None:
    """A declared shape that cannot be is replaced, and the trace says so."""
    x, y = variable("x", 2, 3), variable("y", 2, 4)
    relu = Node("Relu", [x], [y], version=VERSION, name="r")
    (event,) = events_of(Graph("g", [x], [y], [], [relu]))
    assert event.name == "infer.contradiction"
    assert event.details["declared"] == "[2, 4]"
    assert event.details["inferred"] == "[2, 3]"
    assert y.shape == (2, 3)


def test_contradicting_element_type_is_refused() -> None:
    """A declared element type that cannot be raises an error that names the node and both types."""
    x, y = variable("x", 2, 3), variable("y", 2, 3, dtype=INT64)
    relu = Node("Relu", [x], [y], version=VERSION, name="r")
    with pytest.raises(
        InvalidGraph, match=r'node "r" \(Relu, opset 18\): output "y" is declared as tensor\(int64\).*tensor\(float\)'
    ):
        infer_graph(Graph("g", [x], [y], [], [relu]))


def test_graph_output_with_an_unknown_dimension_is_not_what_its_name_says() -> None:
    """An output may bear an input's symbol and have another size: exporters name all leading dimensions `batch`."""
    x, y = variable("x", BATCH), variable("y", 1, BATCH, dtype=INT64)
    found = Node("NonZero", [x], [y], version=VERSION)
    facts = infer_graph(Graph("g", [x], [y], [], [found]))
    for shape in (y.shape, facts[y].shape):
        assert shape is not None
        assert is_anonymous(shape[1])


def test_error_names_node_and_inputs() -> None:
    """What cannot be right is refused with the node, the rule and the inputs."""
    a, b = variable("a", 2, 3), variable("b", 4, 5)
    with pytest.raises(
        InvalidGraph, match=r'node "matmul" \(MatMul, opset 18\): the inner sizes .* 3 and 4; its inputs are "a" float'
    ):
        infer_graph(graph([node("MatMul", a, b)], [a, b]))


def test_overrides_infer_on_integers_and_leave_the_model_alone() -> None:
    """With concrete input shapes all sizes are integers, and no type of the model changes."""
    x = variable("x", BATCH, LENGTH)
    flatten = node("Flatten", x, axis=0)
    main = graph([flatten], [x])
    facts = infer_graph(main, overrides={x: tensor(FLOAT, (4, 5))})
    assert facts[flatten.output].shape == (1, 20)
    assert flatten.output.type is None


def test_override_of_an_inner_value_wins() -> None:
    """A shape that is known only in the middle of a run can be given for an inner value."""
    x = variable("x", 2, 3)
    found = node("NonZero", x)
    transposed = node("Transpose", found.output)
    facts = infer_graph(graph([found, transposed], [x]), overrides={found.output: tensor(INT64, (2, 5))})
    assert facts[transposed.output].shape == (5, 2)


def test_shapes_that_do_not_fit_at_binding_are_the_arguments_fault() -> None:
    """With overrides an impossible shape raises InvalidArgument."""
    x, w = variable("x", BATCH, LENGTH), variable("w", 4, 5)
    with pytest.raises(InvalidArgument, match="for the shapes of these inputs"):
        infer_graph(graph([node("MatMul", x, w)], [x, w]), overrides={x: tensor(FLOAT, (2, 3))})


def test_declared_symbols_do_not_count_at_binding() -> None:
    """With overrides a declared symbolic dimension is unknown, as no size is bound to it."""
    x, y = variable("x", 2), variable("y", BATCH, 5)
    custom = Node("Mystery", [x], [y], domain="my.domain", version=1)
    shape = infer_graph(Graph("g", [x], [y], [], [custom]), overrides={})[y].shape or ()
    assert is_anonymous(shape[0])
    assert shape[1] == 5


def test_function_is_inferred_through_its_body() -> None:
    """A call gets what the body makes of its arguments and attributes; the body keeps no types."""
    inner = Value("inner")
    body_node = Node("Transpose", [inner], [Value("out")], version=VERSION)
    body_node.attributes["perm"] = Attribute(AttributeKind.INTS, None, reference="order")
    function = Function("local", "Turn", Graph("f", [inner], body_node.outputs, [], [body_node]), {"": VERSION})
    x, y, z = variable("x", 2, BATCH, 4), Value("y"), Value("z")
    calls = [
        Node("Turn", [x], [y], {"order": (1, 0, 2)}, domain="local", version=1),
        Node("Turn", [x], [z], domain="local", version=1),
    ]
    model = Model(Graph("g", [x], [y, z], [], calls), {"": VERSION, "local": 1})
    model.functions[function.id] = function
    infer_graph(model)
    assert y.shape == (BATCH, 2, 4)
    assert z.shape == (4, BATCH, 2)
    assert inner.type is None


def test_recursive_function_is_unknown() -> None:
    """A function that calls itself is not followed for ever."""
    inner = Value("inner")
    call = Node("Self", [inner], [Value("out")], domain="local", version=1)
    function = Function("local", "Self", Graph("f", [inner], call.outputs, [], [call]), {"": VERSION})
    x = variable("x", 2)
    outer = Node("Self", [x], [Value("y")], domain="local", version=1)
    model = Model(Graph("g", [x], outer.outputs, [], [outer]), {"": VERSION})
    model.functions[function.id] = function
    assert infer_graph(model)[outer.output].type is None


def test_values_in_subgraphs_get_types() -> None:
    """The bodies of control flow are inferred with what they capture."""
    x = variable("x", BATCH, 3)
    then, other = node("Relu", x), node("Neg", x)
    condition = variable("condition", dtype=BOOL)
    branch = node(
        "If",
        condition,
        then_branch=Graph("t", [], then.outputs, [], [then]),
        else_branch=Graph("e", [], other.outputs, [], [other]),
    )
    infer_graph(graph([branch], [x, condition]))
    assert then.output.shape == (BATCH, 3)
    assert branch.output.shape == (BATCH, 3)


def test_a_shape_function_that_fails_leaves_the_output_unknown() -> None:
    """A failure inside a shape function is told to the trace and stops nothing."""

    @shape_function("Broken", domain="test.broken")
    def broken(call: ShapeCall, x: Fact) -> Fact:
        raise IndexError("too far")

    x = variable("x", 2)
    bad = Node("Broken", [x], [Value("y")], domain="test.broken", version=1)
    (event,) = events_of(Graph("g", [x], bad.outputs, [], [bad]))
    assert event.name == "infer.gave_up"
    assert bad.output.type is None


def test_what_is_declared_where_a_shape_function_fails_is_a_type_without_a_shape() -> None:
    """Kernels write as much as the operator makes of its inputs, whatever is declared."""

    @shape_function("AlwaysBroken", domain="test.broken")
    def broken(call: ShapeCall, x: Fact) -> Fact:
        raise IndexError("too far")

    bad = Node("AlwaysBroken", [variable("x", 2)], [variable("y", 1)], domain="test.broken", version=1)
    found = infer_node(bad)[0]
    assert (found.dtype, found.shape) == (DataType.FLOAT, None)


def test_missing_required_input_infers_nothing() -> None:
    """A node that lacks an input that its shape depends on has unknown outputs."""
    bad = Node("Reshape", [None, variable("shape", 2, dtype=INT64)], [Value("y")], version=VERSION)
    assert infer_node(bad)[0].type is None


def test_infer_node_uses_given_facts_first() -> None:
    """A single node can be inferred from facts, without a graph."""
    x = variable("x", 2, 3)
    shape = node("Shape", x)
    assert infer_node(shape)[0].elements == [2, 3]
    assert infer_node(shape, {x: tensor(FLOAT, (BATCH,))})[0].elements == [BATCH]


def test_expressions_do_not_explode() -> None:
    """A chain that multiplies symbols again and again ends in an unknown size, quickly."""
    x, y = variable("x", BATCH, LENGTH), variable("y", LENGTH, BATCH)
    nodes, value = [], node("Concat", x, x, axis=0)
    nodes.append(value)
    for _ in range(60):
        shape = node("Shape", nodes[-1].output)
        total = node("Add", shape.output, shape.output)
        square = node("Mul", total.output, shape.output)
        nodes += [shape, total, square, node("Expand", y, square.output)]
    start = time.process_time()
    infer_graph(graph(nodes, [x, y]))
    assert time.process_time() - start < 2


def test_known_value_survives_only_while_small() -> None:
    """Facts drop the elements of tensors beyond 1,024."""
    assert known(INT64, np.zeros(1024, np.int64)).value is not None
    assert known(INT64, np.zeros(1025, np.int64)).value is None


def test_inference_takes_tens_of_microseconds_a_node() -> None:
    """A graph of 2,000 nodes of shape arithmetic is inferred in well under a second."""
    x = variable("x", BATCH, LENGTH, 8)
    nodes: list[Node] = []
    for _ in range(500):
        shape = node("Shape", x if not nodes else nodes[-1].output)
        gather = node("Gather", shape.output, constant("", np.array([1, 0, 2])))
        turned = node("Transpose", x if not nodes else nodes[-1].output, perm=(1, 0, 2))
        nodes += [shape, gather, turned, node("Reshape", turned.output, gather.output)]
    start = time.process_time()
    facts = infer_graph(graph(nodes, [x]))
    assert time.process_time() - start < 1
    assert facts[nodes[-1].output].shape == (BATCH, LENGTH, 8)


def nested(depth: int) -> Graph:
    """A Loop body that holds `depth` more, one in the other."""
    index, condition, state = Value("i"), Value("cond"), Value("state")
    nodes = [Node("Identity", [condition], [Value("keep")], version=VERSION)]
    inner = nested(depth - 1) if depth else None
    if inner is None:
        nodes.append(Node("Concat", [state, state], [Value("out")], {"axis": 0}, version=VERSION))
    else:
        nodes.append(Node("Loop", [None, condition, state], [Value("out")], {"body": inner}, version=VERSION))
    return Graph("body", [index, condition, state], [nodes[0].output, nodes[1].output], [], nodes)


@pytest.mark.parametrize("depth", [2, 60, 100])
def test_nested_bodies_take_bounded_time(depth: int) -> None:
    """Loops in loops, each with a state that changes shape, are given up rather than inferred for ever."""
    x, condition = variable("x", 2, 3), variable("condition", dtype=BOOL)
    outer = Node("Loop", [None, condition, x], [Value("y")], {"body": nested(depth)}, version=VERSION)
    start = time.process_time()
    infer_graph(Graph("g", [x, condition], outer.outputs, [], [outer]))
    assert time.process_time() - start < 20
    assert outer.output.shape is None or is_anonymous(outer.output.shape[0])


def test_functions_that_call_twice_take_bounded_time() -> None:
    """Functions that each call the next one twice do not double the work for ever."""
    model = Model(Graph(), {"": VERSION})
    for level in range(40):
        inner = Value("inner")
        called = ("Relu", "", VERSION) if level == 0 else (f"F{level - 1}", "local", 1)
        first = Node(called[0], [inner], [Value("a")], domain=called[1], version=called[2])
        second = Node(called[0], [first.output], [Value("b")], domain=called[1], version=called[2])
        function = Function("local", f"F{level}", Graph("f", [inner], second.outputs, [], [first, second]), {"": VERSION})
        model.functions[function.id] = function
    x = variable("x", 2)
    call = Node("F39", [x], [Value("y")], domain="local", version=1)
    model.graph = Graph("g", [x], call.outputs, [], [call])
    start = time.process_time()
    infer_graph(model)
    assert time.process_time() - start < 20


def _remembering() -> tuple[Model, InferenceMemory]:
    lines = "a = Relu(x) b = Transpose(a) {perm = [1, 0]} y = Transpose(b)"
    model = parse_model(f"opset 21\ngraph(x: float[n, 4]) -> (y: float[n, 4]) {{ {lines} }}")
    memory = InferenceMemory()
    infer_graph(model, memory=memory)
    return model, memory


def test_what_is_remembered_is_not_inferred_again() -> None:
    """A second inference finds the same facts, as the same objects."""
    model, memory = _remembering()
    first = infer_graph(model, memory=memory)
    second = infer_graph(model, memory=memory)
    assert all(second[value] is fact for value, fact in first.items())


def test_what_changed_is_inferred_again() -> None:
    """Another attribute, another input shape, another constant: what depends on it is inferred anew."""
    model, memory = _remembering()
    turned = list(model.graph)[1]
    turned.attributes["perm"] = Attribute.of([0, 1])
    assert infer_graph(model, memory=memory)[turned.output].shape == (symbol("n"), 4)
    (x,) = model.graph.inputs
    x.type = TensorType(FLOAT, (7, 4))
    assert infer_graph(model, memory=memory)[turned.output].shape == (7, 4)


def test_an_equal_constant_changes_nothing_after_it() -> None:
    """A constant that is replaced by an equal one leaves the facts of what reads it as they are."""
    model = parse_model("opset 21\ngraph(x: float[8]) -> (y) { s: int64[2] = [2, 4] y = Reshape(x, s) }")
    memory = InferenceMemory()
    y = model.graph.outputs[0]
    before = infer_graph(model, memory=memory)[y]
    model.graph.initializers["s"].constant = Tensor.from_array(np.array([2, 4]))
    assert infer_graph(model, memory=memory)[y] is before
    model.graph.initializers["s"].constant = Tensor.from_array(np.array([4, 2]))
    assert infer_graph(model, memory=memory)[y].shape == (4, 2)


@pytest.mark.parametrize("operation", ["Reshape(x, s)", "Expand(x, s)", "ConstantOfShape(s)", "Unsqueeze(x, s)"])
def test_a_declared_shape_is_not_believed_where_the_rank_is_open(operation: str) -> None:
    """A shape operand of unknown length leaves the rank to the run, which may differ from the declaration."""
    held = parse_model(f"opset 21\ngraph(x: float[6, 4], s: int64[n]) -> (y: float[4, 6]) {{ y = {operation} }}")
    assert infer_graph(held)[held.graph.outputs[0]].shape is None


@pytest.mark.parametrize("operation", ["Reshape(x, s)", "Expand(x, s)"])
def test_more_dimensions_than_an_array_can_have_are_an_error_that_names_the_node(operation: str) -> None:
    """NumPy has 64."""
    ones = ", ".join(["1"] * 65)
    held = parse_model(f"opset 21\ngraph(x: float[1]) -> (y) {{ s: int64[65] = [{ones}] y = {operation} @wide }}")
    with pytest.raises(NotImplemented_, match=r"wide.*would have 65 dimensions; at most 64"):
        infer_graph(held)


@pytest.mark.parametrize("operation", ["Reshape(x, s)", "Expand(x, s)", "ConstantOfShape(s)", "Unsqueeze(x, s)"])
def test_a_declared_number_of_axes_is_no_bomb(operation: str) -> None:
    """Nothing is made for dimensions that no array can have."""
    held = parse_model(f"opset 21\ngraph(x: float[1], s: int64[2147483648]) -> (y) {{ y = {operation} }}")
    start = time.process_time()
    with pytest.raises(NotImplemented_, match="dimensions"):
        infer_graph(held)
    assert time.process_time() - start < 1
