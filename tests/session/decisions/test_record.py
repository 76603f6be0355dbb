"""Records of decisions."""

import dataclasses
import marshal

import numpy as np
import pytest
from support.models import graph

from sardonyx.formats.opened import OpenedModel, open_model
from sardonyx.formats.wire import Blob, Stripped
from sardonyx.ir import Graph, Tensor
from sardonyx.partition.explain import Placement
from sardonyx.partition.part import Cut
from sardonyx.provider import Capability, Partition
from sardonyx.providers.reference.provider import NAME, ReferenceProvider
from sardonyx.session.decisions.elements import Elements
from sardonyx.session.decisions.record import Decided, StaleError, read_record, write_record
from sardonyx.session.values import ModelMetadata, NodeArg

_ELEMENTS = Elements(open_model(b"any bytes", None))
_PROVIDER = ReferenceProvider()


def _decided(held: Graph, placed: dict[Tensor, int] | None = None) -> Decided:
    constants = tuple(held.initializers.values())
    units = tuple(Capability((node,)) for node in held)
    partition = Partition("main_0", held, tuple(held), units, tuple(held.inputs), constants, held.outputs)
    return Decided(
        graph=held,
        placed=placed or {},
        stamps={},
        inputs=tuple(held.inputs),
        declared=(NodeArg("y", "tensor(float)", ["n", 2]),),
        defaults={"d": np.float32([1, 2])},
        metadata=ModelMetadata("a", "b", "c", "d", "e", 7, {"k": "v"}),
        cuts=(Cut(_PROVIDER, partition),),
        placements=(Placement("n", "Add", 14, "main", NAME, "main_0", "", {"other": "why"}),),
        report=(1, 2),
    )


def _graph() -> Graph:
    return graph("graph(x: float[n, 2]) -> (y: float[n, 2]) { w: float[2] = [1, 2]\n a = Add(x, w)\n y = Relu(a) }")


def test_a_record_holds_all_that_was_decided() -> None:
    """Partitions, inputs, outputs, defaults, metadata, placements and the report."""
    decided = _decided(_graph())
    content = write_record(_ELEMENTS, decided, [_PROVIDER])
    assert content is not None
    restored = read_record(content, _ELEMENTS, {NAME: _PROVIDER})
    (part,) = restored.cuts
    assert part.provider is _PROVIDER
    assert [node.op_type for node in part.partition.nodes] == ["Add", "Relu"]
    assert part.partition.nodes == tuple(restored.graph)
    assert part.partition.inputs == tuple(restored.graph.inputs) == restored.inputs
    assert part.partition.outputs == restored.graph.outputs
    assert [unit.nodes for unit in part.partition.units] == [(node,) for node in restored.graph]
    (constant,) = part.partition.constants
    assert constant.constant is not None
    assert constant.constant.numpy().tolist() == [1, 2]
    assert restored.declared == decided.declared
    assert restored.defaults["d"].tolist() == [1, 2]
    assert (restored.metadata, restored.placements, restored.report) == (decided.metadata, decided.placements, (1, 2))


def _in_file(content: bytes, *, reads: bool) -> tuple[Decided, OpenedModel]:
    held = _graph()
    tensor = held.initializers["w"].constant
    assert tensor is not None
    tensor.was_read = reads
    opened = dataclasses.replace(open_model(content, None), stripped=Stripped(b"", {b"k": Blob(0, 8, 9)}))
    return _decided(held, {tensor: 0}), opened


def test_weights_of_the_file_are_read_there() -> None:
    """One that nobody read may differ."""
    decided, opened = _in_file(np.float32([1, 2]).tobytes(), reads=False)
    content = write_record(Elements(opened), decided, [_PROVIDER])
    assert content is not None
    _, other = _in_file(np.float32([3, 4]).tobytes(), reads=False)
    constant = read_record(content, Elements(other), {NAME: _PROVIDER}).cuts[0].partition.constants[0].constant
    assert constant is not None
    assert constant.numpy().tolist() == [3, 4]


def test_weights_that_were_read_must_be_the_same() -> None:
    """Else the record is stale."""
    decided, opened = _in_file(np.float32([1, 2]).tobytes(), reads=True)
    content = write_record(Elements(opened), decided, [_PROVIDER])
    assert content is not None
    read_record(content, Elements(opened), {NAME: _PROVIDER})
    _, other = _in_file(np.float32([1, 3]).tobytes(), reads=True)
    with pytest.raises(StaleError, match="other elements"):
        read_record(content, Elements(other), {NAME: _PROVIDER})


def test_much_that_was_computed_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are without weights."""
    monkeypatch.setattr("sardonyx.session.decisions.record._MOST_HELD_BYTES", 15)
    assert write_record(_ELEMENTS, _decided(_graph()), [_PROVIDER]) is None


@pytest.mark.parametrize("content", [b"", b"x", marshal.dumps(3), marshal.dumps((1,) * 10), marshal.dumps(((),) * 10)])
def test_what_is_no_record_is_stale(content: bytes) -> None:
    """Whatever it is."""
    with pytest.raises(StaleError):
        read_record(content, _ELEMENTS, {NAME: _PROVIDER})


def test_a_record_of_other_providers_is_stale() -> None:
    """The session has none of that name."""
    content = write_record(_ELEMENTS, _decided(_graph()), [_PROVIDER])
    assert content is not None
    with pytest.raises(StaleError):
        read_record(content, _ELEMENTS, {})
