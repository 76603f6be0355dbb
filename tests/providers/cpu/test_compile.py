"""From a partition to a program."""

from __future__ import annotations

import dataclasses
import gc
import weakref
from collections.abc import Callable

import numpy as np
import pytest
from support.models import graph, model

from sardonyx import InferenceSession
from sardonyx.codegen.target import host_target
from sardonyx.dtypes import DataType
from sardonyx.errors import EPFail
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir import Graph
from sardonyx.provider import Body, Capability, GraphView, Partition, TensorSpec
from sardonyx.providers.cpu.claims import Claimed, NodeClaim, claim_node
from sardonyx.providers.cpu.compile import lower_partition, make_program
from sardonyx.providers.cpu.library import driver_for
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.program import CpuProgram
from sardonyx.providers.cpu.provider import CpuProvider


def _partition(body: str) -> Partition:
    held = graph(body)
    units = tuple(CpuProvider(host_target(), 1).capabilities(GraphView(held, tuple(held), after_layout=True)).capabilities)
    return Partition("part_0", held, tuple(held), units, tuple(held.inputs), tuple(held.initializers.values()), held.outputs)


def test_a_chain_is_one_step() -> None:
    """What the output does not depend on is left out."""
    part = _partition("graph(x: float[n]) -> (y: float[n]) {\na: float[n] = Relu(x)\nb: float[n] = Exp(x)\ny = Neg(a)\n}")
    lowered = lower_partition(Lowering(host_target(), 1), part)
    assert [step.name for step in lowered.steps] == ["Relu+Neg"]
    assert len(lowered.inputs) == len(lowered.outputs) == 1


def test_a_lowered_partition_becomes_a_program() -> None:
    """It computes into the outputs that it is given."""
    part = _partition("graph(x: float[n]) -> (y: float[n]) {\na: float[n] = Relu(x)\ny = Neg(a)\n}")
    low = Lowering(host_target(), 1)
    program = make_program(part, low, lower_partition(low, part), driver_for(low.target))
    bound = program.bind(((3,),))
    assert bound.outputs == (TensorSpec(DataType.FLOAT, (3,)),)
    y = np.empty(3, np.float32)
    program.run(bound, [np.float32([1, -2, 3])], [y], np.empty(bound.scratch_bytes, np.uint8) if bound.scratch_bytes else None)
    assert y.tolist() == [-1, 0, -3]


def test_an_input_that_is_given_out_is_copied() -> None:
    """Outputs have memory of their own."""
    part = _partition("graph(x: float[2, 3]) -> (y: float[6]) {\ns: int64[1] = [6]\ny = Reshape(x, s)\n}")
    lowered = lower_partition(Lowering(host_target(), 1), part)
    assert lowered.outputs[0].root is not lowered.inputs[0]


def test_a_node_that_was_to_be_converted_is_not_lowered_as_it_is() -> None:
    """A claim on that condition does not say how the node is lowered."""
    part = _partition("graph(x: float[1, 3, 8, 8]) -> (y: float[1, 3, 8, 8]) {\ny = Relu(x)\n}")
    for unit in (Capability(part.nodes), NodeClaim(part.nodes)):
        with pytest.raises(EPFail, match="Relu.*is compiled in NHWC only, and was not converted"):
            lower_partition(Lowering(host_target(), 1), dataclasses.replace(part, units=(unit,)))


def test_a_claim_is_lowered_as_it_was_made() -> None:
    """Its specification is handed on; the node is not read again."""
    part = _partition("graph(x: float[7, 9]) -> (y: float[9, 7]) {\ny = Transpose(x)\n}")
    (node,) = part.nodes
    claimed = claim_node(node)
    assert isinstance(claimed, Claimed)
    node.attributes.clear()
    node.op_type = "Unknown"
    part = dataclasses.replace(part, units=(NodeClaim((node,), claimed=claimed),))
    (step,) = lower_partition(Lowering(host_target(), 1), part).steps
    assert step.symbol.startswith("transpose_4")


class _Remembering(CpuProvider):
    """Remembers, weakly, the weights of what it compiles."""

    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> CpuProgram:
        program = super().compile(partition, bodies)
        found = (buffer.root.constant for step in program.storage.steps for buffer in step.buffers)
        self.weights = [weakref.ref(array) for array in found if array is not None]
        return program


def test_packed_weights_die_with_their_session() -> None:
    """At once, not when the garbage collector comes by: a thousand sessions in turn take no more memory than one."""
    provider = _Remembering(host_target(), 1)
    body = "graph(x: float[n, 8]) -> (y) { w: float[8, 64] = ... 1 a = MatMul(x, w) y = Softmax(a) }"
    session = InferenceSession(to_bytes(model(body)), providers=[provider])
    assert [weight() for weight in provider.weights]
    gc.disable()
    try:
        del session
        assert not [weight for weight in provider.weights if weight() is not None]
    finally:
        gc.enable()


@pytest.mark.parametrize("count", [1, 5])
def test_weights_that_are_many_lie_beside_one_another(count: int) -> None:
    """Those of four MiB and more in all, from a huge page on; fewer stay where they were packed."""
    provider = _Remembering(host_target(), 1)
    products = "".join(f"\nw{i}: float[512, 512] = ... {i}\nx{i + 1} = MatMul(x{i}, w{i})" for i in range(count))
    session = InferenceSession(to_bytes(model(f"graph(x0: float[n, 512]) -> (x{count}) {{{products}\n}}")), providers=[provider])
    packs = [array for weight in provider.weights if (array := weight()) is not None and array.nbytes >= 1 << 20]
    places = [array.__array_interface__["data"][0] for array in packs]
    assert len(places) == count
    assert [place - places[0] for place in places] == [number << 20 for number in range(count)]
    assert (places[0] % (2 << 20) == 0) == (count == 5)
    assert session.get_inputs()[0].name == "x0"
