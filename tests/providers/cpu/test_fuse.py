"""Which nodes run as one step."""

from support.models import graph

from sardonyx.ir import Value
from sardonyx.providers.cpu.fuse import LONGEST_TAIL, Group, Member, group_nodes


def _joins(group: Group, member: Member, value: Value) -> bool:
    assert any(value is read for read in member.node.inputs)
    return member.node.op_type in ("Add", "Mul", "Relu")


def _groups(body: str) -> list[str]:
    """The operators of each group, in the order in which they run."""
    members = [Member(node, None) for node in graph(body)]
    return ["+".join(node.op_type for node in group.nodes) for group in group_nodes(members, _joins)]


def test_a_chain_joins_its_anchor() -> None:
    """As long as each result is read by the next node alone."""
    body = "graph(x: float[2, 2], w: float[2, 2]) -> (y) { a = MatMul(x, w) b = Add(a, x) y = Relu(b) }"
    assert _groups(body) == ["MatMul+Add+Relu"]


def test_a_result_that_others_read_ends_a_group() -> None:
    """Be it a node or an output of the graph."""
    assert _groups("graph(x: float[2]) -> (y, z) { a = Relu(x) y = Add(a, x) z = Mul(a, x) }") == ["Relu", "Add", "Mul"]
    assert _groups("graph(x: float[2]) -> (a, y) { a = Relu(x) y = Add(a, x) }") == ["Relu", "Add"]


def test_a_node_that_reads_a_result_twice_joins() -> None:
    """Both reads are its own."""
    assert _groups("graph(x: float[2]) -> (y) { a = Relu(x) y = Mul(a, a) }") == ["Relu+Mul"]


def test_what_does_not_join_begins_a_group() -> None:
    """An anchor joins nobody."""
    assert _groups("graph(x: float[2]) -> (y) { a = Relu(x) b = Softmax(a) y = Relu(b) }") == ["Relu", "Softmax+Relu"]


def test_nodes_of_several_outputs_do_not_join() -> None:
    """Nobody is asked whether they could."""
    assert _groups("graph(x: float[4]) -> (y, z) { a = Relu(x) y, z = Split(a) {num_outputs = 2} }") == ["Relu", "Split"]


def test_products_are_preferred() -> None:
    """Where a node could join two groups, it joins the one whose store is worth more, else the later one."""
    text = "graph(x: float[2, 2], w: float[2, 2]) -> (y) {{ {} y = Add(a, b) }}"
    assert _groups(text.format("a = MatMul(x, w) b = Relu(x)")) == ["Relu", "MatMul+Add"]
    assert _groups(text.format("b = Relu(x) a = MatMul(x, w)")) == ["Relu", "MatMul+Add"]
    assert _groups(text.format("a = Softmax(x) b = Softmax(w)")) == ["Softmax", "Softmax+Add"]


def test_a_group_runs_when_all_that_it_reads_has_been_made() -> None:
    """At the place of its last node, after the groups that its tail reads."""
    body = "graph(x: float[2, 2], w: float[2, 2]) -> (y) { a = MatMul(x, w) b = Softmax(x) c = Softmax(b) y = Add(a, c) }"
    assert _groups(body) == ["Softmax", "Softmax", "MatMul+Add"]


def test_long_chains_are_cut() -> None:
    """So that kernels stay of a readable size."""
    chain = " ".join(f"v{i + 1} = Relu(v{i})" for i in range(LONGEST_TAIL + 5))
    groups = _groups(f"graph(v0: float[2]) -> (v{LONGEST_TAIL + 5}) {{ {chain} }}")
    assert [group.count("Relu") for group in groups] == [LONGEST_TAIL + 1, 4]


def test_a_node_of_many_inputs_joins_no_group() -> None:
    """A kernel with an argument for each of hundreds of inputs takes LLVM minutes."""
    names = ", ".join(["a", *(f"x{i}" for i in range(200))])
    inputs = ", ".join(f"x{i}: float[2]" for i in range(200))
    held = graph(f"graph({inputs}) -> (y) {{ a = Relu(x0) y = Sum({names}) }}")
    members = [Member(node, None) for node in held]
    assert [len(group.nodes) for group in group_nodes(members, lambda group, member, value: True)] == [1, 1]


def _takes_all(group: Group, member: Member, value: Value) -> bool:
    return member.node.op_type in ("Add", "DequantizeLinear", "Relu")


def _groups_that_take_all(body: str) -> list[str]:
    members = [Member(node, None) for node in graph(body)]
    return ["+".join(node.op_type for node in group.nodes) for group in group_nodes(members, _takes_all)]


_WIDE = "graph(x: float[2, 2], w: float[2, 2], q: uint8[2, 2], s: float[]) -> ({}) {{ {} }}"


def test_what_widens_an_operand_is_computed_where_it_is_read() -> None:
    """With what follows it there; a residual is read as the integers that it is."""
    found = _groups_that_take_all(_WIDE.format("y", "d = DequantizeLinear(q, s) a = MatMul(x, w) y = Add(a, d)"))
    assert found == ["MatMul+DequantizeLinear+Add"]
    found = _groups_that_take_all(_WIDE.format("y", "d = DequantizeLinear(q, s) e = Relu(d) a = MatMul(x, w) y = Add(a, e)"))
    assert found == ["MatMul+DequantizeLinear+Relu+Add"]
    found = _groups_that_take_all(_WIDE.format("y", "d = DequantizeLinear(q, s) e = DequantizeLinear(q, s) y = Add(d, e)"))
    assert found == ["DequantizeLinear+DequantizeLinear+Add"]


def test_what_others_read_is_computed_once() -> None:
    """In a step of its own; so is what does not widen."""
    both = _WIDE.format("y, d", "d = DequantizeLinear(q, s) a = MatMul(x, w) y = Add(a, d)")
    assert _groups_that_take_all(both) == ["DequantizeLinear", "MatMul+Add"]
    plain = _WIDE.format("y", "d = Exp(x) a = MatMul(x, w) y = Add(a, d)")
    assert _groups_that_take_all(plain) == ["Exp", "MatMul+Add"]
