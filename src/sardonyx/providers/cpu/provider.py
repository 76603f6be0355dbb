"""The CPU provider: claims what it can compile, lowers partitions to steps, and compiles their kernels."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from sardonyx import config
from sardonyx.codegen.run.processors import available_processors
from sardonyx.codegen.target import Target, host_target
from sardonyx.dtypes import Array
from sardonyx.forks import without_fork
from sardonyx.formats.plain_graph import KeptProgram
from sardonyx.ir import Graph
from sardonyx.option import COUNT, FLAG, Option, choice
from sardonyx.provider import (
    HOST,
    Body,
    Capability,
    Claims,
    Compatibility,
    GraphView,
    Layout,
    Memory,
    Partition,
    Program,
)
from sardonyx.providers.cpu.kept import keep_program, restore_program
from sardonyx.providers.cpu.kept_plans import NotKept
from sardonyx.providers.cpu.library import decision_facts, take_facts
from sardonyx.providers.cpu.precision import PRECISIONS, Precision
from sardonyx.providers.cpu.program import CpuProgram
from sardonyx.spelling import nearest
from sardonyx.trace import event

if TYPE_CHECKING:
    from sardonyx.providers.cpu.loop_program import LoopProgram
    from sardonyx.providers.cpu.size_claims import Elements
    from sardonyx.providers.cpu.sized_program import SizedProgram

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
    "what operands of products of float32 models may be rounded to: nothing (highest), two bfloat16 each, in matrix tiles (high), "
    "or bfloat16 with sums in float32 (medium); `session.float32_precision` says it for a session",
)
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
            from sardonyx.providers.cpu.graph_claims import claim_nodes  # which programs that are restored do without

        return claim_nodes(view, prefers_nhwc=self.preferred_layout is Layout.NHWC)

    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> CpuProgram | LoopProgram | SizedProgram:
        """Lower the partition to steps and compile the kernels that they need."""
        with without_fork():
            from sardonyx.providers.cpu.compile_partition import compile_partition  # as `claim_nodes`

        return compile_partition(
            partition,
            self._target,
            self._threads,
            self._precision,
            flush=self._flushes_denormals,
        )

    def _made(self, program: CpuProgram) -> CpuProgram:
        program.flushes_denormals = self._flushes_denormals
        return program

    def save(self, partition: Partition, program: Program) -> bytes | None:
        """Return the bytes of a partition that was compiled; it is lowered anew, with the weights that `program` has packed.

        A node with outputs whose sizes the run reads, or shows, is not kept.
        """
        with without_fork():
            from sardonyx.providers.cpu.context import save_program  # which few sessions need

        if not isinstance(program, CpuProgram):
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

        if not isinstance(program, CpuProgram):
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
        """Return the target, the cache by which work is cut, the number of threads, how denormals are taken, and the precision."""
        target, precision = self._target, self._precision.name
        return f"{target.key} {target.cache_bytes} {self._threads} {self._flushes_denormals} {precision}"

    def decision_facts(self) -> tuple[str, ...]:
        """Return the edition of the kernels and the version of LLVM."""
        return decision_facts()

    def take_facts(self, facts: tuple[str, ...]) -> None:
        """Take them from a process with the same sources and packages."""
        take_facts(facts)

    def keep(self, program: Program) -> KeptProgram | None:
        """Return what a program of this provider is made of, for later processes; None where that cannot be kept."""
        with without_fork():
            from sardonyx.providers.cpu.loop_program import LoopProgram  # as `claim_nodes`
            from sardonyx.providers.cpu.sized_program import SizedProgram

        if not isinstance(program, (CpuProgram, LoopProgram, SizedProgram)) or config.guards_memory():
            return None
        try:
            return keep_program(program, self._target, self._precision)
        except NotKept as error:
            event("cpu.not_kept", detail=str(error))
            return None

    def restore(self, kept: KeptProgram) -> CpuProgram | LoopProgram | SizedProgram:
        """Return the program that was kept by a provider of the same `decision_key`; raises as `restore_program` does."""
        return restore_program(kept, self._target, self._threads, flush=self._flushes_denormals)

    def note(self, claim: Capability) -> tuple[Elements, ...] | None:
        """Return the sizes that a node was claimed as; a claim as what it does follows from the node."""
        with without_fork():
            from sardonyx.providers.cpu.graph_claims import noted_sizes  # as `claim_nodes`

        return noted_sizes(claim)

    def claim_again(self, claim: Capability, noted: tuple[Elements, ...] | None) -> Capability:
        """Return the claim of a node as the sizes noted, or as what it does; raises EPFail where that cannot be compiled."""
        with without_fork():
            from sardonyx.providers.cpu.graph_claims import claim_again  # as `claim_nodes`

        return claim_again(claim, noted)


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
