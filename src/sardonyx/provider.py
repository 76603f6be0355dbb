"""The contract of an execution provider: all that a plug-in needs to see.

A provider claims nodes (`capabilities`), is given maximal convex parts of the graph made of its claims (`Partition`), and turns
each into a `Program` once per session (`compile`). At run time a program is bound to input shapes (`bind`, cheap) and run, from any
number of threads at once.

    class Mine:
        name, preferred_layout, memory = "MyExecutionProvider", Layout.NCHW, HOST
        def capabilities(self, view): return Claims([Capability((node,)) for node in view.nodes if node.op_type == "Relu"])
        def compile(self, partition, bodies): return MyProgram(partition)

A package makes its provider known by an entry point of the group "sardonyx.providers": its name is the provider's, its object is
a callable that takes the provider options (a mapping of str to str) and returns the provider.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.arena import PlacedBlock
from sardonyx.cancellation import check_cancelled
from sardonyx.dtypes import Array, DataType, OnnxValue
from sardonyx.held_memory import HeldMemory
from sardonyx.ir import Graph, Node, Shape, Value
from sardonyx.values.named import NamedEnum

__all__ = [
    "HOST",
    "BindsShapes",
    "Body",
    "Bound",
    "Capability",
    "Claims",
    "Compatibility",
    "CountedOutput",
    "DescribesPrograms",
    "DeviceBuffer",
    "DeviceTensor",
    "GraphView",
    "HostMemory",
    "JudgesPrograms",
    "KeepsPrograms",
    "KnowsMemory",
    "Layout",
    "LeavesOutWeights",
    "Memory",
    "Partition",
    "PlainCalls",
    "PlainProgram",
    "PrefersOperators",
    "Program",
    "Provider",
    "ReportsMemory",
    "SharesMemory",
    "ShowsMemory",
    "StepInfo",
    "TensorSpec",
    "TimedRun",
    "TimesSteps",
    "check_cancelled",
]


DeviceBuffer: TypeAlias = Any
"""Memory of a provider, of a class of its own: the runtime hands it on and asks nothing of it; None where none is needed."""
DeviceTensor: TypeAlias = Any
"""A tensor in a provider's memory, of a class of its own; that of the host is an array."""


class Layout(enum.Enum):
    """The order of the dimensions that layout-sensitive operators run in."""

    NCHW = "NCHW"
    NHWC = "NHWC"


class Memory(Protocol):
    """Where tensors of a provider live. Tensors and buffers are opaque to the runtime, except those of the host."""

    name: str
    """Two memories of one name are the same place; "cpu" is the host's."""

    def allocate(self, size_bytes: int) -> DeviceBuffer:
        """Make a buffer, aligned to 64 bytes, freed when nobody refers to it any more."""

    def view(self, buffer: DeviceBuffer, offset_bytes: int, dtype: DataType, shape: tuple[int, ...]) -> DeviceTensor:
        """Return the tensor that lies in `buffer` from `offset_bytes` on: dense, row-major."""

    def to_host(self, tensor: DeviceTensor) -> Array:
        """Copy a tensor of this memory to an array of the host."""

    def from_host(self, array: Array) -> DeviceTensor:
        """Copy an array of the host to a new tensor of this memory."""


class HostMemory:
    """The host's memory: buffers are byte arrays, tensors NumPy arrays."""

    name = "cpu"

    def allocate(self, size_bytes: int) -> Array:
        """Make a byte array whose first element is aligned to 64 bytes."""
        raw = np.empty(size_bytes + 63, np.uint8)
        skip = -raw.ctypes.data % 64
        return raw[skip : skip + size_bytes]

    def view(self, buffer: Array, offset_bytes: int, dtype: DataType, shape: tuple[int, ...]) -> Array:
        """Return the array of `dtype` and `shape` at `offset_bytes` of `buffer`, sharing its bytes."""
        return np.ndarray(shape, dtype.numpy, buffer, offset_bytes)

    def to_host(self, tensor: Array) -> Array:
        """Return `tensor` itself."""
        return tensor

    def from_host(self, array: Array) -> Array:
        """Return `array` itself."""
        return array


HOST = HostMemory()
"""The memory of the host."""


@dataclasses.dataclass(frozen=True, slots=True)
class Capability:
    """Nodes that a provider can run."""

    nodes: tuple[Node, ...]
    """The nodes, in topological order."""
    fused: bool = False
    """Whether they are one unit: all of them are assigned, or none. Single nodes may be split up."""
    name: str = ""
    """What reports call a fused unit."""
    owns_bodies: bool = False
    """Whether the provider runs the subgraphs of these nodes itself; else they are planned for it and come as `Body`."""
    keeps_layout: bool = False
    """Whether these nodes are to stay as they are where the provider prefers NHWC, since it runs them as well in NCHW."""
    reads: tuple[Value, ...] = ()
    """Values that the program wants among its inputs besides those that the nodes read, such as values whose shapes give sizes."""
    alone: bool = False
    """Whether they are a partition of their own, whatever else the provider has beside them."""
    ends: bool = False
    """Whether nothing that waits for them is in their partition: sizes of their results are known only when it has run."""


@dataclasses.dataclass(frozen=True, slots=True)
class Claims:
    """The answer to a capability query."""

    capabilities: Sequence[Capability] = ()
    """What the provider can run; where two overlap the earlier wins."""
    declined: Mapping[Node, str] = dataclasses.field(default_factory=dict)
    """For nodes that it cannot run: why, in a few words."""


@dataclasses.dataclass(frozen=True, slots=True)
class GraphView:
    """A graph as a provider sees it when asked for its capabilities."""

    graph: Graph
    """The whole graph; not to be changed."""
    nodes: tuple[Node, ...]
    """The nodes that are still to be had, in topological order."""
    after_layout: bool = False
    """Whether the layout step has run, so that layout-sensitive nodes claimed before are now in the preferred layout."""


@dataclasses.dataclass(frozen=True, slots=True)
class Partition:
    """A convex part of a graph that one provider runs as one step.

    After `compile` the session lets go of constants and of the links from values to their producers and uses; nodes keep their
    inputs, outputs and attributes.
    """

    name: str
    """A name for reports, unique in the session."""
    graph: Graph
    """The graph that it is part of."""
    nodes: tuple[Node, ...]
    """Its nodes, in topological order."""
    units: tuple[Capability, ...]
    """The claims that it is made of."""
    inputs: tuple[Value, ...]
    """Values that it reads and others make, what its subgraphs capture included; constants are not among them."""
    constants: tuple[Value, ...]
    """Values with a `constant` that its nodes read."""
    outputs: tuple[Value, ...]
    """Values that it makes and others read."""


@dataclasses.dataclass(frozen=True, slots=True)
class TensorSpec:
    """Type and size of a tensor to be allocated."""

    dtype: DataType
    """Its element type."""
    shape: tuple[int, ...]
    """Its dimensions."""


@dataclasses.dataclass(frozen=True, slots=True)
class CountedOutput:
    """An output whose size only the run shows, which a program writes densely into memory for the most that it can be."""

    number: int
    """Which output it is."""
    most: TensorSpec
    """Its type and the greatest shape that it may have."""
    axis: int
    """The dimension whose length the run shows."""
    count_bytes: int
    """Where in the scratch memory the int64 is that says how long that dimension is."""


@dataclasses.dataclass(frozen=True, slots=True)
class Bound:
    """A program bound to the shapes of its inputs."""

    outputs: tuple[TensorSpec | None, ...]
    """What the runtime allocates for each output; None where the program makes the output itself."""
    scratch_bytes: int = 0
    """Bytes of scratch memory that one run needs."""
    data: Any = None
    """Whatever the program wants to find again in `run`: its own business."""
    counted: tuple[CountedOutput, ...] = ()
    """Those outputs without a specification that have a greatest shape; a native call writes them into memory of that shape."""


class Program(Protocol):
    """A compiled partition. It is immutable: any number of threads may bind and run it at a time."""

    makes_outputs: bool
    """Whether `run` returns values of its own making, whose shapes are only known then."""

    def bind(self, shapes: tuple[tuple[int, ...] | None, ...]) -> Bound:
        """Fix sizes for inputs of these shapes (None for what is no tensor); no code generation; raises InvalidArgument."""

    def run(
        self, bound: Bound, inputs: Sequence[OnnxValue], outputs: Sequence[DeviceTensor], scratch: DeviceBuffer
    ) -> Sequence[OnnxValue]:
        """Compute.

        Args:
            bound: what `bind` returned for the shapes of `inputs`.
            inputs: for each input of the partition its value, in the provider's memory; not to be written to.
            outputs: for each output the tensor to fill, or None where `bound.outputs` has None.
            scratch: a buffer of `bound.scratch_bytes`, or None for 0.

        Returns:
            For each output its value: the tensor filled, or one that the program made.
        """


@runtime_checkable
class BindsShapes(Protocol):
    """A program that makes some outputs and is bound to the shapes of its inputs all the same, where `binds_shapes` holds."""

    binds_shapes: bool
    """Whether it is bound as programs are that make no outputs; else one that runs by itself is bound to no shapes at all."""


class PlainCalls(NamedTuple):
    """Functions that make the outputs of a program, called one after another."""

    calls: tuple[tuple[Callable[..., OnnxValue], tuple[int, ...]], ...]
    """Each function with the places of its arguments: the program's inputs have the first places, what functions made the next."""
    outputs: tuple[int, ...]
    """The place of each output."""


@runtime_checkable
class PlainProgram(Protocol):
    """A program that makes its outputs, and may be called without what a run has around it."""

    def plain_calls(self) -> PlainCalls | None:
        """Return functions that make the outputs; None where only `run` will do.

        Errors of the functions say nothing of their place.
        """


class Body(Protocol):
    """A planned subgraph (of If, Loop, Scan …), run by the program of the node that holds it."""

    @property
    def captures(self) -> tuple[Value, ...]:
        """Values of outer graphs that it reads; the partition lists them among its inputs."""

    def hold(self, captures: Sequence[OnnxValue]) -> Callable[[Sequence[OnnxValue]], list[OnnxValue]]:
        """Make what runs it, as often as wanted, on host values: the graph's inputs in order.

        Args:
            captures: the captured values on the host, in the order of `captures`; they are brought to devices once, here.
        """


class Provider(Protocol):
    """An execution provider."""

    name: str
    """Its name, such as "CPUExecutionProvider"."""
    preferred_layout: Layout
    """The layout that its claims are converted to before it compiles them."""
    memory: Memory
    """Where the inputs and outputs of its programs live."""

    def capabilities(self, view: GraphView) -> Claims:
        """Say which of `view.nodes` it can run. A provider that prefers NHWC is asked a second time after the layout step."""

    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> Program:
        """Do all expensive work for `partition`; `bodies` gives the planned subgraphs of its nodes."""


@runtime_checkable
class PrefersOperators(Protocol):
    """A provider that has operators which stand for several, and computes them faster than these."""

    preferred_operators: frozenset[str]
    """Their names, such as "QLinearConv" and "FusedConv", or "com.microsoft.Attention" where a name is of several domains;
    docs/optimizer.md lists those that are made. With "QuantizeLinear" and "DequantizeLinear" quantized models come as they are."""


@runtime_checkable
class KnowsMemory(Protocol):
    """A provider that knows how much memory its device has to give."""

    def available_bytes(self) -> int:
        """Return how much a session may take; asked where the user limits the memory without saying how far."""


@runtime_checkable
class KeepsPrograms(Protocol):
    """A provider whose programs can be kept in a file, and be had again in another process without compiling."""

    def save(self, partition: Partition, program: Program) -> bytes | None:
        """Return all that `load` needs for `program`, which `compile` has just made of `partition`.

        None where that cannot be said.
        """

    def load(self, partition: Partition, content: memoryview) -> Program:
        """Return the program that was saved as `content`.

        Args:
            partition: one node whose inputs and outputs are, in order, those of the partition that was saved. Among its constants
                are the weights that are not in `content`, since they stay in a file, for `formats.program_file.read_program`.
            content: what `save` returned, in memory that nobody else can change, checked against tampering but not against
                time; views of it may be kept. Elements of the weights among the constants may change at any time.

        Raises:
            EPFail: the content is damaged, or is for another version, another device or another partition.
        """


@runtime_checkable
class LeavesOutWeights(Protocol):
    """A provider whose programs can be kept without their weights, which are in the model."""

    def save_weightless(self, partition: Partition, program: Program) -> bytes | None:
        """Return what `save` returns, made by `write_program`, without the weights of the model.

        These are as they are in the model, so that they need not be kept.
        """


@dataclasses.dataclass(frozen=True, slots=True)
class StepInfo:
    """One of the steps that a program runs, for profiles."""

    operators: tuple[str, ...]
    """The operators that it computes; several where they are fused."""
    kernel: str
    """The kernel that computes them."""
    nodes: tuple[int, ...]
    """The places of its nodes among those of the partition that was compiled; empty for a step of no node, such as a copy."""
    inputs: tuple[tuple[DataType, Shape], ...] = ()
    """Type and shape of what it reads and others made."""
    constants: tuple[tuple[DataType, Shape], ...] = ()
    """Type and shape of the weights that it reads, as they lie in memory."""
    outputs: tuple[tuple[DataType, Shape], ...] = ()
    """Type and shape of what it writes."""


class TimedRun(NamedTuple):
    """What one run of a program that times its steps found; it is made in each run, so no more is done than to keep it."""

    results: Sequence[OnnxValue]
    """What `Program.run` returns."""
    times: Array | None
    """int64 (steps + 1, 2): when the first step began and when each ended, in seconds and nanoseconds of `time.perf_counter_ns`.

    A third column, where there is one, says how often each step ran in this run, such as in a loop; its first element means
    nothing. None where times could not be measured.
    """
    symbols: Mapping[str, int]
    """What the symbols in the shapes of its steps were."""


@runtime_checkable
class TimesSteps(Protocol):
    """A program that can say how long each of its steps takes; sessions ask for it where they are profiled."""

    def describe_steps(self) -> Sequence[StepInfo]:
        """Return its steps, in the order in which they run."""

    def run_timed(
        self, bound: Bound, inputs: Sequence[OnnxValue], outputs: Sequence[DeviceTensor], scratch: DeviceBuffer
    ) -> TimedRun:
        """Compute as `Program.run` does, and note when each step ended."""


@runtime_checkable
class ShowsMemory(Protocol):
    """A program that says where its tensors lie in the scratch memory of a run, for reports."""

    @property
    def step_labels(self) -> Sequence[str]:
        """What its steps are called, in the order in which they run."""

    def memory_blocks(self, shapes: tuple[tuple[int, ...] | None, ...]) -> Sequence[PlacedBlock]:
        """Return what lies where and when, for inputs of these shapes; steps are numbered as `step_labels` has them."""


@runtime_checkable
class ReportsMemory(Protocol):
    """What programs may say beside `Program`: the memory that they keep between runs, for `InferenceSession.memory_report`."""

    def memory_held(self) -> Sequence[HeldMemory]:
        """Return the blocks that live as long as the program, on the host; one may be named more than once."""

    def binding_bytes(self, bound: Bound) -> int:
        """Return how many bytes are kept for one set of shapes, `bound` being what `bind` returned for it."""


@runtime_checkable
class SharesMemory(Protocol):
    """What programs may say beside `Program`: which outputs a caller may have in the memory of an input."""

    @property
    def shares(self) -> frozenset[tuple[int, int]]:
        """(output, input), by number, that may be one and the same array: what is overwritten is not read afterwards."""


class Compatibility(NamedEnum):
    """How good programs that were kept are for a provider; names and numbers are onnxruntime's."""

    EP_NOT_APPLICABLE = 0
    EP_SUPPORTED_OPTIMAL = 1
    EP_SUPPORTED_PREFER_RECOMPILATION = 2
    EP_UNSUPPORTED = 3

    def __str__(self) -> str:
        return f"OrtCompiledModelCompatibility.{self.name}"


@runtime_checkable
class DescribesPrograms(Protocol):
    """A provider that says what its programs are good for."""

    def compatibility_info(self) -> str:
        """Return what they are good for, for the model's metadata.

        They are good where it is the same, unless the provider judges.
        """


@runtime_checkable
class JudgesPrograms(Protocol):
    """A provider that says how good programs are that were made elsewhere."""

    hardware_architecture: str
    """What it compiles for, in a few words."""

    def compatibility(self, info: str) -> Compatibility:
        """Return how good programs are that were saved with this `compatibility_info`, which may be any text."""
