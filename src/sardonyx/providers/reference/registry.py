"""Registration of reference kernels: one function per semantic version range of an operator.

    @kernel("Softmax", since=13, view=Softmax)
    def softmax(node, x, *, view): ...

`since` is the opset version at which this meaning begins; it lasts until the next registered version of the same name, so a
schema bump that changes no meaning needs no line here. A kernel takes the call (`Call`), the inputs in order (None for one
left out) and by keyword the view of the node (`ops/views/`) and the attributes that only the kernel reads, and returns an array,
or a tuple where the operator has several outputs.

What arrives as an attribute: int, float, str, a tuple of these, an array for a tensor, a `Body` for a graph. Attributes that
the signature does not name (`consumed_inputs` of opset 1) are dropped. Tensors are NumPy arrays (strings: object arrays of
str), sequences are lists, maps are dicts, an empty optional is None. Inputs are read-only by convention: a kernel may return a
view of an input, and never writes to one.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, Protocol, Self

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import DataType, OnnxValue
from sardonyx.ir import Attribute, Operator
from sardonyx.ir.attribute import AttributeValue
from sardonyx.registration import is_defined_again, is_imported

__all__ = [
    "Body",
    "Call",
    "Given",
    "Kernel",
    "KernelFunction",
    "View",
    "find_kernel",
    "kernel",
    "kernels_of",
    "no_problem",
    "registered_operators",
]

KernelFunction = Callable[..., Any]
"""A kernel takes and returns arrays, lists, dicts and None by operator: only the schema knows which."""


class View(Protocol):
    """A view of an operator."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node."""


class Body(Protocol):
    """A subgraph attribute (of If, Loop, Scan, SequenceMap, the generation loops …) as a kernel sees it."""

    input_count: int
    """How many inputs the graph has."""
    output_count: int
    """How many outputs the graph has."""

    def __call__(self, *inputs: OnnxValue) -> list[OnnxValue]:
        """Run the graph on `inputs` (outer values are captured) and return its outputs in order."""


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """What a kernel may know about the node that it serves."""

    name: str
    """The node's name, for messages."""
    op_type: str
    """The operator."""
    version: int
    """The opset version of the operator's domain that the node is read under."""
    present: tuple[bool, ...]
    """For each output, whether anything uses it."""
    output_types: tuple[DataType | None, ...]
    """For each output, its element type where inference or the model states it."""


def no_problem() -> None:
    """Return None: a kernel runs wherever NumPy does."""


@dataclasses.dataclass(frozen=True, slots=True)
class Kernel:
    """A registered kernel."""

    function: KernelFunction
    """The function itself."""
    op_type: str
    """The operator."""
    domain: str
    """The operator's domain; "" is ai.onnx."""
    since: int
    """The first opset version of this meaning."""
    attributes: frozenset[str]
    """The attributes that the function takes by keyword."""
    required: frozenset[str]
    """Those of them that it cannot do without."""
    most_inputs: int
    """How many inputs it takes."""
    view: type[View] | None
    """The view that the function takes by the keyword `view`."""
    problem: Callable[[], str | None] = no_problem
    """Returns why the kernel cannot run on this machine, such as a package that is not installed; None where it can."""

    def keywords(self, node: Operator, attributes: Mapping[str, AttributeValue]) -> dict[str, AttributeValue]:
        """Return what the function takes by keyword: the view of `node`, and of `attributes` those that it names."""
        named = {name: value for name, value in attributes.items() if name in self.attributes}
        return named if self.view is None else {**named, "view": self.view.of(node)}


@dataclasses.dataclass(frozen=True, slots=True)
class Given(Operator):
    """An operator that no node applies, for kernels that are called by others."""

    op_type: str
    """The operator."""
    version: int
    """The opset version that it is read under."""
    domain: str
    """Its domain."""
    attributes: Mapping[str, Attribute]
    """Its attributes."""

    @staticmethod
    def of(op_type: str, version: int, domain: str, attributes: Mapping[str, AttributeValue]) -> Given:
        """Give an operator attributes as Python values; None and empty lists are left out."""
        given = {name: value for name, value in attributes.items() if value is not None and value != () and value != []}
        return Given(op_type, version, domain, {name: Attribute.of(value) for name, value in given.items()})


_KERNELS: dict[tuple[str, str], list[Kernel]] = {}


def kernel(
    op_type: str,
    *,
    since: int = 1,
    domain: str = "",
    view: type[View] | None = None,
    problem: Callable[[], str | None] = no_problem,
) -> Callable[[KernelFunction], KernelFunction]:
    """Register the decorated function as the meaning of `op_type` from opset `since` of `domain` on; see `Kernel.problem`."""

    def register(function: KernelFunction) -> KernelFunction:
        entry = dataclasses.replace(_entry(function, op_type, domain, since, view), problem=problem)
        versions = _KERNELS.setdefault((domain, op_type), [])
        for other in [other for other in versions if other.since == since]:
            if not is_defined_again(other.function, function):
                raise ValueError(f"two reference kernels for {domain or 'ai.onnx'}.{op_type} since {since}")
            versions.remove(other)
        versions.append(entry)
        versions.sort(key=lambda item: item.since)
        return function

    return register


def _entry(function: KernelFunction, op_type: str, domain: str, since: int, view: type[View] | None) -> Kernel:
    written = inspect.unwrap(function)
    code = written.__code__  # what `inspect.signature` reads too, and takes fifty times as long for
    names = frozenset(code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]) - {"view"}
    required = names - (written.__kwdefaults__ or {}).keys()
    most_inputs = 1 << 30 if code.co_flags & inspect.CO_VARARGS else code.co_argcount - 1
    return Kernel(function, op_type, domain, since, names, required, most_inputs, view)


def find_kernel(domain: str, op_type: str, version: int) -> Kernel | None:
    """Return the kernel whose range holds `version`, or None; O(versions of the operator)."""
    found = None
    known = _KERNELS.get((domain, op_type))
    if known is None or not all(is_imported(entry.function) for entry in known):
        _families().load_family(domain, op_type)
    for entry in _KERNELS.get((domain, op_type), ()):
        if entry.since > version:
            break
        found = entry
    return found


def _families() -> ModuleType:
    """Return what imports the families, each of which imports this module."""
    return importlib.import_module("sardonyx.providers.reference.kernels")


def registered_operators() -> Sequence[tuple[str, str]]:
    """Return every (domain, operator) with a kernel, sorted."""
    _families().load_all()
    return sorted(_KERNELS)


def kernels_of(op_type: str) -> list[Kernel]:
    """Return every kernel of the operator, of all domains and versions, by domain and version."""
    _families().load_all()
    return [entry for (_, name), versions in sorted(_KERNELS.items()) if name == op_type for entry in versions]
