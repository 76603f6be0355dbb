"""Graphs as plain data and back."""

import marshal

import numpy as np
import pytest
from support.models import graph

from sardonyx.dtypes import DataType
from sardonyx.formats.plain_graph import NoPlainForm, PlainReader, PlainWriter
from sardonyx.ir import Dim, Graph, Node, Tensor, TensorType, Value
from sardonyx.ir.attribute import ArrayAttribute, Attribute, AttributeKind
from sardonyx.ir.shape import anonymous, maximum, minimum, symbol
from sardonyx.ir.text import print_graph
from sardonyx.ir.types import MapType, OptionalType, SequenceType, SparseTensorType

_N, _M = symbol("N"), symbol("M")


def _tensor_of(dtype: DataType, shape: tuple[int, ...], number: int) -> Tensor:
    return Tensor.from_array(np.full(shape, number, dtype.numpy))


def _again(held: Graph, placed: dict[Tensor, int] | None = None) -> Graph:
    return PlainReader(_tensor_of).graph(marshal.loads(marshal.dumps(PlainWriter(placed or {}).graph(held))))


def test_a_graph_comes_back_as_it_was() -> None:
    """With nodes, names, types, attributes and small constants."""
    held = graph("""graph(x: float[N, 3], t: string[]) -> (y: float[N, 4], c) {
        w: float[3, 4] = [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, inf]]
        s: string[2] = ["a", "b"]
        p = Gemm(x, w) {alpha = 0.5, transB = 0} @first
        q = Dropout(p)
        y = Clip(q, _, q)
        d = Pad(y) {mode = "edge", pads = [1, 2]}
        c = Concat(s, s) {axis = 0}
    }""")
    assert print_graph(_again(held)) == print_graph(held)


def test_uses_and_producers_are_linked() -> None:
    """As in any graph."""
    made = _again(graph("graph(x: float[2]) -> (y) {\n a = Relu(x)\n y = Add(a, a)\n}"))
    first, second = made
    assert first.output.producer is first
    assert [(user, index) for user, index in first.output.uses] == [(second, 0), (second, 1)]


@pytest.mark.parametrize(
    "dim", [7, _N, 2 * _N + 1, _N * _N * _M - 3, (_N + 1) // 2, _N % _M, maximum(_N, _M), minimum(_N + 2, 3 * _M), -_N]
)
def test_dimensions_come_back(dim: Dim) -> None:
    """Polynomials and functions of symbols."""
    assert PlainReader(_tensor_of).dim(marshal.loads(marshal.dumps(PlainWriter({}).dim(dim)))) == dim


def test_unknown_dimensions_are_new() -> None:
    """Equal ones stay equal, and none is one of this process."""
    one, other = anonymous(), anonymous()
    writer, reader = PlainWriter({}), PlainReader(_tensor_of)
    first, again, second = (reader.dim(writer.dim(dim)) for dim in (one, one, other))
    assert first == again
    assert len({first, second, one, other}) == 4


@pytest.mark.parametrize(
    "kind",
    [
        None,
        TensorType(DataType.FLOAT),
        TensorType(DataType.BFLOAT16, (_N, 3)),
        SparseTensorType(DataType.DOUBLE, (4,)),
        SequenceType(TensorType(DataType.INT64, ())),
        OptionalType(SequenceType(None)),
        MapType(DataType.STRING, TensorType(DataType.FLOAT)),
    ],
)
def test_types_come_back(kind: TensorType | None) -> None:
    """Of every form."""
    assert PlainReader(_tensor_of).type(PlainWriter({}).type(kind)) == kind


@pytest.mark.parametrize("dtype", [DataType.FLOAT16, DataType.BFLOAT16, DataType.INT4, DataType.BOOL, DataType.COMPLEX64])
def test_arrays_come_back(dtype: DataType) -> None:
    """Of types that NumPy lacks, too."""
    array = np.array([[0, 1], [1, 0]]).astype(dtype.numpy)
    again = PlainReader(_tensor_of).array(marshal.loads(marshal.dumps(PlainWriter({}).array(array))))
    assert again.dtype == array.dtype
    assert again.tobytes() == array.tobytes()


def test_tensors_of_the_file_are_numbers() -> None:
    """They are not read; whoever reads the graph is asked for them."""
    held = graph("graph(x: float[2]) -> (y) { w: float[2] = [1, 2]\n y = Add(x, w) }")
    tensor = held.initializers["w"].constant
    assert tensor is not None
    writer = PlainWriter({tensor: 5})
    writer.graph(held)
    assert writer.held_bytes == 0
    found = _again(held, {tensor: 5}).initializers["w"].constant
    assert found is not None
    assert found.numpy().tolist() == [5, 5]


def test_numbers_of_numpy_are_plain_numbers() -> None:
    """Rules may leave such in attributes."""
    held = Graph("g", [Value("x", TensorType(DataType.FLOAT, (2,)))])
    ints = Attribute(AttributeKind.INTS, (np.int64(3), np.int32(4)))
    node = held.append(Node("Foo", held.inputs, 1, {"a": Attribute(AttributeKind.FLOAT, np.float32(0.5)), "b": ints}, version=1))
    (made,) = _again(held)
    assert (node.op_type, made.get("a"), made.get("b")) == ("Foo", 0.5, (3, 4))


def test_subgraphs_come_back_with_what_they_capture() -> None:
    """Values of the graph around them, also as an output, and weights of their own."""
    held = graph("""graph(c: bool[], x: float[2]) -> (y) {
        y = If(c) {then_branch = graph() -> (a) { w: float[2] = [1, 2] a = Mul(x, w) }, else_branch = graph() -> (x) { }}
    }""")
    found = _again(held)
    assert print_graph(found) == print_graph(held)
    (node,) = found
    assert node.subgraphs[0].initializers["w"].constant is not None
    assert list(node.subgraphs[1].outputs) == list(found.inputs[1:])
    assert [user.op_type for user, _ in found.inputs[1].uses if isinstance(user, Node)] == ["Mul"]


def test_subgraphs_of_any_depth_have_no_plain_form() -> None:
    """More than 32 in one another: reading them takes Python's stack."""
    inner = "a = Relu(x)"
    for _ in range(40):
        inner = f"a = If(c) {{then_branch = graph() -> (a) {{ {inner} }}, else_branch = graph() -> (b) {{ b = Neg(x) }}}}"
    with pytest.raises(NoPlainForm, match="32"):
        PlainWriter({}).graph(graph(f"graph(c: bool[], x: float[2]) -> (a) {{ {inner} }}"))


def test_a_reference_to_an_attribute_has_no_plain_form() -> None:
    """Functions are expanded before."""
    held = Graph("g", [Value("x", TensorType(DataType.FLOAT, (2,)))])
    held.append(Node("Foo", held.inputs, 1, {"a": Attribute(AttributeKind.FLOAT, None, "outer")}, version=1))
    with pytest.raises(NoPlainForm, match="FLOAT"):
        PlainWriter({}).graph(held)


def test_widened_tensors_are_made_of_narrow_ones_again() -> None:
    """Those of the file are not read for it, and one that several values share stays one."""
    narrow = Tensor.from_array(np.array([1, 2], np.float16))
    held = Graph("g", [], (), [Value(name, TensorType(DataType.FLOAT, (2,)), Tensor.widened(narrow)) for name in "ab"])
    first, second = (value.constant for value in _again(held, {narrow: 3}).initializers.values())
    assert first is not None
    assert first is second
    assert first.narrow is not None
    assert (first.narrow.dtype, first.numpy().tolist()) == (DataType.FLOAT16, [3, 3])


def test_what_holds_too_much_has_no_plain_form() -> None:
    """It is not even read."""

    def read() -> np.ndarray:
        raise AssertionError

    held = Graph("g", [], (), [Value("w", TensorType(DataType.FLOAT, (9,)), Tensor(DataType.FLOAT, (9,), read))])
    with pytest.raises(NoPlainForm):
        PlainWriter({}, 35).graph(held)


def test_long_lists_stay_arrays() -> None:
    """Of numbers and of texts."""
    held = Graph("g", [Value("x", TensorType(DataType.FLOAT, (2,)))])
    attributes = {
        "n": ArrayAttribute(AttributeKind.FLOATS, np.arange(3, dtype=np.float32)),
        "t": ArrayAttribute(AttributeKind.STRINGS, np.array([1, 0, 1]), ["a", "b"]),
    }
    held.append(Node("Foo", held.inputs, 1, attributes, version=1))
    (made,) = _again(held)
    assert all(isinstance(attribute, ArrayAttribute) for attribute in made.attributes.values())
    assert (made.get("n"), made.get("t")) == ((0.0, 1.0, 2.0), ("b", "a", "b"))
