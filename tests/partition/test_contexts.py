"""Partitions that were compiled before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from support.models import graph
from support.providers import FusingProvider

from sardonyx import errors
from sardonyx.dtypes import DataType
from sardonyx.ir import Graph
from sardonyx.partition.assign import assign
from sardonyx.partition.contexts import check_signature, context_claim, fit_program, is_context
from sardonyx.partition.cut import cut
from sardonyx.provider import Body, Bound, Partition, Program, TensorSpec

_CONTEXT = 'com.microsoft.EPContext(x) {source = "Keeper"}'


class _Keeper(FusingProvider):
    """Fuses what it can, and keeps programs."""

    def __init__(self) -> None:
        super().__init__({"Relu", "Neg"}, "Keeper", fuse=False)

    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> Program:
        return super().compile(partition, bodies)

    def save(self, partition: Partition, program: Program) -> bytes | None:
        return b""

    def load(self, partition: Partition, content: memoryview) -> Program:
        raise errors.EPFail("nothing was kept")


def test_a_context_goes_to_the_provider_that_made_it() -> None:
    """Other nodes are assigned as ever."""
    held = graph(f"graph(x: float[2]) -> (y: float[2]) {{\na = {_CONTEXT}\ny = Relu(a)\n}}")
    context, relu = held
    assert is_context(context)
    assert not is_context(relu)
    units = assign(held, [_Keeper()]).units
    assert units[context].capability.alone
    assert units[relu].provider.name == "Keeper"


def test_a_context_is_a_partition_of_its_own() -> None:
    """Although its provider runs what stands before and after it."""
    nodes = f"b = Relu(x)\na = {_CONTEXT.replace('(x)', '(b)')}\nc = {_CONTEXT}\ny = Neg(a, c)"
    held = graph(f"graph(x: float[2]) -> (y: float[2]) {{\n{nodes}\n}}")
    parts, _ = cut(held, assign(held, [_Keeper()]).units)
    assert sorted(tuple(node.op_type for node in part.partition.nodes) for part in parts) == [
        ("EPContext",),
        ("EPContext",),
        ("Neg",),
        ("Relu",),
    ]


@pytest.mark.parametrize("providers", [[], [FusingProvider({"Relu"}, "Keeper")]])
def test_a_context_without_its_provider_is_an_error(providers: list[Any]) -> None:
    """So is one whose provider keeps no programs."""
    (node,) = graph(f"graph(x: float[2]) -> (y: float[2]) {{ y = {_CONTEXT} }}")
    with pytest.raises(errors.NotImplemented, match="was compiled by Keeper and cannot be loaded by (no provider|Keeper); give"):
        context_claim(node, providers)


class _Sums:
    """Gives out the sum and the difference of two vectors."""

    makes_outputs = False

    def bind(self, shapes: tuple[tuple[int, ...] | None, ...]) -> Bound:
        return Bound((TensorSpec(DataType.FLOAT, shapes[0] or ()),) * 2, scratch_bytes=64)

    def run(self, bound: Bound, inputs: Sequence[Any], outputs: Sequence[Any], scratch: Any) -> Sequence[Any]:
        assert scratch.nbytes == bound.scratch_bytes
        np.add(*inputs, out=outputs[0])
        np.subtract(*inputs, out=outputs[1])
        return outputs


def _partition(text: str) -> Partition:
    held = graph(text)
    (node,) = held
    return Partition("part_0", held, (node,), (), tuple(held.inputs), tuple(held.initializers.values()), held.outputs)


def test_a_program_that_fits_is_taken_as_it_is() -> None:
    """Inputs and outputs are those of the node."""
    program = _Sums()
    part = _partition("graph(x: float[2], z: float[2]) -> (s: float[2], d: float[2]) { s, d = com.microsoft.EPContext(x, z) }")
    assert fit_program(program, part) is program


def test_constants_doubles_and_outputs_that_nobody_reads_are_filled_in() -> None:
    """What the optimizer found out about the node's values does not disturb the program."""
    part = _partition("graph(x: float[2]) -> (d: float[2]) { k: float[2] = [1, 2]\ns, d = com.microsoft.EPContext(x, k) }")
    fitted = fit_program(_Sums(), part)
    assert fitted.makes_outputs
    (found,) = fitted.run(fitted.bind(()), [np.float32([5, 5])], (), None)
    assert found.tolist() == [4, 3]
    part = _partition("graph(x: float[2]) -> (s: float[2], d: float[2]) { s, d = com.microsoft.EPContext(x, x) }")
    fitted = fit_program(_Sums(), part)
    assert [item.tolist() for item in fitted.run(fitted.bind(()), [np.float32([5, 4])], (), None)] == [[10, 8], [0, 0]]


_HELD = "graph(x: float[n, 4]) -> (y: float[n]) { y = com.microsoft.EPContext(x) }"


@pytest.mark.parametrize(
    "held",
    [
        _HELD,
        _HELD.replace("[n, 4]", "[3, k]"),
        _HELD.replace("float[n]", "float[?]"),
    ],
)
def test_a_program_with_inputs_and_outputs_of_the_node_is_accepted(held: str) -> None:
    """Sizes that one knows and the other does not are no contradiction."""
    other = _partition(held)
    check_signature(_partition(_HELD), other.inputs, other.outputs)


@pytest.mark.parametrize(
    ("held", "message"),
    [
        (_HELD.replace("float[n, 4]", "double[n, 4]"), r"input 0 is tensor\(float\)\[n, 4\], but tensor\(double\)\[n, 4\] in the"),
        (_HELD.replace("[n, 4]", "[n, 5]"), r"input 0 is .*\[n, 4\], but .*\[n, 5\] in the program"),
        (_HELD.replace("float[n])", "float[n, 1])"), r"output 0 is .*\[n\], but .*\[n, 1\] in the program"),
        (
            _HELD.replace("(x: float[n, 4])", "(x: float[n, 4], z: float[n])").replace("(x) }", "(x, z) }"),
            "it has 1 inputs, .* has 2",
        ),
    ],
)
def test_a_program_of_another_partition_is_refused(held: str, message: str) -> None:
    """Kernels do not look at types: they would read beyond the ends of arrays."""
    other = _partition(held)
    with pytest.raises(errors.EPFail, match=f"{message}.*; it is the program of another partition; make the context anew"):
        check_signature(_partition(_HELD), other.inputs, other.outputs)


def test_a_node_without_types_is_refused() -> None:
    """What it gets would not be known before it runs."""
    part = _partition(_HELD)
    part.nodes[0].outputs[0].type = None
    other = _partition(_HELD)
    with pytest.raises(errors.EPFail, match="output 0 is of no known type"):
        check_signature(part, other.inputs, other.outputs)
