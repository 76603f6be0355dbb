"""Casts for types that a provider lacks."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from support.evaluate import evaluate_model
from support.models import model
from support.providers import FusingProvider

from sardonyx.dtypes import Array, DataType
from sardonyx.ir import KeptSource, Model, Tensor
from sardonyx.ir.verify import verify
from sardonyx.ops.infer import infer_graph
from sardonyx.partition.casts import Widening, widen
from sardonyx.provider import Claims, GraphView


class _Floats(FusingProvider):
    """Claims some operators in float32 only, and what moves elements, and Relu, in every type."""

    def __init__(self) -> None:
        super().__init__(("MatMul", "Softmax", "Add", "Concat", "Relu", "Reshape", "Gather", "Cast"), "Floats", fuse=False)

    def capabilities(self, view: GraphView) -> Claims:
        nodes = [
            node
            for node in view.nodes
            if node.op_type in ("Concat", "Relu", "Reshape", "Gather", "Cast")
            or all(value is None or value.dtype is not DataType.FLOAT16 for value in (*node.inputs, *node.outputs))
        ]
        return FusingProvider.capabilities(self, dataclasses.replace(view, nodes=tuple(nodes)))


def _widened(text: str) -> tuple[Model, int]:
    """The model after widening; fails where its results are not those of the narrow one but for rounding."""
    before, after = model(text), model(text)
    infer_graph(after)
    count = widen(after.graph, [_Floats(), FusingProvider((), "Last")], Widening())
    verify(after)
    generator = np.random.default_rng(0)
    feeds = {
        value.name: generator.standard_normal([int(str(dim)) for dim in value.shape or ()]).astype(value.dtype.numpy)
        for value in before.graph.inputs
        if value.dtype is not None
    }
    assert [value.name for value in after.graph.outputs] == [value.name for value in before.graph.outputs]
    for ours, theirs in zip(evaluate_model(after, feeds), evaluate_model(before, feeds), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours.astype(np.float32), theirs.astype(np.float32), rtol=4e-3, atol=4e-3)
    return after, count


def _operators(held: Model) -> list[str]:
    return [node.op_type for node in held.graph]


def test_an_island_has_casts_at_its_borders_only() -> None:
    """MatMul and Softmax lack kernels; Relu between them, which has one, is widened with them."""
    held, count = _widened("""graph(x: float16[2, 3]) -> (y: float16[2, 3]) {
        w: float16[3, 3] = ... 1
        k: float16[3] = ... 2
        a = MatMul(x, w)
        b = Relu(a)
        c = Add(b, k)
        y = Softmax(c)
    }""")
    assert _operators(held) == ["Cast", "MatMul", "Relu", "Add", "Softmax", "Cast"]
    assert count == 4


def test_a_value_and_a_constant_are_widened_once() -> None:
    """Two products of the same value with the same weights."""
    held, _ = _widened("""graph(x: float16[3, 3]) -> (y: float16[3, 3], z: float16[3, 3]) {
        w: float16[3, 3] = ... 1
        y = MatMul(x, w)
        z = MatMul(w, x)
    }""")
    first, second = (node for node in held.graph if node.op_type == "MatMul")
    assert _operators(held) == ["Cast", "MatMul", "Cast", "MatMul", "Cast"]
    assert (first.inputs[0], first.inputs[1]) == (second.inputs[1], second.inputs[0])


def test_a_result_that_both_sides_read_is_narrowed_once() -> None:
    """Within the island the wide value is read, outside the narrow one."""
    held, _ = _widened("""graph(x: float16[3, 3]) -> (y: float16[3, 3], a: float16[3, 3], c: float[3, 3]) {
        a = MatMul(x, x)
        y = Softmax(a)
        c = Cast(a) {to = 1}
    }""")
    assert _operators(held).count("Cast") == 4
    cast = next(node for node in held.graph if node.op_type == "Cast" and node.output.name == "c")
    assert cast.inputs[0] is held.graph.outputs[1]


def test_a_table_that_is_looked_up_stays_narrow() -> None:
    """What is looked up is cast, not the table."""
    held, _ = _widened("""graph(x: float16[3, 3]) -> (y: float16[2, 3]) {
        table: float16[5, 3] = ... 1
        i: int64[2] = [4, 0]
        r = Gather(table, i)
        y = MatMul(r, x)
    }""")
    assert _operators(held)[0] == "Gather"
    assert next(iter(held.graph)).output.dtype is DataType.FLOAT16


@pytest.mark.parametrize(
    "text",
    [
        "graph(x: float[3, 3]) -> (y: float[3, 3]) {\n y = MatMul(x, x)\n}",
        "graph(x: float16[3, 3]) -> (y: float16[3, 3]) {\n y = Relu(x)\n}",
        "graph(x: float16[3, 3]) -> (y: float16[3, 3]) {\n y = Exp(x)\n}",
    ],
)
def test_what_is_claimed_as_it_is_and_what_nobody_claims_stays(text: str) -> None:
    """Without narrow floats, with a kernel for them, and without a kernel for wide ones."""
    held, count = _widened(text)
    assert count == 0
    assert len(held.graph) == 1


@pytest.mark.parametrize("operator", ["Bernoulli", "RandomNormalLike", "RandomUniformLike"])
def test_random_numbers_are_drawn_in_their_type(operator: str) -> None:
    """Wider ones would be others, though a provider has a kernel for them."""

    class Wide(FusingProvider):
        def capabilities(self, view: GraphView) -> Claims:
            wide = tuple(node for node in view.nodes if all(value.dtype is DataType.FLOAT for value in node.outputs))
            return super().capabilities(dataclasses.replace(view, nodes=wide))

    def widened(name: str) -> int:
        held = model(f"graph(x: float16[3, 3]) -> (y: float16[3, 3]) {{\n y = {name}(x)\n}}")
        infer_graph(held)
        return widen(held.graph, [Wide({name}), FusingProvider((), "Last")], Widening())

    assert (widened(operator), widened("Relu")) == (0, 1)


def test_bfloat16_is_widened_too() -> None:
    """To float32 and back to what it was."""
    text = "graph(x: bfloat16[3, 3]) -> (y: bfloat16[3, 3]) {\n y = MatMul(x, x)\n}"
    held = model(text)

    class Wide(FusingProvider):
        def capabilities(self, view: GraphView) -> Claims:
            nodes = tuple(node for node in view.nodes if node.outputs[0].dtype is DataType.FLOAT)
            return FusingProvider.capabilities(self, dataclasses.replace(view, nodes=nodes))

    assert widen(held.graph, [Wide(("MatMul",)), FusingProvider(())], Widening()) == 1
    assert [node.get("to") for node in held.graph if node.op_type == "Cast"] == [DataType.FLOAT, DataType.BFLOAT16]


def test_a_constant_is_shared_by_the_graphs_of_a_model() -> None:
    """A body and the main graph that read the same weights have one tensor for both."""
    held = model("graph(x: float16[3]) -> (y: float16[3]) {\n w: float16[3] = ... 1\n y = Add(x, w)\n}")
    widening, value = Widening(), held.graph.initializers["w"]
    assert value.constant is not None
    assert widening.of(value.constant) is widening.of(value.constant)
    assert widening.of(value.constant).numpy().dtype == np.float32


class _Halves(KeptSource):
    """Halves of a file; counts how often they are read."""

    def __init__(self) -> None:
        self.reads = 0

    def __call__(self) -> Array:
        self.reads += 1
        return np.arange(6, dtype=np.float16).reshape(3, 2)


def test_widened_weights_are_let_go_of_and_computed_again() -> None:
    """Neither they nor the narrow ones stay in memory once they are packed."""
    source = _Halves()
    narrow = Tensor(DataType.FLOAT16, (3, 2), source, "w")
    wide = Widening().of(narrow)
    first = wide.numpy()
    assert wide.numpy() is first
    wide.release()
    del first
    np.testing.assert_array_equal(wide.numpy(), np.arange(6, dtype=np.float32).reshape(3, 2))
    assert source.reads == 2


def test_widened_rows_are_read_alone() -> None:
    """A weight that is packed in pieces is never in memory whole."""
    wide = Widening().of(Tensor.from_array(np.arange(6, dtype=np.float16).reshape(3, 2)))
    rows = wide.rows(1, 2)
    assert rows.dtype == np.float32
    assert rows.tolist() == [[2.0, 3.0]]


def test_a_cache_stays_narrow() -> None:
    """What is appended is narrowed, and the whole widened once for who computes with it."""
    held, _ = _widened("""graph(x: float16[3, 3], past: float16[5, 3]) -> (y: float16[8, 3], present: float16[8, 3]) {
        w: float16[3, 3] = ... 1
        new = MatMul(x, w)
        present = Concat(past, new) {axis = 0}
        y = MatMul(present, w)
    }""")
    assert _operators(held) == ["Cast", "MatMul", "Cast", "Concat", "Cast", "MatMul", "Cast"]
    assert held.graph.outputs[1].dtype is DataType.FLOAT16


def test_operators_whose_schemas_list_no_types_are_widened() -> None:
    """Those of com.microsoft: what is claimed in float32 is run in it."""
    made = model("graph(x: float16[2, 4], w: float16[4]) -> (y: float16[2, 4]) { y = com.microsoft.BiasGelu(x, w) }")
    infer_graph(made)
    widen(made.graph, [_OfMicrosoft(), FusingProvider((), "Last")], Widening())
    verify(made)
    assert _operators(made) == ["Cast", "Cast", "BiasGelu", "Cast"]


class _OfMicrosoft(_Floats):
    """Claims BiasGelu in float32."""

    def capabilities(self, view: GraphView) -> Claims:
        nodes = [node for node in view.nodes if node.op_type == "BiasGelu" and node.output.dtype is DataType.FLOAT]
        return FusingProvider(("BiasGelu",), "Floats", fuse=False).capabilities(dataclasses.replace(view, nodes=tuple(nodes)))
