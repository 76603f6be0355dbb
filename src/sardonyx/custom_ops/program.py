"""A partition of custom operators, run kernel by kernel."""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Sequence
from typing import Any

from sardonyx.custom_ops.abi.chain import Chain, Link
from sardonyx.custom_ops.abi.table import shared_api
from sardonyx.custom_ops.definition import Kernel
from sardonyx.custom_ops.kernel import CompiledKernel
from sardonyx.errors import InvalidGraph, RuntimeException, SardonyxError, describe, located
from sardonyx.ir import Node, Value
from sardonyx.ops.schema import place_of
from sardonyx.provider import HOST, Bound, Memory, check_cancelled

__all__ = ["CustomProgram"]


@dataclasses.dataclass(frozen=True, slots=True)
class _NodeCall:
    """One node."""

    kernel: Kernel
    """What computes it."""
    arguments: tuple[int, ...]
    """The slots of its inputs."""
    results: tuple[int, ...]
    """The slots of its outputs."""
    needed: tuple[tuple[int, str], ...]
    """The outputs that others read: place and name."""
    present: tuple[bool, ...]
    """For each output whether the node has it."""
    frees: tuple[int, ...]
    """Slots that nobody reads afterwards."""
    place: str
    """What messages call the node."""


class CustomProgram:
    """Custom operators in order. Immutable; any number of threads may run it."""

    makes_outputs = True

    def __init__(
        self,
        nodes: Sequence[Node],
        kernels: Sequence[Kernel],
        inputs: Sequence[Value],
        constants: Sequence[Value],
        outputs: Sequence[Value],
        memory: Memory = HOST,
    ) -> None:
        """Put `nodes`, each with its kernel, in slots: `inputs` and `constants` are read, `outputs` given out, all in `memory`."""
        slots: dict[Value, int] = {}
        for value in (*inputs, *constants, *(value for node in nodes for value in node.outputs)):
            slots.setdefault(value, len(slots))
        self._input_count = len(inputs)
        self._template: list[Any] = [None] * (len(slots) + 1)
        for value in constants:
            if value.constant is not None:
                self._template[slots[value]] = memory.from_host(value.constant.numpy())
        self._outputs = tuple(slots[value] for value in outputs)
        self._bound = Bound((None,) * len(outputs))
        kept = {*self._outputs, *(slots[value] for value in constants)}
        last: dict[int, int] = {}
        for number, node in enumerate(nodes):
            used = (*(value for value in node.inputs if value is not None), *node.outputs)
            last.update((slots[value], number) for value in used)
        self._steps = steps = [
            _NodeCall(
                kernel=kernel,
                arguments=tuple(len(slots) if value is None else slots[value] for value in node.inputs),
                results=tuple(slots[value] for value in node.outputs),
                needed=tuple(
                    (index, value.name) for index, value in enumerate(node.outputs) if value.use_count or value in outputs
                ),
                present=tuple(bool(value.name) or value.use_count > 0 for value in node.outputs),
                frees=tuple(slot for slot, at in last.items() if at == number and slot not in kept),
                place=place_of(node),
            )
            for number, (node, kernel) in enumerate(zip(nodes, kernels, strict=True))
        ]

        self._kernels = kernels
        self._chains: list[Chain] = []
        self._parts = None if any(not isinstance(kernel, CompiledKernel) for kernel in kernels) else _links(steps, len(slots))
        self._constants = tuple(slots[value] for value in constants)
        self._places = (*range(len(inputs)), *self._constants)

    def bind(self, shapes: tuple[tuple[int, ...] | None, ...]) -> Bound:
        """Return the one binding there is: kernels look at the shapes when they run."""
        return self._bound

    def run(self, bound: Bound, inputs: Sequence[object], outputs: Sequence[object], scratch: object) -> list[object]:
        """Call the kernels in order and return arrays of their making."""
        if self._parts is not None:
            return self._run_chain(self._parts, inputs)
        frame = self._template.copy()
        frame[: self._input_count] = inputs
        for step in self._steps:
            check_cancelled()
            _run(step, frame)
        return [frame[slot] for slot in self._outputs]

    def _run_chain(self, links: Sequence[Link], inputs: Sequence[Any]) -> list[Any]:
        """Run all kernels in one native call."""
        try:
            chain = self._chains.pop()
        except IndexError:
            chain = Chain(links, self._places, self._outputs, shared_api().run)
            weakref.finalize(self, chain.close)
        try:
            return chain.run([*inputs, *(self._template[slot] for slot in self._constants)])
        finally:
            self._chains.append(chain)


def _links(steps: Sequence[_NodeCall], empty: int) -> list[Link]:
    """Kernels that are all of compiled libraries, as a chain; `empty` is the slot of what is left out."""
    links = []
    for step in steps:
        if isinstance(step.kernel, CompiledKernel):
            inputs = [-1 if slot == empty else slot for slot in step.arguments]
            outputs = [slot if present else -1 for slot, present in zip(step.results, step.present, strict=True)]
            links.append(step.kernel.link(inputs, outputs, [index for index, _ in step.needed], step.place))
    return links


def _run(step: _NodeCall, frame: list[Any]) -> None:
    try:
        results = step.kernel.compute([frame[slot] for slot in step.arguments])
    except SardonyxError as error:
        raise located(error, step.place) from error
    except Exception as error:
        raise RuntimeException(f"{step.place}: {describe(error)}") from error
    for index, name in step.needed:
        if index >= len(results) or results[index] is None:
            raise InvalidGraph(f"{step.place}: its output {index} {name!r}, which is read, is not made by this custom operator")
    for slot, item in zip(step.results, results, strict=False):
        frame[slot] = item
    for slot in step.frees:
        frame[slot] = None
