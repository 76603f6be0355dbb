"""Compiled libraries of custom operators: loading one, and its operators as definitions.

    library = load_library("libmine.so", config)        dlopen, RegisterCustomOps
    library.definitions                                  one for each operator that it registered

A library that is loaded stays until the process ends: it may keep pointers of ours in static variables.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sardonyx.custom_ops.abi.cpp_exceptions import protect
from sardonyx.custom_ops.abi.custom_op import CustomOp
from sardonyx.custom_ops.abi.entries.core import Domain, Registration
from sardonyx.custom_ops.abi.entries.kernels import info_of_type
from sardonyx.custom_ops.abi.entries.operators import ShapeContext, attributes_of
from sardonyx.custom_ops.abi.entry import POINTER
from sardonyx.custom_ops.abi.handles import drop, find, keep
from sardonyx.custom_ops.abi.statuses import raise_failures, raise_status
from sardonyx.custom_ops.abi.table import Api, shared_api
from sardonyx.custom_ops.definition import NEWEST, OperatorDefinition, Site
from sardonyx.custom_ops.kernel import CompiledKernel
from sardonyx.dtypes import DataType
from sardonyx.errors import Fail, InvalidArgument
from sardonyx.ir import Node, TensorType
from sardonyx.ir.shape import anonymous, symbol
from sardonyx.ops.fact import UNKNOWN, Fact
from sardonyx.trace import event

__all__ = ["CustomOpsLibrary", "api_base", "library_of_domain", "load_library", "register_with"]

_SYMBOL = "RegisterCustomOps"


@dataclasses.dataclass(frozen=True, slots=True)
class CustomOpsLibrary:
    """A library whose operators are registered."""

    path: str
    """Its file, as it was given; "" where a function was given."""
    definitions: tuple[OperatorDefinition, ...]
    """Its operators."""
    config: Mapping[str, str]
    """The config entries that it added."""


def load_library(path: str | os.PathLike[str], config: Mapping[str, str]) -> CustomOpsLibrary:
    """Load the library at `path` and have it register its operators.

    Args:
        path: its file; a name without a folder that is no file here is looked for where the system's loader looks.
        config: the session's config entries, which it may ask for.

    Raises:
        Fail: it is not there, is no library that can be loaded, or has no function RegisterCustomOps.
        SardonyxError: what the library says against it.
    """
    name = os.fspath(path)
    file = Path(name)
    try:
        loaded = ctypes.CDLL(str(file.resolve()) if file.exists() else name)
    except OSError as error:
        raise Fail(f"the custom operator library {name!r} cannot be loaded: {error}") from error
    try:
        function = getattr(loaded, _SYMBOL)
    except AttributeError as error:
        raise Fail(f"the library {name!r} has no function {_SYMBOL}: it is no library of custom operators") from error
    return register_with(ctypes.cast(function, POINTER).value or 0, name, config)


def register_with(function: int, path: str, config: Mapping[str, str]) -> CustomOpsLibrary:
    """Call a RegisterCustomOps function by its address and return what it registered.

    Args:
        function: the address.
        path: what messages call its library.
        config: the session's config entries.

    Raises:
        InvalidArgument: no code lies at the address.
        SardonyxError: what the library says against it.
    """
    if not _is_code(function):
        raise InvalidArgument(f"address is {function:#x}, where no function lies; give that of a function like {_SYMBOL}")
    api, owner = shared_api(), Path(path).name
    given = dict(config)
    registration = Registration(given, [])
    handle = keep(registration)
    try:
        register = protect(function, POINTER, (POINTER, POINTER), f"{_SYMBOL} of {owner}")
        raise_status(register(handle, api.base), f"{_SYMBOL} of {owner}")
        raise_failures(f"{_SYMBOL} of {owner}")
    finally:
        drop(handle)
    definitions = [item for domain in registration.domains for item in _definitions(domain, owner, api)]
    return CustomOpsLibrary(path, _without_end(definitions), {key: text for key, text in given.items() if config.get(key) != text})


def _is_code(address: int) -> bool:
    """Return whether memory at an address may be executed; True where the system does not list its mappings."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return address > 0
    for line in lines:
        bounds, rights = line.split(maxsplit=2)[:2]
        first, end = (int(bound, 16) for bound in bounds.split("-"))
        if first <= address < end:
            return "x" in rights
    return False


def library_of_domain(domain: int, owner: str) -> CustomOpsLibrary:
    """Return the operators of an OrtCustomOpDomain by its handle, which CreateCustomOpDomain of our OrtApi gave.

    Raises:
        InvalidArgument: there is no domain of this handle.
        Fail: an operator is described wrongly.
    """
    api, found = shared_api(), find(domain, Domain)
    return CustomOpsLibrary("", _without_end(list(_definitions(found, owner, api))), {})


def api_base() -> int:
    """Return the address of the OrtApiBase that libraries are given."""
    return shared_api().base


def _definitions(domain: Domain, owner: str, api: Api) -> Iterator[OperatorDefinition]:
    """Give the operators of a domain that run on the host; those for a device's provider are left out."""
    for address in domain.operators:
        operator = CustomOp(address, owner)
        if operator.provider in ("", "CPUExecutionProvider"):
            yield _definition(operator, domain.name, api)
        else:
            event("custom_op.left_out", operator=operator.name, library=owner, provider=operator.provider)


def _without_end(definitions: Sequence[OperatorDefinition]) -> tuple[OperatorDefinition, ...]:
    """Return the definitions, the newest of each operator for all later versions too.

    As onnxruntime reads the end of an operator: a model that imports a later version gets the last one that there was.
    """
    newest: dict[tuple[str, str], int] = {}
    for item in definitions:
        key = item.domain, item.name
        newest[key] = max(newest.get(key, 0), item.since)
    return tuple(
        dataclasses.replace(item, until=NEWEST) if item.since == newest[item.domain, item.name] else item for item in definitions
    )


def _definition(operator: CustomOp, domain: str, api: Api) -> OperatorDefinition:
    inputs, outputs = operator.inputs(), operator.outputs()
    since, until = operator.versions

    def create(site: Site) -> CompiledKernel:
        return CompiledKernel(operator, inputs, outputs, site, api)

    infer = functools.partial(_infer, operator) if operator.has("InferOutputShapeFn") else None
    name = "" if domain == "ai.onnx" else domain
    return OperatorDefinition(name, operator.name, inputs, outputs, create, since, until, infer, operator.owner)


def _infer(operator: CustomOp, node: Node, facts: Sequence[Fact | None]) -> list[Fact]:
    """Ask the library for the types and shapes of a node's outputs."""
    types = [fact.type if fact is not None and isinstance(fact.type, TensorType) else None for fact in facts]
    context = ShapeContext(tuple(map(info_of_type, types)), attributes_of(node.attributes), {})
    handle = keep(context)
    place = f"shape inference of {operator.name} of {operator.owner}"
    try:
        raise_status(operator.call("InferOutputShapeFn", handle), place)
        raise_failures(place)
    finally:
        drop(handle)
        for attribute in context.attributes.values():
            drop(attribute)
        for value in context.inputs:
            value.forget()
    return [_fact(context.outputs.get(index)) for index in range(len(node.outputs))]


def _fact(output: tuple[DataType, tuple[int, ...], tuple[str, ...]] | None) -> Fact:
    if output is None or output[0] is DataType.UNDEFINED:
        return UNKNOWN
    dtype, shape, names = output
    dims = [size if size >= 0 else symbol(name) if name else anonymous() for size, name in zip(shape, names, strict=True)]
    return Fact(TensorType(dtype, tuple(dims)))
