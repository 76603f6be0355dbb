"""Models become files of ONNX Runtime's format, as ONNX Runtime writes them."""

from pathlib import Path

import numpy as np
import pytest
from support.models import model as model_of

from sardonyx.errors import NotImplemented as NotImplementedHere
from sardonyx.formats.files import MemoryContent
from sardonyx.formats.flat.reader import Table, read_root
from sardonyx.formats.flat.schema_ort import ORT
from sardonyx.formats.model_format import ModelFile
from sardonyx.formats.ort.read import read
from sardonyx.formats.ort.write import VERSION, to_bytes, write
from sardonyx.ir import Model
from sardonyx.ir.text import print_model

_BRANCH = """graph(x: float[2], c: bool[]) -> (y: float[2]) {
w: float[2] = [1, 2]
s: float[2] = Add(x, w)
y = If(c) {then_branch = graph() -> (t: float[2]) {
t = Mul(s, x)
}, else_branch = graph() -> (e: float[2]) {
e = Identity(w)
}}
}"""


def _graph(model: Model) -> Table:
    root = read_root(MemoryContent(memoryview(to_bytes(model)[0])), ORT, "m")
    table = root.table("model")
    graph = None if table is None else table.table("graph")
    assert graph is not None
    return graph


@pytest.mark.parametrize(
    "text",
    [
        "graph(x: float[n, 2]) -> (y: float[n, 2]) {\nw: float[2] = [1, 2]\na: float[n, 2] = Add(x, w)\ny = Relu(a)\n}",
        "graph(x: float[4, 3]) -> (a: float[2, 3], b: float[2, 3]) {\na, b = Split(x) {axis = 0, num_outputs = 2}\n}",
        "graph(x: float[2]) -> (y: float[2]) {\nm: float[] = [3]\ny = Clip(x, _, m)\n}",
    ],
)
def test_a_model_is_read_back_as_it_was(text: str) -> None:
    """Nodes, constants, attributes and types."""
    model = model_of(text)
    again = read(ModelFile(None, MemoryContent(memoryview(to_bytes(model)[0]))))
    assert print_model(again).split("{", 1)[1] == print_model(model).split("{", 1)[1]


def test_nodes_have_edges() -> None:
    """From outputs to inputs, and to what a body reads, which are counted behind the inputs."""
    edges = _graph(model_of(_BRANCH)).tables("node_edges")
    assert [edge.structs("output_edges").tolist() for edge in edges] == [[(1, 0, 1)], []]
    assert [edge.structs("input_edges").tolist() for edge in edges] == [[], [(0, 0, 1)]]


def test_nodes_name_what_their_bodies_read() -> None:
    """Values of the graphs around, each once."""
    nodes = _graph(model_of(_BRANCH)).tables("nodes")
    assert [node.texts("implicit_inputs") for node in nodes] == [[], ["s", "x", "w"]]
    assert [node.numbers("input_arg_counts").tolist() for node in nodes] == [[1, 1], [1]]


def test_bodies_know_the_values_around_them() -> None:
    """With their types."""
    branch = _graph(model_of(_BRANCH)).tables("nodes")[1].tables("attributes")[0].table("g")
    assert branch is not None
    assert {item.text("name"): item.table("type") is not None for item in branch.tables("node_args")} == dict.fromkeys("tsx", True)


def test_attributes_that_are_left_out_have_their_defaults() -> None:
    """ONNX Runtime's kernels find none otherwise."""
    model = model_of("graph(x: float[2, 2]) -> (y: float[2, 2]) {\ny = Gemm(x, x) {transA = 1}\n}")
    attributes = _graph(model).tables("nodes")[0].tables("attributes")
    assert sorted(item.text("name") for item in attributes) == ["alpha", "beta", "transA", "transB"]
    assert next(item for item in attributes if item.text("name") == "transA").integer("i") == 1


def test_kernels_are_found_by_types_of_parameters() -> None:
    """Sorted by operator and by type, since they are searched."""
    root = read_root(MemoryContent(memoryview(to_bytes(model_of(_BRANCH))[0])), ORT, "m")
    resolver = root.table("kernel_type_str_resolver")
    assert resolver is not None
    assert [item.text("op_id") for item in resolver.tables("op_kernel_type_str_args")] == [
        ":Add:14",
        ":Identity:21",
        ":If:21",
        ":Mul:14",
    ]
    assert root.text("ort_version") == VERSION


def test_what_the_format_does_not_hold_is_said() -> None:
    """Metadata of nodes and graphs, and information for training."""
    model = model_of("graph(x: float[2]) -> (y: float[2]) {\ny = Relu(x)\n}")
    model.graph.metadata, model.training = {"k": "v"}, (b"",)
    next(iter(model.graph)).metadata = {"k": "v"}
    assert [loss.where for loss in to_bytes(model)[1]] == ["training_info", "graph 'main'", "1 nodes"]


def test_functions_are_refused() -> None:
    """Whoever saves inlines them before."""
    model = model_of("graph(x: float[2]) -> (y: float[2]) {\ny = own.F(x)\n}\nfunction own.F(a) -> (b) {\nopset 21\nb = Relu(a)\n}")
    with pytest.raises(NotImplementedHere, match="has no functions, the model has own.F; inline them first"):
        to_bytes(model)


def test_types_that_the_format_lacks_are_refused() -> None:
    """With the value, or the attribute and its node."""
    optional = model_of("graph(x: optional(float[2])) -> (y: bool[]) {\ny = OptionalHasElement(x)\n}")
    with pytest.raises(NotImplementedHere, match="the value 'x' is of a type that ONNX Runtime's format lacks"):
        to_bytes(optional)
    typed = model_of("graph(x: float[2]) -> (y: float[2]) {\ny = own.F(x) {t: type = seq(float)} @n\n}")
    with pytest.raises(NotImplementedHere, match=r"node 'n' \(F\): .* no attributes of the kind of 't'"):
        to_bytes(typed)


def test_a_file_is_written_all_or_nothing(tmp_path: Path) -> None:
    """What stood there before stands until it is complete."""
    path = tmp_path / "m.ort"
    path.write_bytes(b"before")
    model = model_of("graph(x: float[2]) -> (y: float[2]) {\ny = own.F(x) {t: type = seq(float)} @n\n}")
    with pytest.raises(NotImplementedHere):
        write(model, path)
    assert path.read_bytes() == b"before"
    write(model_of("graph(x: float[2]) -> (y: float[2]) {\ny = Relu(x)\n}"), path)
    assert path.read_bytes()[4:8] == b"ORTM"
    assert [item.name for item in tmp_path.iterdir()] == ["m.ort"]


def test_elements_are_those_of_the_model() -> None:
    """Of large tensors too."""
    model = model_of("graph(x: float[2, 3000]) -> (y: float[2, 3000]) {\nw: float[3000] = ... 7\ny = Add(x, w)\n}")
    again = read(ModelFile(None, MemoryContent(memoryview(to_bytes(model)[0]))))
    constants = [item.graph.initializers["w"].constant for item in (model, again)]
    assert all(constant is not None for constant in constants)
    assert np.array_equal(*[constant.numpy() for constant in constants if constant is not None])
