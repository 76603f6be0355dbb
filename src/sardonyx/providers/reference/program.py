"""A partition compiled for the reference provider: a list of kernel calls over a frame of slots.

A frame is a list with one slot for each input, constant and result. A call reads its arguments from slots, writes its results to
slots, and empties the slots that nothing reads after it.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from sardonyx import errors
from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.aside import call_aside
from sardonyx.codegen.run.denormals import flushing_denormals
from sardonyx.config import LIMITS
from sardonyx.dtypes import Array, DataType, OnnxValue
from sardonyx.errors import InvalidArgument, InvalidGraph, RuntimeException, SardonyxError, describe, located, locating
from sardonyx.formats.plain_graph import KeptProgram
from sardonyx.held_memory import HeldKind, HeldMemory, held_array
from sardonyx.ir import Attribute, Graph, Node, SparseTensor, Tensor, TensorType, Value
from sardonyx.ir.attribute import AttributeValue
from sardonyx.provider import Body, Bound, DeviceBuffer, PlainCalls, StepInfo, TimedRun, check_cancelled
from sardonyx.providers.reference.expressions import kernel_of
from sardonyx.providers.reference.much import is_much
from sardonyx.providers.reference.registry import Call, Kernel, KernelFunction
from sardonyx.providers.reference.text_chain import TextChain, counter_of, find_text_chains

__all__ = ["ReferenceProgram", "dense"]

_SECOND_NS = 1_000_000_000
_AS_IT_IS = contextlib.nullcontext()

_PLAIN = frozenset([("ai.onnx.ml", "ArrayFeatureExtractor"), ("ai.onnx.ml", "ZipMap"), ("", "Gather")])
"""Operators that compute nothing, so that no floating-point warning is to be kept from users, and end by themselves."""
_PLAIN_OF_TEXT = frozenset(
    [
        *[("", name) for name in ("Concat", "RegexFullMatch", "StringConcat", "StringNormalizer", "TfIdfVectorizer")],
        *[("ai.onnx.ml", name) for name in ("CategoryMapper", "LabelEncoder", "OneHotEncoder")],
        ("com.microsoft", "Tokenizer"),
    ]
)
"""Those of which the same is true where their first input is text."""
_VIEWS_OF_TEXT = frozenset([("", name) for name in ("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze")])
"""Of these it is too, but what they give out is the memory of what they read."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Graph:
    """A graph attribute: the planned body, and the slots of what it captures."""

    body: Body
    graph: Graph
    captures: tuple[int, ...]


class _BodyCall:
    """A graph attribute as the kernel sees it during one run: the body with its captured values."""

    __slots__ = ("_body", "_captured", "_run", "graph", "input_count", "output_count")

    def __init__(self, spec: _Graph, frame: list[OnnxValue]) -> None:
        self._body = spec.body
        self._captured = [frame[slot] for slot in spec.captures]
        self._run: Callable[[Sequence[OnnxValue]], list[OnnxValue]] | None = None
        self.graph = spec.graph
        self.input_count = len(spec.graph.inputs)
        self.output_count = len(spec.graph.outputs)

    def __call__(self, *inputs: OnnxValue) -> list[OnnxValue]:
        check_cancelled()  # a body may have no node that would ask
        if self._run is None:
            self._run = self._body.hold(self._captured)
        return self._run(inputs)


@dataclasses.dataclass(frozen=True, slots=True)
class _BoundKernel:
    """One kernel call."""

    function: KernelFunction
    call: Call
    arguments: tuple[int, ...]
    attributes: dict[str, AttributeValue]
    graphs: dict[str, _Graph]
    results: tuple[int, ...]
    frees: tuple[int, ...]


class ReferenceProgram:
    """Runs nodes by their kernels; immutable, so any number of threads may run it at a time."""

    makes_outputs = True

    def __init__(
        self,
        nodes: Sequence[Node],
        inputs: Sequence[Value],
        constants: Sequence[Value],
        outputs: Sequence[Value],
        bodies: Callable[[Graph], Body],
    ) -> None:
        """Compile `nodes`, in topological order, to read `inputs` and `constants` and to give out `outputs`."""
        self.flushes_denormals = False
        """Whether kernels compute with zeros for denormal numbers, in the thread that runs them."""
        self.kept: KeptProgram | None = None
        """What it is made of, for later processes."""
        slots: dict[Value, int] = {}
        for value in [*inputs, *constants, *(value for node in nodes for value in node.outputs)]:
            slots.setdefault(value, len(slots))
        self._input_count = len(inputs)
        self._template: list[OnnxValue] = [None] * (len(slots) + 1)
        for value in constants:
            if value.constant is not None:
                self._template[slots[value]] = _aligned(value.constant.numpy())
        self._outputs = tuple(slots[value] for value in outputs)
        self._tensors = tuple(_label(value) if isinstance(value.type, TensorType) else "" for value in outputs)
        self._bound = Bound((None,) * len(outputs))
        last_reader = _last_readers(nodes, slots)
        kept = {*self._outputs, *(slots[value] for value in constants)}
        self._operators = [node.op_type for node in nodes]
        self._is_plain = all(_is_plain(node, outputs) for node in nodes)
        self._text_chains = find_text_chains(nodes, outputs) if self._is_plain else []
        self._steps = [_compile(node, slots, len(slots), last_reader, kept, bodies) for node in nodes]

    def bind(self, shapes: tuple[tuple[int, ...] | None, ...]) -> Bound:
        """Return the one binding there is: kernels look at the shapes when they run."""
        return self._bound

    def run(
        self, bound: Bound | None, inputs: Sequence[OnnxValue], outputs: Sequence[OnnxValue], scratch: DeviceBuffer
    ) -> list[OnnxValue]:
        """Call the kernels in order and return arrays (lists, dicts, None) of their making."""
        return self._execute(inputs, None)

    def run_timed(
        self, bound: Bound | None, inputs: Sequence[OnnxValue], outputs: Sequence[OnnxValue], scratch: DeviceBuffer
    ) -> TimedRun:
        """Do what `run` does, and note when each kernel ended."""
        times_ns = [time.perf_counter_ns()]
        results = self._execute(inputs, times_ns)
        return TimedRun(results, np.array([divmod(time_ns, _SECOND_NS) for time_ns in times_ns], np.int64), {})

    def describe_steps(self) -> list[StepInfo]:
        """Return the calls in the order in which they run; their shapes are known only then."""
        return [
            StepInfo((name,), step.function.__name__, (place,))
            for place, (name, step) in enumerate(zip(self._operators, self._steps, strict=True))
        ]

    def memory_held(self) -> list[HeldMemory]:
        """Return the blocks of its constants, and of arrays in attributes."""
        attributes = [value for step in self._steps for value in step.attributes.values()]
        return [held_array(value, HeldKind.WEIGHTS) for value in (*self._template, *attributes) if isinstance(value, np.ndarray)]

    def binding_bytes(self, bound: Bound) -> int:
        """Return 0: kernels look at the shapes when they run."""
        return 0

    def plain_calls(self) -> PlainCalls | None:
        """Return the kernel calls, where nothing is needed around them and they make every output."""
        if not self._is_plain:
            return None
        places = {slot: slot for slot in range(self._input_count)}
        calls: list[tuple[Callable[..., OnnxValue], tuple[int, ...]]] = []
        counters = {chain.vectorizer: (chain, counted) for chain in self._text_chains if (counted := self._counted(chain))}
        inner = {place for chain, _ in counters.values() for place in chain.inner}
        for number, step in enumerate(self._steps):
            if number in inner:
                continue
            if number in counters:
                chain, counted = counters[number]
                calls.append((counted, (places[self._steps[chain.first].arguments[0]],)))
            else:
                calls.append(self._plain(step, places))
            places[step.results[0]] = self._input_count + len(calls) - 1
        outputs = tuple([places.get(slot, -1) for slot in self._outputs])
        return PlainCalls(tuple(calls), outputs) if min(outputs, default=-1) >= self._input_count else None

    def _counted(self, chain: TextChain) -> Callable[[Array], Array] | None:
        """Return one call for a chain; None where its nodes have to be called one by one."""
        steps = [self._steps[place] for place in sorted({*chain.inner, chain.vectorizer} - {chain.row})]

        def one_by_one(texts: Array) -> Array:
            for step in steps:
                texts = step.function(step.call, texts, **step.attributes)
            return texts

        try:
            return counter_of(chain, [step.attributes for step in self._steps], one_by_one)
        except InvalidArgument:
            return None  # which the run says, of the node

    def _plain(self, step: _BoundKernel, places: Mapping[int, int]) -> tuple[Callable[..., OnnxValue], tuple[int, ...]]:
        function, call, attributes = step.function, step.call, step.attributes
        given = tuple([places[slot] for slot in step.arguments if slot in places])
        constants = [(place, self._template[slot]) for place, slot in enumerate(step.arguments) if slot not in places]
        if all(place < len(constants) for place, _ in constants):
            return functools.partial(function, call, *[constant for _, constant in constants], **attributes), given
        if len(given) == 1 and constants[0][0] == 1:
            behind = [constant for _, constant in constants]
            return lambda first: function(call, first, *behind, **attributes), given

        def with_constants(*arguments: OnnxValue) -> OnnxValue:
            every = list(arguments)
            for place, constant in constants:
                every.insert(place, constant)
            return function(call, *every, **attributes)

        return with_constants, given

    def _execute(self, inputs: Sequence[OnnxValue], times_ns: list[int] | None) -> list[OnnxValue]:
        frame = self._template.copy()
        frame[: self._input_count] = inputs
        with np.errstate(all="ignore"), flushing_denormals() if self.flushes_denormals else _AS_IT_IS:
            for step in self._steps:
                check_cancelled()
                _run(step, frame, flushes=self.flushes_denormals)
                if times_ns is not None:
                    times_ns.append(time.perf_counter_ns())
        results = [frame[slot] for slot in self._outputs]
        if any(result is None for result in results):
            self._check_made(results)
        return results

    def _check_made(self, results: Sequence[OnnxValue]) -> None:
        """Raise InvalidGraph where there is no tensor that others read: a kernel makes some outputs in some modes only."""
        missing = next((label for label, result in zip(self._tensors, results, strict=True) if label and result is None), None)
        if missing is not None:
            raise InvalidGraph(f"{missing}, which is read, is not made by this operator with these attributes; leave it out")


def _is_plain(node: Node, outputs: Sequence[Value]) -> bool:
    operator, source = (node.domain, node.op_type), node.inputs[0] if node.inputs else None
    if len(node.outputs) != 1 or operator in _PLAIN:
        return len(node.outputs) == 1
    if source is None or source.dtype is not DataType.STRING:
        return False
    return operator in _PLAIN_OF_TEXT or (operator in _VIEWS_OF_TEXT and not _is_shared(node.output, source, outputs))


def _is_shared(view: Value, source: Value, outputs: Sequence[Value]) -> bool:
    """Return whether an output is a view of a tensor that others have too: what is fed, another output, another view's."""
    if view not in outputs:
        return False
    maker = source.producer
    is_new = maker is not None and (maker.domain, maker.op_type) not in _VIEWS_OF_TEXT
    return not is_new or len(source.uses) > 1 or source in outputs


def _label(value: Value) -> str:
    node = value.producer
    return f"value {value.name!r}" if node is None else f"{place_of(node)}: its output {value.index} {value.name!r}"


def _aligned(array: Array) -> Array:
    """Return `array`, or a copy where a file put its elements at odd addresses: BLAS would copy it in every product."""
    return array if array.flags.aligned else array.copy()


def dense(sparse: SparseTensor) -> Array:
    """Return the dense array of a sparse tensor; raises InvalidArgument where an index lies outside its shape."""
    values, indices = sparse.values.numpy(), sparse.indices.numpy()
    flat = indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T), sparse.shape, mode="wrap")
    array: Array = np.zeros(sparse.shape, values.dtype)
    limit = np.asarray([array.size] if indices.ndim == 1 else sparse.shape)
    if ((indices < 0) | (indices >= limit)).any():
        raise InvalidArgument(f"a sparse tensor of shape {sparse.shape} has an index outside it: {indices.tolist()[:8]}")
    array.reshape(-1)[flat] = values
    return array


def _last_readers(nodes: Sequence[Node], slots: Mapping[Value, int]) -> dict[int, Node]:
    """Return for each slot the last node that reads it; for one that nobody reads, the node that makes it."""
    last: dict[int, Node] = {}
    for node in nodes:
        for value in _reads(node, slots):
            last[slots[value]] = node
        for value in node.outputs:
            last.setdefault(slots[value], node)
    return last


def _reads(node: Node, slots: Mapping[Value, int]) -> Iterable[Value]:
    yield from (value for value in node.inputs if value is not None)
    stack = list(node.subgraphs)
    while stack:
        graph = stack.pop()
        yield from (value for value in graph.outputs if value in slots)
        for inner in graph:
            yield from (value for value in inner.inputs if value is not None and value in slots)
            stack.extend(inner.subgraphs)


def _compile(
    node: Node, slots: Mapping[Value, int], empty: int, last: Mapping[int, Node], kept: set[int], bodies: Callable[[Graph], Body]
) -> _BoundKernel:
    found = kernel_of(node)
    if found is None:
        raise errors.NotImplemented(f"{place_of(node)}: there is no reference kernel for this operator at this version")
    _check_call(node, found)
    attributes, graphs = {}, {}
    for name, attribute in node.attributes.items():
        if name not in found.attributes:
            continue
        if isinstance(attribute.value, Graph):
            body = bodies(attribute.value)
            graphs[name] = _Graph(body, attribute.value, tuple(slots[value] for value in body.captures))
        else:
            attributes[name] = _decode(node, name, attribute)
    with locating(place_of(node)):
        attributes = found.keywords(node, attributes)
    call = Call(
        name=node.name,
        op_type=node.op_type,
        version=node.version,
        present=tuple(bool(value.name) or value.use_count > 0 for value in node.outputs),
        output_types=tuple(value.dtype for value in node.outputs),
    )
    touched = {slots[value] for value in _reads(node, slots)} | {slots[value] for value in node.outputs}
    return _BoundKernel(
        function=found.function,
        call=call,
        arguments=tuple(empty if value is None else slots[value] for value in node.inputs[: found.most_inputs]),
        attributes=attributes,
        graphs=graphs,
        results=tuple(slots[value] for value in node.outputs),
        frees=tuple(slot for slot in touched if last.get(slot) is node and slot not in kept),
    )


def _check_call(node: Node, found: Kernel) -> None:
    missing = sorted(found.required - node.attributes.keys())
    if missing:
        raise InvalidGraph(f"{place_of(node)}: the attributes {missing} are missing, which the operator cannot do without")
    if len(node.inputs) > found.most_inputs and any(value is not None for value in node.inputs[found.most_inputs :]):
        count = len(node.inputs)
        raise errors.NotImplemented(f"{place_of(node)} has {count} inputs; the reference kernel takes {found.most_inputs}")


def _decode(node: Node, name: str, attribute: Attribute) -> AttributeValue:
    value = attribute.value
    if attribute.reference is not None:
        raise InvalidArgument(
            f"{place_of(node)}: attribute {name} refers to a function's attribute {attribute.reference}, but is in no function"
        )
    if isinstance(value, Tensor):
        return value.numpy()
    if isinstance(value, SparseTensor):
        return dense(value)
    if isinstance(value, tuple) and value and isinstance(value[0], Tensor):
        return tuple(item.numpy() for item in value)
    return value


def place_of(node: Node) -> str:
    """Return how messages name a node: operator, version, name, and what it makes."""
    outputs = ", ".join(value.name for value in node.outputs if value.name)
    prefix = f"{node.domain}." if node.domain else ""
    return f"node {node.name!r} ({prefix}{node.op_type}-{node.version}{f' -> {outputs}' if outputs else ''})"


_KERNEL_FAILURES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    OverflowError,
    RecursionError,
    TypeError,
    ValueError,
)


def _in_own_thread(step: _BoundKernel, arguments: Sequence[OnnxValue], *, flushes: bool) -> object:
    """Call a kernel in a thread that computes as the run's own does."""
    with np.errstate(all="ignore"), flushing_denormals() if flushes else _AS_IT_IS:
        return step.function(step.call, *arguments, **step.attributes)


def _run(step: _BoundKernel, frame: list[OnnxValue], *, flushes: bool) -> None:
    arguments = [frame[slot] for slot in step.arguments]
    attributes = step.attributes
    if step.graphs:
        attributes = attributes | {name: _BodyCall(spec, frame) for name, spec in step.graphs.items()}
    try:
        if step.graphs or not is_much(step.call.op_type, arguments, attributes):
            result = step.function(step.call, *arguments, **attributes)
        else:
            result = call_aside(functools.partial(_in_own_thread, step, arguments, flushes=flushes))
    except SardonyxError as error:
        raise located(error, _place(step, arguments)) from error
    except _KERNEL_FAILURES as error:
        raise _explained(error, step, arguments) from error
    if len(step.results) == 1:
        if isinstance(result, tuple):
            result = result[0]
        frame[step.results[0]] = result if type(result) is np.ndarray else _value(result)
    else:
        for slot, item in zip(step.results, result if isinstance(result, tuple) else (result,), strict=False):
            frame[slot] = _value(item)
    for slot in step.frees:
        frame[slot] = None


def _value(result: OnnxValue) -> OnnxValue:
    return np.asarray(result) if isinstance(result, (np.generic, bool, int, float, str)) else result


def _explained(error: Exception, step: _BoundKernel, arguments: Iterable[OnnxValue]) -> SardonyxError:
    kind = RuntimeException if isinstance(error, (MemoryError, RecursionError, AssertionError, AttributeError)) else InvalidArgument
    reason = next(text for types, text in _REASONS if isinstance(error, types))
    if isinstance(error, ValueError) and "maximum supported dimension" in str(error):
        reason = f"the output would have more than {LIMITS.rank} dimensions, which no array can have"
    elif isinstance(error, MemoryError):
        reason = f"{reason} ({describe(error)})"
    return kind(f"{_place(step, arguments)}: {reason}; check them against the operator's documentation")


_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (MemoryError, "there is not enough memory for what these inputs ask for"),
    (RecursionError, "its subgraphs are nested too deeply"),
    (TypeError, "the operator does not compute with inputs of these types"),
    (Exception, "the operator does not compute with inputs of these shapes and values"),
)
"""What a failure inside a kernel says of the inputs; the failure itself is the error's cause."""


def _place(step: _BoundKernel, arguments: Iterable[OnnxValue]) -> str:
    call = step.call
    return f"node {call.name!r} ({call.op_type}-{call.version}) on ({', '.join(map(_described, arguments))})"


def _described(value: OnnxValue) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}[{', '.join(map(str, value.shape))}]"
    return "none" if value is None else type(value).__name__
