"""Operators written as Python functions over arrays.

    @sardonyx.op("my.domain", "Clamp", outputs=["x"])
    def clamp(x, low=None, *, high=1.0):
        return np.clip(x, low, np.float32(high))

A function is called once per run of a node, from any thread. A class keeps state for one node of one session:

    @sardonyx.op("my.domain", "Counter", outputs=["int64"])
    class Counter:
        @classmethod
        def create(cls, site, *, start=0): ...     once per node and session; the attributes
        def __call__(self, x): ...                 once per run; the inputs
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from sardonyx.arguments import as_text
from sardonyx.config import LIMITS
from sardonyx.custom_ops.definition import NEWEST, Arity, Kernel, OperatorDefinition, Parameter, Site
from sardonyx.custom_ops.function_kernel import DeviceFunctionKernel, FunctionKernel
from sardonyx.custom_ops.signature import Input, Signature, attribute_names, decode, name_of, read_attributes, read_inputs
from sardonyx.custom_ops.type_names import Output, parse_dtype, parse_output
from sardonyx.dtypes import DataType
from sardonyx.errors import Fail, InvalidArgument, InvalidGraph, SardonyxError, describe
from sardonyx.forks import without_fork
from sardonyx.ir import Dim, Expr, Node, Shape
from sardonyx.ops.fact import UNKNOWN, Fact
from sardonyx.providers.user_kernels import CpuKernel

__all__ = ["PythonOperator", "ShapeFunction", "check_names", "label_of", "op"]

P = ParamSpec("P")
R = TypeVar("R")

ShapeFunction = Callable[..., Any]
"""f(shapes of the inputs, with attributes by keyword) -> the shape of the output, or one for each of several."""


class PythonOperator(Generic[P, R]):
    """A function, or a class, that is an operator; calling it calls the function."""

    def __init__(self, function: Callable[P, R], definition: OperatorDefinition) -> None:
        """Make an operator of `function`, which `definition` describes."""
        functools.update_wrapper(self, function)
        self.function = function
        self.definition = definition

    @property
    def definitions(self) -> tuple[OperatorDefinition, ...]:
        """Its definition, as a session takes it."""
        return (self.definition,)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<operator {label_of(self.definition.domain, self.definition.name)} of {self.definition.owner}>"


def op(
    domain: str,
    name: str,
    *,
    outputs: Sequence[str] | None = None,
    types: Mapping[str, str | Sequence[str]] | None = None,
    shape: ShapeFunction | None = None,
    cpu_kernel: CpuKernel | None = None,
    provider: str = "",
    since: int = 1,
    until: int = NEWEST,
) -> Callable[[Callable[P, R]], PythonOperator[P, R]]:
    """Make an operator of the decorated function over NumPy arrays, or of a class with `create` and `__call__`.

    Parameters before `*` are inputs: one with the default None may be left out (and is None then), `*rest` takes any number.
    Parameters after `*` are attributes with their defaults. Arrays come read-only; a list of tensors comes as a list, strings
    as arrays of `str` objects. The function returns a new array, or a tuple of them where there are several outputs.

    Args:
        domain: the operator's domain, such as "my.domain"; with that of a built-in operator ("" for ai.onnx) it replaces this one
            where it takes the types of a node's inputs.
        name: the operator.
        outputs: for each output its element type ("float"), or the input that has the same ("x"); "seq(…)" for a list, "…?" for
            one that may be left out. By default one, with the type of the first input.
        types: input -> the element types that it takes, such as {"x": ["float", "double"]}; any where it is not listed.
        shape: gets the shape of each input (a tuple of ints and symbols; None for one left out) and the attributes that it names
            by keyword, and returns the shape of the output, or a tuple of shapes. Without it ranks are known when the model runs.
        cpu_kernel: what the CPU provider compiles instead of calling the function, for the nodes that its claim takes.
        provider: the name of a provider with a memory of its own, in which the function computes: it gets and returns tensors of
            that memory, without copies to the host, in sessions that have this provider.
        since: the first version of the domain in which the operator exists.
        until: the last.

    Raises:
        InvalidArgument: the function or an argument is none of these.
        TypeError: the domain or the name is no text.
    """

    def decorate(function: Callable[P, R]) -> PythonOperator[P, R]:
        where = check_names(domain, name, since, until)
        label = label_of(where, name)
        signature = _signature(function)
        names = [item.name for item in signature.inputs]
        if cpu_kernel is not None and not isinstance(cpu_kernel, CpuKernel):
            raise InvalidArgument(f"cpu_kernel of {label} is {cpu_kernel!r:.100}; expected a sardonyx.cpu_kernels.CpuKernel")
        if outputs is None and not names:
            raise InvalidArgument(f"{label} has no inputs; say by outputs=[…] which types its outputs have")
        if isinstance(outputs, str):
            raise InvalidArgument(f"outputs of {label} is the text {outputs!r}; expected a list: outputs=[{outputs!r}]")
        description = _Description(
            label,
            signature,
            tuple(parse_output(text, names) for text in (outputs if outputs is not None else names[:1])),
            _types(types or {}, names),
            shape,
            as_text("provider", provider),
        )
        made = description.define(where, name, function, since, until)
        return PythonOperator(function, dataclasses.replace(made, cpu_kernel=cpu_kernel))

    return decorate


def check_names(domain: str, name: str, since: int, until: int) -> str:
    """Return the domain of an operator, "" for ai.onnx.

    Raises:
        InvalidArgument: the operator cannot have this domain, name or range of versions.
        TypeError: the domain or the name is no text.
    """
    where = "" if as_text("domain", domain) == "ai.onnx" else domain
    if not as_text("name", name) or not (where or _is_standard(name)):
        raise InvalidArgument(
            f"an operator of your own has a name and a domain of its own, or those of one that it replaces, "
            f"got {domain!r} and {name!r}"
        )
    if not 1 <= since <= until:
        raise InvalidArgument(f"{label_of(where, name)} exists since version {since} until version {until}, which is no range")
    return where


def label_of(domain: str, name: str) -> str:
    """Return what messages call an operator."""
    return f"{domain or 'ai.onnx'}.{name}"


def _is_standard(name: str) -> bool:
    with without_fork():
        from sardonyx.ops.schemas import is_built_in  # which reads the schemas of the standard

    return is_built_in("", name)


def _signature(function: Callable[..., object]) -> Signature:
    if not inspect.isclass(function):
        return Signature(read_inputs(function), read_attributes(function))
    create, call = getattr(function, "create", None), function.__dict__.get("__call__")
    if create is None or call is None:
        raise InvalidArgument(f"the class {name_of(function)} needs create(cls, site, *, …) and __call__(self, …)")
    return Signature(read_inputs(call, skip=1), read_attributes(create))


def _types(types: Mapping[str, str | Sequence[str]], names: Sequence[str]) -> dict[str, frozenset[DataType]]:
    unknown = sorted(types.keys() - set(names))
    if unknown:
        raise InvalidArgument(f"types names {unknown[0]!r}, which is no input; the inputs are {', '.join(names) or 'none'}")
    return {
        name: frozenset(map(parse_dtype, (allowed,) if isinstance(allowed, str) else allowed)) for name, allowed in types.items()
    }


@dataclasses.dataclass(frozen=True, slots=True)
class _Description:
    """All that is known of an operator besides its function."""

    label: str
    """What messages call it."""
    signature: Signature
    """Its inputs and attributes."""
    outputs: tuple[Output, ...]
    """Its outputs."""
    types: Mapping[str, frozenset[DataType]]
    """Input -> the element types that it takes."""
    shape: ShapeFunction | None
    """Its shape function."""
    provider: str
    """The provider in whose memory it computes; "" for the host's."""

    def define(self, domain: str, name: str, function: Callable[..., object], since: int, until: int) -> OperatorDefinition:
        inputs = tuple(self._parameter(item) for item in self.signature.inputs)
        outputs = tuple(
            Parameter(
                DataType.UNDEFINED if item.is_sequence else item.dtype, Arity.OPTIONAL if item.is_optional else Arity.REQUIRED
            )
            for item in self.outputs
        )
        create = functools.partial(self._create, function)
        owner = f"{function.__module__}.{name_of(function)}"
        return OperatorDefinition(domain, name, inputs, outputs, create, since, until, self._infer, owner, provider=self.provider)

    def _parameter(self, item: Input) -> Parameter:
        allowed = self.types.get(item.name, frozenset())
        dtype = next(iter(allowed)) if len(allowed) == 1 else DataType.UNDEFINED
        return Parameter(dtype, item.arity, is_homogeneous=False, min_arity=0)

    def _create(self, function: Callable[..., object], site: Site) -> Kernel:
        attributes = decode(site.attributes, self.signature.attributes)
        if inspect.isclass(function):
            function = function.create(site, **attributes)  # type: ignore[attr-defined]  # _signature asked for it
            attributes = {}
        kernel = DeviceFunctionKernel if self.provider else FunctionKernel
        return kernel(self.label, functools.partial(function, **attributes) if attributes else function, site)

    def _infer(self, node: Node, facts: Sequence[Fact | None]) -> list[Fact]:
        inputs = list(self.signature.inputs)
        dtypes: dict[str, DataType | None] = {}
        for index, fact in enumerate(facts):
            formal = inputs[min(index, len(inputs) - 1)]
            if fact is None:
                continue
            dtypes.setdefault(formal.name, fact.dtype)
            allowed = self.types.get(formal.name)
            if allowed and fact.dtype is not None and fact.dtype not in allowed:
                expected = " or ".join(sorted(map(str, allowed)))
                raise InvalidGraph(f"{self.label}: its input {formal.name!r} has elements of {fact.dtype}; expected {expected}")
        shapes = self._shapes(node, facts)
        made = zip(self.outputs[: len(node.outputs)], shapes, strict=False)
        return [UNKNOWN if (type := output.type_of(dtypes, shape)) is None else Fact(type) for output, shape in made]

    def _shapes(self, node: Node, facts: Sequence[Fact | None]) -> Sequence[Shape | None]:
        """Return the shapes of the outputs; unknown where there is no shape function, or an input's rank is not known."""
        unknown: list[Shape | None] = [None] * len(self.outputs)
        if self.shape is None or any(fact is not None and fact.shape is None for fact in facts):
            return unknown
        attributes = decode(node.attributes, self.signature.attributes)
        wanted = attribute_names(self.shape)
        count = sum(item.arity is not Arity.VARIADIC for item in self.signature.inputs)
        given = [None if fact is None else fact.shape for fact in facts] + [None] * (count - len(facts))
        try:
            said = self.shape(*given, **{name: attributes[name] for name in wanted})
        except SardonyxError:
            raise
        except ValueError as error:
            raise InvalidGraph(f"{self.label}: {error}") from error
        except Exception as error:
            raise Fail(f"the shape function of {self.label} failed: {describe(error)}") from error
        shapes = [said] if len(self.outputs) == 1 else said
        if not isinstance(shapes, (list, tuple)) or not all(map(_is_shape, shapes)) or len(shapes) > len(self.outputs):
            expected = _SHAPES[len(self.outputs) > 1]
            raise Fail(
                f"the shape function of {self.label} returned {said!r:.200}; expected {expected}, which are ints of at least 0 or "
                "made of those that it was given; None where it is unknown"
            )
        return [None if item is None else tuple(map(_size, item)) for item in shapes] + unknown[len(shapes) :]


_SHAPES = ("a tuple of sizes", "a tuple with a tuple of sizes for each output")


def _is_shape(said: object) -> bool:
    """Return whether it can be the shape of a tensor; None can."""
    if said is None:
        return True
    return isinstance(said, (list, tuple)) and len(said) <= LIMITS.rank and all(map(_is_size, said))


def _size(said: Dim) -> Dim:
    return said if isinstance(said, Expr) else int(said)


def _is_size(said: object) -> bool:
    if isinstance(said, (int, np.integer)) and not isinstance(said, bool):
        return 0 <= int(said) < 1 << 63
    return isinstance(said, Expr)
