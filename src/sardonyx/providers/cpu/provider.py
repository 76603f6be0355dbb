"""The CPU provider: claims what it can compile, lowers partitions to steps, and compiles their kernels."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from sardonyx import config
from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.cancellation import CHECKED_EACH, check_cancelled, checked
from sardonyx.codegen.run.processors import available_processors
from sardonyx.codegen.target import Target, host_target
from sardonyx.dtypes import Array, DataType
from sardonyx.errors import EPFail
from sardonyx.forks import without_fork
from sardonyx.ir import Expr, Graph, Node, TensorType, Value
from sardonyx.ir.shape import symbols_in
from sardonyx.ir.walk import nested_graphs
from sardonyx.ops.schema import NHWC_DOMAIN
from sardonyx.ops.views.normalize import GroupNormalization
from sardonyx.option import COUNT, FLAG, Option, choice
from sardonyx.provider import HOST, Body, Capability, Claims, Compatibility, GraphView, Layout, Memory, Partition, Program
from sardonyx.providers.cpu.claims import Claimed, NodeClaim, claim_node, find_claim
from sardonyx.providers.cpu.compile import lower_partition, make_program
from sardonyx.providers.cpu.library import decision_facts, driver_for, take_facts
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given
from sardonyx.providers.cpu.precision import PRECISIONS, Precision
from sardonyx.providers.cpu.program import CpuProgram
from sardonyx.providers.cpu.size_claims import Elements, SizesClaim, symbols_of
from sardonyx.spelling import nearest
from sardonyx.trace import event

if TYPE_CHECKING:
    from sardonyx.providers.cpu.loop_program import LoopProgram

__all__ = ["NAME", "OPTIONS", "CpuProvider", "create"]

NAME = "CPUExecutionProvider"
"""The provider's name."""
_MOST_THREADS = 1024
"""A number above this is a mistake: each thread has a stack, and costs a wake-up for each step."""
_THREADS = Option("intra_op_num_threads", COUNT, 0, "how many threads run a step; 0 for as many as the process has processors")
_DENORMALS = Option(
    "set_denormal_as_zero",
    FLAG,
    False,
    "compute with zeros for denormal numbers; `session.set_denormal_as_zero` says it for a session",
)
_PRECISION = Option(
    "float32_precision",
    choice(*PRECISIONS),
    "highest",
    "what operands of products of float32 models may be rounded to: nothing (highest, and high here), or bfloat16 with sums in "
    "float32 (medium); `session.float32_precision` says it for a session",
)
_CONVERTED = ("", "com.microsoft")
"""The domains of operators that are claimed in NHWC."""
OPTIONS: tuple[Option[object], ...] = (_THREADS, _DENORMALS, _PRECISION)
"""Its options."""
_FOREIGN = ("arena_extend_strategy", "use_arena")
"""Options of onnxruntime's CPU provider, which has arenas where this one plans memory for each shape."""


class CpuProvider:
    """Compiles its claims to machine code for this processor."""

    name = NAME
    preferred_layout = Layout.NHWC
    memory: Memory = HOST
    preferred_operators = frozenset(
        [
            "DynamicQuantizeLinear",
            "DynamicQuantizeMatMul",
            "MatMulIntegerToFloat",
            "MatMulNBits",
            "QGemm",
            "QLinearAdd",
            "QLinearAveragePool",
            "QLinearConv",
            "QLinearGlobalAveragePool",
            "QLinearLeakyRelu",
            "QLinearMatMul",
            "QLinearMul",
            "QLinearSigmoid",
            "QLinearWhere",
            "STFT",
        ]
    )

    def __init__(
        self, target: Target, threads: int, *, flushes_denormals: bool = False, precision: Precision = Precision.HIGHEST
    ) -> None:
        """Make a provider that compiles for `target`, runs on `threads` threads, and may take denormal numbers as zero."""
        self._target = target
        self._precision = precision
        self._threads = threads
        self._flushes_denormals = flushes_denormals

    def capabilities(self, view: GraphView) -> Claims:
        """Claim what can be compiled: known types and ranks, and sizes that follow from the shapes of values at hand."""
        with without_fork():
            from sardonyx.providers.cpu.size_values import size_values  # with the shape functions, which are needed only here

        witnesses, sizes = _witnesses(view.graph), size_values(view.graph)
        layout_follows = self.preferred_layout is Layout.NHWC and not view.after_layout
        claims: list[Capability] = []
        declined: dict[Node, str] = {}
        for node in view.nodes:
            check_cancelled()
            claim = _sizes_claim(node, sizes.get(node), witnesses) or _claim(node, witnesses, layout_follows=layout_follows)
            if isinstance(claim, str):
                declined[node] = claim
            else:
                claims.append(claim)
        return Claims(_in_one_layout(claims) if layout_follows else claims, declined)

    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> CpuProgram | LoopProgram:
        """Lower the partition to steps and compile the kernels that they need."""
        low = Lowering(self._target, self._threads, precision=self._precision)
        if partition.nodes[0].op_type == "Loop":
            with without_fork():
                from sardonyx.providers.cpu.loop_program import make_loop_program, open_loop  # which few sessions need

            lengths = open_loop(partition)
            if lengths is not None:
                return make_loop_program(partition, low, lengths, driver_for(self._target), flush=self._flushes_denormals)
        return self._made(make_program(partition, low, lower_partition(low, partition), driver_for(self._target)))

    def _made(self, program: CpuProgram) -> CpuProgram:
        program.flushes_denormals = self._flushes_denormals
        return program

    def save(self, partition: Partition, program: Program) -> bytes | None:
        """Return the bytes of a partition that was compiled; it is lowered anew, with the weights that `program` has packed.

        A loop whose scan outputs have lengths that only the run shows is not kept.
        """
        with without_fork():
            from sardonyx.providers.cpu.context import save_program  # which few sessions need
            from sardonyx.providers.cpu.loop_program import LoopProgram

        if isinstance(program, LoopProgram):
            return None
        return save_program(self._target, self._threads, partition, _packs_of(program), precision=self._precision)

    def load(self, partition: Partition, content: memoryview) -> CpuProgram:
        """Return the program of saved bytes: no kernel is compiled, and no weight that was saved packed is packed."""
        with without_fork():
            from sardonyx.providers.cpu.context import load_program  # which few sessions need

        return self._made(load_program(self._target, self._threads, partition, content))

    def save_weightless(self, partition: Partition, program: Program) -> bytes | None:
        """Return what `save` returns, with weights as they are: they are packed whenever it is loaded."""
        with without_fork():
            from sardonyx.providers.cpu.context import save_program  # which few sessions need
            from sardonyx.providers.cpu.loop_program import LoopProgram

        if isinstance(program, LoopProgram):
            return None
        packs = _packs_of(program)
        return save_program(self._target, self._threads, partition, packs, packed=False, precision=self._precision)

    @property
    def hardware_architecture(self) -> str:
        """The kind of processor, and the instruction set."""
        return f"{self._target.triple.partition('-')[0]} {self._target.isa}"

    def compatibility_info(self) -> str:
        """Return the sources, LLVM and the target that programs are made by and for."""
        with without_fork():
            from sardonyx.providers.cpu.context import describe_target  # which few sessions need

        return describe_target(self._target)

    def compatibility(self, info: str) -> Compatibility:
        """Return optimal for this target; to be compiled again for a lower one that this processor runs; else unsupported."""
        with without_fork():
            from sardonyx.providers.cpu.context import compatibility_of  # which few sessions need

        return compatibility_of(self._target, info)

    def decision_key(self) -> str:
        """Return the target, the number of threads, how denormal numbers are taken, and the precision."""
        return f"{self._target.key} {self._threads} {self._flushes_denormals} {self._precision.name}"

    def decision_facts(self) -> tuple[str, ...]:
        """Return the edition of the kernels and the version of LLVM."""
        return decision_facts()

    def take_facts(self, facts: tuple[str, ...]) -> None:
        """Take them from a process with the same sources and packages."""
        take_facts(facts)

    def note(self, claim: Capability) -> tuple[Elements, ...] | None:
        """Return the sizes that a node was claimed as; a claim as what it does follows from the node."""
        return claim.elements if isinstance(claim, SizesClaim) else None

    def claim_again(self, claim: Capability, noted: tuple[Elements, ...] | None) -> Capability:
        """Return the claim of a node as the sizes noted, or as what it does; raises EPFail where that cannot be compiled."""
        (node,) = claim.nodes
        if noted is not None:
            return SizesClaim((node,), reads=claim.reads, elements=noted)
        found = claim_node(node)
        if isinstance(found, str):
            raise EPFail(f"{node.place} was claimed before, but cannot be compiled: {found}")
        return NodeClaim((node,), reads=claim.reads, keeps_layout=claim.keeps_layout, ends=found.is_counted, claimed=found)


def _packs_of(program: Program) -> Sequence[Array] | None:
    return program.packs if isinstance(program, CpuProgram) else None


def create(options: Mapping[str, str]) -> CpuProvider:
    """Make the provider from the options of `OPTIONS`; onnxruntime's others have no effect, and unknown ones are warned of.

    Raises:
        InvalidArgument: an option is no number, or `SARDONYX_ISA` names a level that the processor lacks.
    """
    _warn_of_unknown(options)
    threads = _THREADS.read(options) or config.num_threads() or available_processors()
    most = _MOST_THREADS if threads <= _MOST_THREADS else max(_MOST_THREADS, available_processors())
    if threads > most:
        event("cpu.fewer_threads", asked=threads, used=most)
        threads = most
    given = dict(options) if options.get(_PRECISION.name) else {**options, _PRECISION.name: config.float32_precision()}
    precision = PRECISIONS[_PRECISION.read(given)]
    return CpuProvider(host_target(config.isa()), threads, flushes_denormals=_DENORMALS.read(options), precision=precision)


def _warn_of_unknown(options: Mapping[str, str]) -> None:
    """Warn of options that neither onnxruntime's provider nor this one has: one may be misspelt."""
    names = [option.name for option in OPTIONS]
    for name in sorted(set(options) - {*names, *_FOREIGN}):
        close = nearest(name, names)
        advice = f"did you mean {close!r}?" if close else f"it has {', '.join(names)}"
        warnings.warn(f"{NAME} has no option {name!r}, which has no effect; {advice}", UserWarning, stacklevel=2)


def _witnesses(graph: Graph) -> dict[str, Value]:
    """Return for each symbol the first value whose shape shows its size."""
    found: dict[str, Value] = {}
    captured = (value for node in graph for value in node.inputs if value is not None)
    made = (value for node in graph for value in node.outputs)
    for number, value in enumerate((*graph.inputs, *captured, *made)):
        if not number % CHECKED_EACH:
            check_cancelled()
        for dim in value.shape or ():
            if isinstance(dim, Expr) and dim.name is not None and isinstance(value.type, TensorType):
                found.setdefault(dim.name, value)
    return found


def _sizes_claim(node: Node, elements: tuple[Elements, ...] | None, witnesses: Mapping[str, Value]) -> SizesClaim | None:
    """Return a claim of a node as the sizes that it makes, where values at hand show all that they depend on."""
    names = symbols_of(elements or ())
    if elements is None or not witnesses.keys() >= set(names):
        return None
    return SizesClaim((node,), reads=tuple(dict.fromkeys(witnesses[name] for name in names)), elements=elements)


def _claim(node: Node, witnesses: Mapping[str, Value], *, layout_follows: bool) -> Capability | str:
    """Return a claim of a node as what it does, or why it is left to others."""
    found, converts = _found(node)
    if isinstance(found, str):
        return found
    capacities: Collection[str] = getattr(found.spec, "capacities", ())
    inner = [each for body in node.subgraphs for graph in nested_graphs(body) for each in graph]
    values = [value for each in inner for value in (*each.inputs, *each.outputs)]
    known = _symbols((*node.inputs, *values) if found.is_counted else (*node.inputs, *values, *node.outputs))
    names = [name for name in known if name not in capacities]
    missing = next((name for name in names if name not in witnesses or witnesses[name].producer is node), None)
    if missing is not None:
        return f"the size {missing} is known only when the model runs"
    reads = tuple(dict.fromkeys(witnesses[name] for name in names))
    if not converts:
        return NodeClaim(
            (node,),
            reads=reads,
            keeps_layout=_keeps_layout(node),
            ends=found.is_counted,
            claimed=found,
            owns_bodies=bool(node.subgraphs),
            alone=bool(capacities),
        )
    if any(value.use_count for value in node.outputs[1:]):
        return f"{node.op_type} with more than one output is not converted to NHWC"
    if not layout_follows:
        return f"{node.op_type} is compiled in NHWC only, and this node stays in NCHW"
    return NodeClaim((node,), reads=reads)


def _found(node: Node) -> tuple[Claimed | str, bool]:
    """Return how a node is lowered, or why it is not, and whether that is so only once it has been converted to NHWC."""
    own = claim_node(node)
    find = find_claim(NHWC_DOMAIN, node.op_type) if node.domain in _CONVERTED and isinstance(own, str) else None
    if find is None:
        return own, False
    converted, is_only = find(node), find_claim(node.domain, node.op_type) is None
    return (own, False) if isinstance(converted, str) and not is_only else (converted, True)


def _in_one_layout(claims: Sequence[Capability]) -> Sequence[Capability]:
    """Return the claims; where no node must be converted to NHWC, none is: to transpose data takes longer than it saves."""
    if any(isinstance(claim, NodeClaim) and claim.claimed is None for claim in claims):
        return claims
    return [dataclasses.replace(claim, keeps_layout=True) if isinstance(claim, NodeClaim) else claim for claim in checked(claims)]


def _keeps_layout(node: Node) -> bool:
    """Return whether a node stays in NCHW: without a kernel in NHWC, groups with a scale for each group alone, and reshaped rows.

    An instance normalization of what a Reshape made normalizes groups that are no channels of an image. A pool whose indices are
    read has them in NCHW.
    """
    if find_claim(NHWC_DOMAIN, node.op_type) is None or given(node.inputs[0]).dtype is DataType.DOUBLE:
        return True
    if node.op_type == "MaxPool":
        return any(value.use_count for value in node.outputs[1:])
    if node.op_type == "InstanceNormalization":
        data = node.inputs[0]
        return data is not None and data.producer is not None and data.producer.op_type == "Reshape"
    return node.op_type == "GroupNormalization" and not GroupNormalization.of(node).scales_channels


def _symbols(values: Iterable[Value | None]) -> Collection[str]:
    shapes = (value.shape or () for value in values if value is not None)
    return dict.fromkeys(name for shape in shapes for dim in shape for name in sorted(symbols_in(dim)))
