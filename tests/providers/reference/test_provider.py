"""The reference provider."""

from __future__ import annotations

import marshal

import numpy as np
import pytest
from support.models import graph

from sardonyx import errors
from sardonyx.formats.plain_graph import KeptProgram
from sardonyx.ir import Graph
from sardonyx.provider import Body, GraphView, Partition
from sardonyx.providers.reference.provider import ReferenceProvider, evaluate


def _no_bodies(inner: Graph) -> Body:
    raise AssertionError(inner.name)


def test_it_claims_what_has_a_kernel_and_says_what_has_none() -> None:
    """An operator of a strange domain is declined with its name."""
    held = graph("graph(x: float[2]) -> (y: float[2]) {\na = Relu(x)\ny = strange.Thing:3(a)\n}")
    claims = ReferenceProvider().capabilities(GraphView(held, tuple(held)))
    relu, thing = held
    assert [capability.nodes for capability in claims.capabilities] == [(relu,)]
    assert claims.declined == {thing: "no kernel for strange.Thing at version 3"}


def test_a_program_is_made_again_of_what_was_kept() -> None:
    """It computes the same, and names the same node in an error."""
    held = graph(
        'graph(x: string[n]) -> (y: float[n]) {\ny = ai.onnx.ml.LabelEncoder:2(x) {keys_strings = ["a", "b"], values_floats = [1.0, 2.0]}\n}'
    )
    provider, (node,) = ReferenceProvider(), tuple(held)
    made = provider.compile(Partition("p", held, (node,), (), held.inputs, (), held.outputs), _no_bodies)
    kept = provider.keep(made)
    assert kept is not None
    again = provider.restore(KeptProgram(marshal.loads(marshal.dumps(kept.plain)), ()))
    words = np.array(["b", "a", "c"], object)
    assert again.run(None, [words], (), None)[0].tolist() == made.run(None, [words], (), None)[0].tolist() == [2, 1, 0]
    messages = []
    for program in (made, again):
        with pytest.raises(errors.InvalidArgument) as raised:
            program.run(None, [np.zeros(2, np.float32)], (), None)
        messages.append(str(raised.value))
    assert messages[0] == messages[1]


def test_much_is_not_kept() -> None:
    """A constant of more than 64 KiB is not."""
    held = graph("graph(x: float[20000]) -> (y: float[20000]) {\nw: float[20000] = ... 1\ny = Add(x, w)\n}")
    (constant,) = held.initializers.values()
    provider = ReferenceProvider()
    made = provider.compile(Partition("p", held, tuple(held), (), held.inputs, (constant,), held.outputs), _no_bodies)
    assert provider.keep(made) is None


def test_what_was_not_written_by_it_is_no_program() -> None:
    """A number of a tensor in a file that there is none of."""
    plain = ((("w", None, (1, (2,), 0)),), ("g", (), (), (), ()))
    with pytest.raises(ValueError, match="tensor 0 lies in no file"):
        ReferenceProvider().restore(KeptProgram((plain, (), (0,), ()), ()))


def test_one_node_can_be_evaluated() -> None:
    """Constant folding computes a node from arrays; one value may be read twice."""
    held = graph("graph(x: float[2]) -> (y: float[2]) {\ny = Add(x, x)\n}")
    x = np.float32([1, 2])
    assert evaluate(next(iter(held)), [x, x])[0].tolist() == [2, 4]


def test_evaluating_an_unknown_operator_is_an_error() -> None:
    """There is nothing to call."""
    held = graph("graph(x: float[2]) -> (y: float[2]) {\ny = strange.Thing:3(x)\n}")
    with pytest.raises(errors.NotImplemented, match="strange.Thing-3"):
        evaluate(next(iter(held)), [np.zeros(2, np.float32)])
