"""How many transposes are left inside the partitions of a provider that prefers NHWC.

    python benchmarks/transposes.py MODEL.onnx ... [--list]

For each model: the transposes in the file, and those in the compiled partitions of the CPU provider, by what they are for:

    border      reads an input of the model or makes an output, itself or by way of operators that take any layout: the model's
                interface is NCHW
    own         the model asks for it: the permutation is not one between NCHW and NHWC (attention heads, windows, and what a pushed
                one was merged with), or nothing that was converted to NHWC stands beside it
    free        moves dimensions of 1 only: no element moves
    inside      the others; the bar is 0, but for those beside a Reshape that mixes channels with pixels

`--list` prints each transpose of the last kind with its permutation, shape and neighbours.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from sardonyx import InferenceSession
from sardonyx.codegen.target import host_target
from sardonyx.formats.onnx import load
from sardonyx.ir import Graph, Node, Value
from sardonyx.ir.walk import all_nodes
from sardonyx.optimize.transposes.elementwise import ELEMENTWISE
from sardonyx.optimize.transposes.permutation import changes_layout, moves_nothing, permutation_of
from sardonyx.optimize.transposes.quantize import QUANTIZATION
from sardonyx.partition.layout import NHWC_DOMAIN
from sardonyx.provider import Body, Partition
from sardonyx.providers.cpu.program import CpuProgram
from sardonyx.providers.cpu.provider import CpuProvider

_ANY_LAYOUT = {*ELEMENTWISE, *QUANTIZATION, "Concat", "Pad", "Resize", "Slice", "Split"}
KINDS = ("border", "own", "free", "inside")


class Counting(CpuProvider):
    """The CPU provider, noting the transposes that it is given."""

    def __init__(self) -> None:
        """Begin with none."""
        super().__init__(host_target(), 1)
        self.kinds: Counter[str] = Counter()
        self.inside: list[str] = []

    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> CpuProgram:
        """Look at the nodes, then compile them."""
        for node in partition.nodes:
            permutation = permutation_of(node)
            if permutation is None:
                continue
            kind = _kind_of(node, permutation, partition.graph)
            self.kinds[kind] += 1
            if kind == "inside":
                self.inside.append(_describe(node))
        return super().compile(partition, bodies)


def _kind_of(node: Node, permutation: tuple[int, ...], graph: Graph) -> str:
    source = node.inputs[0]
    if source is None or moves_nothing(permutation, source.shape):
        return "free"
    above, below = _above(source), _below(node.output)
    if any(value.producer is None and value in graph.inputs for value in above) or any(value in graph.outputs for value in below):
        return "border"
    makers = {value.producer for value in above}
    readers = {user for value in below for user, _ in value.uses}
    beside = any(isinstance(item, Node) and item.domain == NHWC_DOMAIN for item in makers | readers)
    return "inside" if changes_layout(permutation) and beside else "own"


def _above(value: Value) -> set[Value]:
    """`value`, and what it is made of by operators that take any layout."""
    found, waiting = {value}, [value]
    while waiting:
        node = waiting.pop().producer
        if node is not None and _takes_any_layout(node):
            new = {other for other in node.inputs if other is not None and other.constant is None} - found
            found |= new
            waiting += new
    return found


def _below(value: Value) -> set[Value]:
    """`value`, and what operators that take any layout make of it."""
    found, waiting = {value}, [value]
    while waiting:
        for user, _ in waiting.pop().uses:
            new = set(user.outputs) - found if isinstance(user, Node) and _takes_any_layout(user) else set()
            found |= new
            waiting += new
    return found


def _takes_any_layout(node: Node) -> bool:
    return node.op_type in _ANY_LAYOUT and not node.domain


def _describe(node: Node) -> str:
    source = node.inputs[0]
    readers = [user.op_type if isinstance(user, Node) else "output" for user, _ in node.output.uses]
    shape = None if source is None else source.shape
    return f"{node.get('perm')} of {shape} from {_maker(source)} to {', '.join(readers)}"


def _maker(value: Value | None) -> str:
    if value is None or value.producer is None:
        return "input" if value is None or value.constant is None else "constant"
    return value.producer.op_type


def main() -> None:
    """Count in the models that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    print(f"{'model':28} {'in file':>8}" + "".join(f"{kind:>8}" for kind in KINDS))
    for path in arguments.models:
        in_file = sum(node.op_type == "Transpose" for node in all_nodes(load(path)))
        provider = Counting()
        InferenceSession(path, providers=[provider])
        print(f"{path.name:28} {in_file:8}" + "".join(f"{provider.kinds[kind]:8}" for kind in KINDS))
        for line in provider.inside if arguments.list else ():
            print(f"    {line}")


if __name__ == "__main__":
    main()
