"""The custom operators of one session: which definition serves a node, and the schema that nodes are checked against."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence

from sardonyx.custom_ops.definition import NEWEST, Arity, OperatorDefinition, Parameter
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph
from sardonyx.ir import Node, TensorType
from sardonyx.ir.replaced import is_replaced, original_domain, replaced_domain
from sardonyx.ops.fact import UNKNOWN, Fact
from sardonyx.ops.schema import OpSchema, ParameterOption, ParameterSchema, TypeConstraint
from sardonyx.ops.schemas import find_schema, is_built_in
from sardonyx.ops.session_operators import SessionOperator
from sardonyx.providers.user_kernels import CpuKernel

__all__ = ["Catalog"]

_MANY = 1 << 30
_OPTIONS = {
    Arity.REQUIRED: ParameterOption.SINGLE,
    Arity.OPTIONAL: ParameterOption.OPTIONAL,
    Arity.VARIADIC: ParameterOption.VARIADIC,
}


class Catalog:
    """Custom operators by domain and name. Several definitions of one name differ in versions, or in the types of their inputs.

    Those with the name of a built-in operator are found in the domain of what it replaces (`ir/replaced.py`).
    """

    def __init__(self, definitions: Iterable[OperatorDefinition]) -> None:
        """Hold `definitions`; where two serve one node, the first does."""
        self._found: dict[tuple[str, str], list[OperatorDefinition]] = {}
        self._operators: dict[tuple[OperatorDefinition, ...], SessionOperator] = {}
        self.devices: set[str] = set()
        """The providers in whose memory some of them compute."""
        for definition in definitions:
            self._found.setdefault((_domain_of(definition), definition.name), []).append(definition)
            if definition.provider:
                self.devices.add(definition.provider)

    def find_operator(self, domain: str, op_type: str, version: int) -> SessionOperator | None:
        """Return the operator as checks and inference see it, or None; see `ops.session_operators.Lookup`."""
        chosen = self._of_version(domain, op_type, version)
        if not chosen:
            return None
        if chosen not in self._operators:
            self._operators[chosen] = SessionOperator(
                _schema(chosen, domain, version),
                functools.partial(_infer, chosen),
                chosen[0].expression or _kernel_of(chosen),
                functools.partial(_declines, chosen),
            )
        return self._operators[chosen]

    def find(self, node: Node, provider: str = "") -> OperatorDefinition | None:
        """Return the definition that serves a node: of its version, for the types of its inputs; None where there is none.

        Those that compute in the memory of `provider` are looked at, by default those of the host.
        """
        if not self._found:
            return None
        types = [None if value is None else value.dtype for value in node.inputs]
        chosen = self._of_version(node.domain, node.op_type, node.version)
        return next((item for item in chosen if item.provider == provider and _suits(item, types)), None)

    def names(self) -> Mapping[tuple[str, str], str]:
        """Return (domain, operator) -> the versions of the domain at which it exists, as text."""
        return {key: " and ".join(dict.fromkeys(map(_versions, items))) for key, items in self._found.items()}

    @property
    def has_kernels(self) -> bool:
        """Whether the CPU provider may compile some of the operators by kernels of their own."""
        return any(item.cpu_kernel is not None for items in self._found.values() for item in items)

    def _of_version(self, domain: str, op_type: str, version: int) -> tuple[OperatorDefinition, ...]:
        found = self._found.get((domain, op_type), ())
        return tuple(item for item in found if item.since <= version <= item.until)


def _versions(definition: OperatorDefinition) -> str:
    last = "on" if definition.until == NEWEST else f"to {definition.until}"
    return f"from {definition.since} {last}"


def _domain_of(definition: OperatorDefinition) -> str:
    """Return the domain in which a definition is found: another than its own where it replaces a built-in operator."""
    domain = definition.domain
    return replaced_domain(domain) if is_built_in(domain, definition.name) else domain


def _schema(chosen: Sequence[OperatorDefinition], domain: str, version: int) -> OpSchema:
    """Return what nodes are checked against: what the built-in operator asks where it is replaced."""
    known = find_schema(original_domain(domain), chosen[0].name, version) if is_replaced(domain) else None
    return _merged_schema(chosen) if known is None else known


def _declines(chosen: Sequence[OperatorDefinition], node: Node, inputs: Sequence[Fact | None]) -> str:
    """Return why none of `chosen` takes a node; "" where one does."""
    types = [None if fact is None else fact.dtype for fact in inputs]
    definition = next((item for item in chosen if _suits(item, types)), None)
    if definition is None:
        return f"{chosen[0].owner} takes no inputs of {', '.join(map(str, types))}"
    try:
        if definition.infer is not None:
            definition.infer(node, inputs)
    except InvalidGraph as error:
        return str(error)
    return ""


def _kernel_of(chosen: Sequence[OperatorDefinition]) -> CpuKernel | None:
    """Return the kernel of an operator that one definition serves whatever the types of its inputs; else None."""
    return chosen[0].cpu_kernel if len(chosen) == 1 else None


def _suits(definition: OperatorDefinition, types: Sequence[DataType | None]) -> bool:
    formals = [_formal(definition.inputs, index) for index in range(len(types))]
    return all(
        formal is not None and (type is None or formal.dtype in (DataType.UNDEFINED, type))
        for formal, type in zip(formals, types, strict=True)
    ) and len(types) >= _least(definition.inputs)


def _formal(parameters: Sequence[Parameter], index: int) -> Parameter | None:
    if index < len(parameters):
        return parameters[index]
    return parameters[-1] if parameters and parameters[-1].arity is Arity.VARIADIC else None


def _least(parameters: Sequence[Parameter]) -> int:
    """Return how many values there must be: up to the last that is required."""
    least = 0
    for index, formal in enumerate(parameters):
        if formal.arity is Arity.REQUIRED:
            least = index + 1
        elif formal.arity is Arity.VARIADIC:
            least = max(least, index + formal.min_arity) if formal.min_arity else least
    return least


def _most(parameters: Sequence[Parameter]) -> int:
    return _MANY if parameters and parameters[-1].arity is Arity.VARIADIC else len(parameters)


def _merged_schema(definitions: Sequence[OperatorDefinition]) -> OpSchema:
    """Return the schema of what any of `definitions`, which have one name, takes."""
    first = definitions[0]
    longest = max(definitions, key=lambda item: len(item.inputs))
    constraints: dict[str, TypeConstraint] = {}
    inputs = []
    for index, formal in enumerate(longest.inputs):
        name = f"T{index}" if not _is_open(formal) else f"T{index}" if formal.arity is not Arity.VARIADIC else f"V{index}"
        known = [found.dtype for item in definitions if (found := _formal(item.inputs, index)) is not None]
        types = frozenset() if DataType.UNDEFINED in known else frozenset(f"tensor({dtype})" for dtype in known)
        constraints[name] = TypeConstraint(name, types)
        inputs.append(_schema_of(formal, f"input{index}", name))
    outputs = [_schema_of(formal, f"output{index}", f"R{index}") for index, formal in enumerate(first.outputs)]
    return OpSchema(
        first.domain,
        first.name,
        first.since,
        tuple(inputs),
        tuple(outputs),
        {},
        constraints,
        min(_least(item.inputs) for item in definitions),
        max(_most(item.inputs) for item in definitions),
        min(_least(item.outputs) for item in definitions),
        max(_most(item.outputs) for item in definitions),
        is_open=True,
        owner=first.owner or "the session's options",
    )


def _is_open(formal: Parameter) -> bool:
    return formal.dtype is DataType.UNDEFINED


def _schema_of(formal: Parameter, name: str, type: str) -> ParameterSchema:
    return ParameterSchema(name, type, _OPTIONS[formal.arity], formal.is_homogeneous, formal.min_arity)


def _infer(definitions: Sequence[OperatorDefinition], node: Node, inputs: Sequence[Fact | None]) -> tuple[Fact, ...]:
    """Return facts of the outputs: what the definition that serves the node says, and else its declared element types."""
    types = [None if fact is None else fact.dtype for fact in inputs]
    chosen = next((item for item in definitions if _suits(item, types)), None)
    if chosen is None:
        return ()
    said = list(chosen.infer(node, inputs)) if chosen.infer is not None else []
    said += [UNKNOWN] * (len(node.outputs) - len(said))
    return tuple(_with_type(fact, _declared(chosen, index, types)) for index, fact in enumerate(said))


def _declared(definition: OperatorDefinition, index: int, types: Sequence[DataType | None]) -> DataType | None:
    """Return the element type of an output: as declared, or that of the first open input where it is open too."""
    formal = _formal(definition.outputs, index)
    if formal is None or formal.dtype is not DataType.UNDEFINED:
        return None if formal is None else formal.dtype
    for position, dtype in enumerate(types):
        given = _formal(definition.inputs, position)
        if dtype is not None and given is not None and _is_open(given):
            return dtype
    return None


def _with_type(fact: Fact, dtype: DataType | None) -> Fact:
    if fact.type is not None or dtype is None:
        return fact
    return Fact(TensorType(dtype))
