"""What profiles say of steps."""

from support.models import model

from sardonyx.dtypes import DataType
from sardonyx.ir.shape import symbol
from sardonyx.partition.part import Cut
from sardonyx.provider import Partition, StepInfo
from sardonyx.providers.reference.provider import ReferenceProvider
from sardonyx.session.origins import Origins
from sardonyx.session.profiling.steps import NodeFacts, facts_of_nodes, steps_of

N = symbol("n")
FLOAT = DataType.FLOAT
MATMUL = StepInfo(("MatMul", "Relu"), "gemm", (0, 1), ((FLOAT, (N, 3)),), ((FLOAT, (1, 3, 64)),), ((FLOAT, (N, 5)),))
NODES = [NodeFacts("product", "MatMul", ("a", "b"), 30 * N), NodeFacts("", "Relu", ("b", "c"), 5 * N)]


def test_a_step_has_onnxruntimes_keys() -> None:
    """Sizes are bytes, as text; shapes are numbers of this run."""
    (step,) = steps_of([MATMUL], NODES)
    found = step.arguments("CPUExecutionProvider", {"n": 2})
    assert step.name == "product"
    assert found["op_name"] == "MatMul"
    assert (found["activation_size"], found["parameter_size"], found["output_size"]) == ("24", "768", "40")
    assert found["input_type_shape"] == [{"float": [2, 3]}, {"float": [1, 3, 64]}]
    assert found["output_type_shape"] == [{"float": [2, 5]}]
    assert (found["provider"], found["node_index"]) == ("CPUExecutionProvider", "0")


def test_a_step_says_what_it_is_made_of() -> None:
    """Its fused operators, its nodes, those of the given model once each, its operations and its bytes."""
    (step,) = steps_of([MATMUL], NODES)
    found = step.arguments("", {"n": 2})
    assert (found["fused"], found["nodes"], found["original_nodes"]) == ("MatMul+Relu", ["product", ""], ["a", "b", "c"])
    assert (found["flops"], found["bytes"]) == (70, 832)


def test_a_step_that_picks_reads_no_more_than_it_writes() -> None:
    """An embedding is a large table, of which few rows are read."""
    gather = StepInfo(("Gather",), "gather", (), ((DataType.INT64, (1,)),), ((FLOAT, (1000, 4)),), ((FLOAT, (1, 4)),))
    (step,) = steps_of([gather], [])
    assert step.arguments("", {})["bytes"] == 8 + 16 + 16


def test_a_step_of_no_node_is_called_by_its_operators() -> None:
    """Such as a copy between two steps."""
    (step,) = steps_of([StepInfo(("Pad",), "border", ())], NODES)
    assert (step.name, step.arguments("", {})["op_name"], step.arguments("", {})["node_index"]) == ("Pad", "Pad", "")


def test_sizes_that_are_not_known_are_minus_one() -> None:
    """They count no bytes."""
    (step,) = steps_of([StepInfo(("Exp",), "exp", (0,), ((FLOAT, (N,)),))], [NodeFacts("e", "Exp", (), N)])
    found = step.arguments("", {})
    assert (found["input_type_shape"], found["bytes"]) == ([{"float": [-1]}], 0)
    assert "flops" not in found


def test_nodes_are_kept_as_texts_and_numbers() -> None:
    """The graph is taken apart after this."""
    text = "graph(x: float[4]) -> (y: float[4]) {\ny = Exp(x)\n}"
    given = model(text)
    graph = model(text).graph
    partition = Partition("p", graph, tuple(graph), (), tuple(graph.inputs), (), graph.outputs)
    (facts,) = facts_of_nodes(partition.nodes, Cut(ReferenceProvider(), partition), Origins(given))
    assert facts == NodeFacts("y", "Exp", ("y",), 4)
