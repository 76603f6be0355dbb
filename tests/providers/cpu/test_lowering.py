"""The state of lowering: buffers, kernels, expressions of tails."""

import dataclasses
import time

import numpy as np
import pytest
from support.models import graph

import sardonyx.providers.cpu.kernels  # noqa: F401  registers the lowerings
from sardonyx.codegen.emit.expr import ElementExpr, number
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.target import Target, host_target
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Graph, KeptSource, Tensor, Value
from sardonyx.providers.cpu.claims import Claimed, claim_node
from sardonyx.providers.cpu.fuse import Group, Member
from sardonyx.providers.cpu.lowering import KeptWeights, Lowering


@pytest.fixture
def low() -> Lowering:
    """A partition without steps."""
    return Lowering(host_target(), 1)


def _tail(body: str) -> tuple[Graph, Group]:
    made = graph(body)
    members = []
    for node in made:
        node.outputs[0].type = made.inputs[0].type
        claimed = claim_node(node)
        assert not isinstance(claimed, str), claimed
        members.append(claimed)
    return made, Group(members[0], list(members[1:]))


def _steps(expr: ElementExpr) -> list[str]:
    return [step.primitive for step in number([expr])[0]]


def test_a_value_is_held_from_when_it_is_read_or_made(low: Lowering) -> None:
    """A value that no step has made and nobody has asked for is not held."""
    made = graph("graph(x: float[n, 2]) -> (y: float[n, 2]) { y = Neg(x) }")
    (node,) = made
    low.of(made.inputs[0])
    assert low.holds(made.inputs[0])
    assert not low.holds(node.output)
    low.result(node.output)
    assert low.holds(node.output)


def test_each_value_has_one_buffer(low: Lowering) -> None:
    """Inputs are without elements, constants have theirs, and a result takes the place of what was there."""
    made = graph("graph(x: float[n, 2]) -> (y: float[n, 2]) { w: float[2] = [1.0, 2.0] y = Add(x, w) }")
    (node,) = made
    x = low.of(node.inputs[0])
    assert low.of(node.inputs[0]) is x
    assert x.constant is None
    weights = low.of(node.inputs[1]).constant
    assert weights is not None
    assert weights.tolist() == [1, 2]
    result = low.result(node.output)
    assert low.of(node.output) is result
    view = low.view(node.output, x, 3)
    assert low.of(node.output) is view
    assert (view.base, view.offset) == (x, 3)


def test_inputs_that_are_left_out_or_unknown_have_no_buffer(low: Lowering) -> None:
    """Asking is a mistake of the caller."""
    with pytest.raises(ValueError, match="left out"):
        low.of(None)
    with pytest.raises(ValueError, match="no known element type"):
        low.of(Value("v"))


def test_packed_weights_have_their_type_and_shape(low: Lowering) -> None:
    """Those of the array."""
    buffer = low.constant(np.zeros((2, 3), np.int64))
    assert (buffer.dtype, buffer.shape) == (DataType.INT64, (2, 3))


@dataclasses.dataclass(frozen=True)
class _Kernel:
    name: str

    def symbol(self, target: Target) -> str:
        return f"{self.name}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        raise AssertionError("lowering writes no kernel")


def test_a_kernel_is_asked_for_once(low: Lowering) -> None:
    """The first one of a symbol is kept, and none is written yet."""
    first = _Kernel("k")
    assert low.kernel(first) == low.kernel(_Kernel("k")) == f"k_{low.target.isa}"
    assert low.writers == {f"k_{low.target.isa}": first.write}


def test_an_epilogue_is_one_expression(low: Lowering) -> None:
    """Of the anchor's element, and of the tensors that the tail reads; numbers are part of it, equal tensors one argument."""
    made, group = _tail("""graph(x: float[2], r: float[2]) -> (y) {
        half: float[] = 0.5
        a = Softmax(x) b = Mul(a, half) c = Add(b, r) d = Mul(c, r) y = Relu(d) }""")
    expr, operands = low.epilogue(group)
    assert operands == [made.inputs[1]]
    assert _steps(expr) == ["argument", "constant", "mul", "argument", "add", "mul", "constant", "max"]


def test_an_empty_epilogue_is_the_element(low: Lowering) -> None:
    """Argument 0 as it is."""
    _, group = _tail("graph(x: float[2]) -> (y) { y = Softmax(x) }")
    expr, operands = low.epilogue(group)
    assert (expr.primitive, expr.value, operands) == ("argument", 0, [])


def test_a_chain_begins_with_its_anchor(low: Lowering) -> None:
    """Its inputs are the arguments, in the order in which they are met."""
    made, group = _tail("graph(x: float[2], z: float[2]) -> (y) { a = Sub(z, x) y = Mul(a, z) }")
    expr, operands = low.chain(group)
    assert operands == [made.inputs[1], made.inputs[0]]
    assert _steps(expr) == ["argument", "argument", "sub", "mul"]


def test_elements_are_those_of_constants(low: Lowering) -> None:
    """What the model computes has none before it runs."""
    (node,) = graph("graph(x: float[2]) -> (y: float[2]) { w: float[2] = [1.0, 2.0] y = Add(x, w) }")
    assert low.elements(node.inputs[1]).tolist() == [1, 2]
    with pytest.raises(ValueError, match="no constant"):
        low.elements(node.inputs[0])


def test_packed_weights_are_made_once_and_found_again(low: Lowering) -> None:
    """A second lowering is given what the first one packed, in order, and packs nothing."""
    first = low.packed(np.multiply, np.float32([1, 2]), 2, of=None)
    assert [array.tolist() for array in low.packs] == [[2, 4]]
    again = Lowering(low.target, 1, KeptWeights(low.packs, ()))
    assert again.packed(lambda _: pytest.fail("packed again"), None, of=None).constant is first.constant


def test_constants_that_are_absent_have_a_shape_only(low: Lowering) -> None:
    """They are not made dense, which would give them memory."""
    (value,) = graph("graph() -> (y: float[2, 3]) { w: float[2, 3] = ...\ny = Relu(w) }").initializers.values()
    value.constant = Tensor.from_array(np.broadcast_to(np.float32(0), (2, 3)))
    array = Lowering(low.target, 1, KeptWeights((), {value})).of(value).constant
    assert array is not None
    assert array.strides == (0, 0)


class _Ones(KeptSource):
    """Elements that can be had again; counts how often they were."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> Array:
        self.asked += 1
        return np.ones(2, np.float32)


def test_constants_that_no_step_reads_are_released(low: Lowering) -> None:
    """One that was packed is read again when it is asked for; one that a step reads stays."""
    made = graph("graph(x: float[n, 2], v: float[2], w: float[2]) -> (y: float[n, 2]) { y = Sum(x, v, w) }")
    (node,) = made
    sources = [_Ones(), _Ones()]
    for value, source in zip(node.inputs[1:], sources, strict=True):
        assert value is not None
        value.constant = Tensor(DataType.FLOAT, (2,), source)
    x, v, w = map(low.of, node.inputs)
    low.move("copy", low.kernel(_Kernel("copy")), [v, x], lambda sizes: ((), 1))
    assert w.constant is not None
    low.release_packed(node.inputs)
    assert low.of(node.inputs[1]) is v
    assert low.of(node.inputs[2]) is not w
    assert [source.asked for source in sources] == [1, 2]


def _seconds_to_lower_concat(count: int) -> float:
    parts = "\n".join(f"p{i} = Relu(x)" for i in range(count))
    names = ", ".join(f"p{i}" for i in range(count))
    held = graph(f"graph(x: float[2]) -> (y: float[{2 * count}]) {{\n{parts}\ny = Concat({names}) {{axis = 0}}\n}}")
    for value in (value for node in held for value in node.outputs):
        value.type = held.outputs[0].type if value is held.outputs[0] else held.inputs[0].type
    low = Lowering(host_target(), 1)
    members = [Member(node, claimed.spec) for node in held if isinstance(claimed := claim_node(node), Claimed)]
    assert len(members) == count + 1
    start = time.process_time()
    for member in members:
        claimed = claim_node(member.node)
        assert isinstance(claimed, Claimed)
        claimed.lower(low, Group(member, []))
    return time.process_time() - start


def test_concat_is_lowered_in_time_linear_in_its_inputs() -> None:
    """Eight times the inputs take about eight times as long, not 64 times."""
    assert _seconds_to_lower_concat(8000) < 25 * _seconds_to_lower_concat(1000)


def test_a_constant_that_nodes_share_is_packed_once(low: Lowering) -> None:
    """Alike: with other options, or of another constant, it is packed by itself."""
    packs = graph(
        "graph(x: float[2]) -> (y: float[2]) {\n a: float[2] = [1, 2]\n b: float[2] = [3, 4]\n c = Add(x, a)\n y = Add(c, b)\n}"
    )
    a, b = (node.inputs[1] for node in packs)

    def pack(weights: Array, factor: int) -> Array:
        return np.asarray(weights * factor, np.float32)

    ones = np.ones(2, np.float32)
    first = low.packed(pack, ones, 2, of=a)
    assert low.packed(pack, ones, 2, of=a) is first
    assert len({id(buffer) for buffer in (first, low.packed(pack, ones, 3, of=a), low.packed(pack, ones, 2, of=b))}) == 3
    assert low.packed(pack, ones, 2, of=None) is not low.packed(pack, ones, 2, of=None)
    assert len(low.packs) == 5
