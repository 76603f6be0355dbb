"""CPU programs in a file: the partition's nodes, its packed weights, and the objects of its kernels.

A saved partition is lowered again when it is loaded, which is quick; what takes long, packing weights and compiling kernels, is not
done again. Only where weights are to be left out of the file are they kept as they are, to be recognized, and packed when loaded.
The objects are good for the sources that wrote them (the edition) and for processors that have what they use (the target).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from sardonyx.codegen import llvm
from sardonyx.codegen.run.driver import Driver
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target, runnable_target
from sardonyx.dtypes import Array, DataType
from sardonyx.errors import EPFail
from sardonyx.formats.program_file import ProgramFile, read_program, write_program
from sardonyx.ir import Dim, Graph, Node, Tensor, TensorType, Value
from sardonyx.optimize.edit import clone_node
from sardonyx.partition.contexts import check_signature
from sardonyx.provider import Capability, Compatibility, Partition
from sardonyx.providers.cpu.claims import Claimed, NodeClaim, claim_node
from sardonyx.providers.cpu.compile import Lowered, lower_partition, make_program
from sardonyx.providers.cpu.context_lists import put_lists, take_lists
from sardonyx.providers.cpu.library import edition, kernel_cache
from sardonyx.providers.cpu.lowering import KeptWeights, Lowering
from sardonyx.providers.cpu.precision import Precision
from sardonyx.providers.cpu.program import CpuProgram
from sardonyx.providers.cpu.size_claims import SizesClaim

__all__ = ["compatibility_of", "describe_target", "load_program", "save_program"]

_LARGE_BYTES = 4096
_NEVER_NEGATIVE = 1 << 32
"""Added to the elements of size values, which are written as dimensions, since these are not negative."""


def describe_target(target: Target) -> str:
    """Return what programs for `target` are good for, as text."""
    return json.dumps({**_makers(), "target": target.key})


def compatibility_of(target: Target, text: str) -> Compatibility:
    """Return how good programs are that `describe_target` described, for a session that compiles for `target`.

    A text that `describe_target` cannot have written is not judged: EP_NOT_APPLICABLE.
    """
    try:
        about = dict(json.loads(text))
    except (RecursionError, TypeError, ValueError):
        return Compatibility.EP_NOT_APPLICABLE
    is_ours = all(about.get(what) == own for what, own in _makers().items())
    if not is_ours or runnable_target(str(about.get("target")), target) is None:
        return Compatibility.EP_UNSUPPORTED
    is_best = about["target"] == target.key
    return Compatibility.EP_SUPPORTED_OPTIMAL if is_best else Compatibility.EP_SUPPORTED_PREFER_RECOMPILATION


def save_program(
    target: Target,
    threads: int,
    partition: Partition,
    packs: Sequence[Array] | None = None,
    *,
    packed: bool = True,
    precision: Precision = Precision.HIGHEST,
) -> bytes:
    """Return the bytes of `partition` compiled for `target`.

    Args:
        target: what it was compiled for.
        threads: how many threads it runs on.
        partition: what was compiled.
        packs: its weights, as they were packed; None packs them here.
        packed: whether they are kept so, else as they are in the model.
        precision: of its products.
    """
    low = Lowering(target, threads, None if packs is None else KeptWeights(packs, ()), precision)
    graph, sizes = _graph_of(partition)
    try:
        return _content_of(low, partition, graph, sizes, packed)
    finally:
        low.forget()
        graph.dismantle()


def _content_of(low: Lowering, partition: Partition, graph: Graph, sizes: list[list[int]], packed: bool) -> bytes:
    target, lowered, objects = low.target, lower_partition(low, partition), _Objects()
    Engine(target, cache=objects).add_kernels({step.symbol: low.writers[step.symbol] for step in lowered.steps}, edition())
    Driver(target, cache=objects)
    tensors = [value.constant for value in partition.constants if value.constant is not None]
    constants = [np.asarray(tensor.numpy()) for tensor in tensors]
    counts = {"inputs": len(partition.inputs), "constants": len(constants), "sizes": sizes, "packed": packed}
    counts["precision"] = low.precision.name
    if not packed:
        counts["narrow"] = [[index, str(tensor.narrow.dtype)] for index, tensor in enumerate(tensors) if tensor.narrow is not None]
    lists, entries = take_lists(graph)
    about = {**_makers(), "target": target.key, **counts, "lists": entries}
    if not packed:
        return write_program(about, graph, [*constants, *lists], (), objects.found)
    absent = _absent(partition, low, lowered)
    arrays = [*constants, *low.packs, *lists]
    content = write_program(about, graph, arrays, absent, objects.found)
    if absent and not _agrees(read_program(memoryview(content)), target, low.threads, partition.name, lowered):
        return write_program(about, graph, arrays, (), objects.found)
    return content


def load_program(here: Target, threads: int, partition: Partition, content: memoryview) -> CpuProgram:
    """Return the program of saved bytes, for the target that it was compiled for, which may be a lower one than `here`.

    Raises:
        EPFail: they are damaged, for another edition, for a processor that has what this one lacks, or of another partition.
    """
    file = read_program(content, partition.constants)
    for what, own in _makers().items():
        if file.about.get(what) != own:
            raise EPFail(
                f"partition {partition.name} was compiled by the {what} {_short(file.about.get(what))}, this is {_short(own)}; "
                "make the context anew from the original model"
            )
    target = runnable_target(str(file.about.get("target")), here)
    if target is None:
        raise EPFail(
            f"partition {partition.name} was compiled for {_short(file.about.get('target'))}, but this is {_short(here.key)}, "
            "which lacks some of it; make the context anew from the original model, there with SARDONYX_ISA set to what both have"
        )
    restored, low = _restored(file, target, threads, partition.name)
    objects = _FileCache(file.objects)
    try:
        check_signature(partition, restored.inputs, restored.outputs)
        return make_program(restored, low, lower_partition(low, restored), Driver(target, cache=objects), objects)
    finally:
        low.forget()
        restored.graph.dismantle()


def _makers() -> dict[str, str]:
    """Return what must be the same where a program is made and where it is loaded: the sources of kernels, and LLVM."""
    return {"edition": edition(), "LLVM": llvm.version()}


class _Objects:
    """A cache that remembers what went through it, in front of the process's."""

    def __init__(self) -> None:
        self.found: dict[str, bytes] = {}

    def load(self, key: str) -> bytes | None:
        cache = kernel_cache()
        content = None if cache is None else cache.load(key)
        if content is not None:
            self.found[key] = content
        return content

    def store(self, key: str, content: bytes) -> None:
        self.found[key] = content
        cache = kernel_cache()
        if cache is not None:
            cache.store(key, content)


class _FileCache:
    """A cache that holds what a file holds, and nothing else."""

    def __init__(self, objects: Mapping[str, memoryview]) -> None:
        self._objects = objects

    def load(self, key: str) -> bytes:
        found = self._objects.get(key)
        if found is None:
            raise EPFail(f"a compiled partition lacks the object {key[:12]} of one of its kernels; make the context anew")
        return bytes(found)

    def store(self, key: str, content: bytes) -> None:
        raise ValueError(f"object {key[:12]} is in the file already")


def _graph_of(partition: Partition) -> tuple[Graph, list[list[int]]]:
    """Return a copy of the partition as a graph: inputs, then constants, then size values.

    Size values come with (node, outputs) for each.
    """
    values: dict[Value, Value] = {}
    for index, value in enumerate((*partition.inputs, *partition.constants)):
        values[value] = Value(f"i{index}", value.type)
    elements = {node: unit.elements for unit in partition.units if isinstance(unit, SizesClaim) for node in unit.nodes}
    sizes: list[list[int]] = []
    told: list[Value] = []
    for index, node in enumerate(partition.nodes):
        if node in elements:
            sizes.append([index, len(elements[node])])
            shapes = [tuple(dim + _NEVER_NEGATIVE for dim in item) for item in elements[node]]
            told += [Value(f"s{len(told) + place}", TensorType(DataType.INT64, shape)) for place, shape in enumerate(shapes)]
    graph = Graph("partition", [*values.values(), *told])
    for index, node in enumerate(partition.nodes):
        copy = graph.append(clone_node(node, values))
        copy.doc, copy.metadata = "", None
        for place, made in enumerate(copy.outputs):
            made.name = f"v{index}_{place}"
    for value in partition.outputs:
        graph.add_output(values[value])
    return graph, sizes


def _restored(file: ProgramFile, target: Target, threads: int, name: str) -> tuple[Partition, Lowering]:
    """Return the partition of a file, and a lowering that knows its packed weights."""
    graph, about = file.graph, file.about
    count, constant_count = int(about["inputs"]), int(about["constants"])
    inputs, constants = graph.inputs[:count], graph.inputs[count : count + constant_count]
    told = graph.inputs[count + constant_count :]
    for value, array in zip(constants, file.arrays, strict=False):
        value.constant = Tensor.from_array(array)
        if (value.constant.dtype, value.constant.shape) != (value.dtype, value.shape):
            raise EPFail(f"a compiled partition has {value.constant!r} as a constant of {value.type}{value.shape}; make it anew")
    for index, kind in about.get("narrow", ()):
        tensor = constants[index].constant
        if tensor is not None:
            constants[index].constant = Tensor.widened(Tensor.from_array(tensor.numpy().astype(DataType.parse(kind).numpy)))
    nodes = tuple(graph)
    entries = about["lists"]
    put_lists(nodes, file.arrays[len(file.arrays) - len(entries) :], entries)
    units = {node: Capability((node,)) for node in nodes}
    for index, outputs in about["sizes"]:
        shapes, told = told[:outputs], told[outputs:]
        elements = tuple(_elements(value.shape or ()) for value in shapes)
        units[nodes[index]] = SizesClaim((nodes[index],), elements=elements)
    for node in nodes:
        if not isinstance(units[node], SizesClaim):
            units[node] = NodeClaim((node,), claimed=_claimed_anew(node))
    partition = Partition(name, graph, nodes, tuple(units.values()), tuple(inputs), tuple(constants), graph.outputs)
    absent = {constants[index] for index in file.absent}
    kept = KeptWeights(file.arrays[constant_count:], absent) if about["packed"] else None
    return partition, Lowering(target, threads, kept, Precision[about["precision"]])


def _claimed_anew(node: Node) -> Claimed:
    """Claim a node of a file, which may hold any."""
    found = claim_node(node)
    if isinstance(found, str):
        raise EPFail(f"a compiled partition has {node!r}, which cannot be run as it is: {found}; make the context anew")
    return found


def _elements(dims: Iterable[Dim]) -> tuple[Dim, ...]:
    return tuple(dim - _NEVER_NEGATIVE for dim in dims)


def _absent(partition: Partition, low: Lowering, lowered: Lowered) -> list[int]:
    """Return large constants that no step reads as they are: they were packed."""
    read = {buffer.root for step in lowered.steps for buffer in step.buffers}
    found = []
    for index, value in enumerate(partition.constants):
        is_large = value.constant is not None and value.constant.size_bytes >= _LARGE_BYTES
        if is_large and not (low.holds(value) and low.of(value).root in read):
            found.append(index)
    return found


def _agrees(file: ProgramFile, target: Target, threads: int, name: str, lowered: Lowered) -> bool:
    """Return whether a file whose packed constants are absent is lowered to the same kernels over the same numbers."""
    partition, low = _restored(file, target, threads, name)
    try:
        other = lower_partition(low, partition)
        if [(step.symbol, step.scalars) for step in lowered.steps] != [(step.symbol, step.scalars) for step in other.steps]:
            return False
        pairs = zip(_constants_of(lowered), _constants_of(other), strict=True)
        return all((left is None) == (right is None) and _same(left, right) for left, right in pairs)
    finally:
        low.forget()
        partition.graph.dismantle()


def _constants_of(lowered: Lowered) -> list[Array | None]:
    return [buffer.root.constant for step in lowered.steps for buffer in step.buffers]


def _same(left: Array | None, right: Array | None) -> bool:
    if left is None or right is None:
        return True
    return left.shape == right.shape and np.array_equal(left.reshape(-1).view(np.uint8), right.reshape(-1).view(np.uint8))


def _short(text: object) -> str:
    return str(text)[:48]
