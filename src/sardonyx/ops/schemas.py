"""The schemas of operators, and the check of a node against its schema.

    find_schema("", "Conv", 13)      the schema in force at opset 13 (Conv-11), or None
    check_node(node, schema)         raises InvalidGraph where the node breaks it

Those of the standard are what the installed `onnx` says (`schema_table`); an opset newer than it knows is read under its newest
schemas. Operators of com.microsoft come from a table of our own (`schemas_contrib`).
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Mapping

from sardonyx.errors import InvalidGraph
from sardonyx.ir import Attribute, Node, TensorType
from sardonyx.ir.operator import wrong_kind
from sardonyx.ir.replaced import is_replaced
from sardonyx.ops.schema import (
    AttributeSchema,
    OpSchema,
    ParameterOption,
    ParameterSchema,
    TypeConstraint,
    place_of,
)
from sardonyx.ops.schema_table import table
from sardonyx.ops.schemas_contrib import CONTRIB_SCHEMAS, OLDER_SCHEMAS
from sardonyx.ops.session_operators import find_session_operator, session_operator_names
from sardonyx.spelling import nearest

__all__ = [
    "AttributeSchema",
    "OpSchema",
    "ParameterOption",
    "ParameterSchema",
    "TypeConstraint",
    "all_schemas",
    "check_node",
    "check_types",
    "find_schema",
    "is_built_in",
    "is_too_new",
    "known_domains",
    "unknown_operator",
]


def find_schema(domain: str, op_type: str, version: int) -> OpSchema | None:
    """Return the schema of `op_type` in force at opset `version` of `domain`, or None where there is none."""
    domain = "" if domain == "ai.onnx" else domain
    custom = find_session_operator(domain, op_type, version)
    if custom is not None:
        return custom.schema
    key = domain, op_type
    found = CONTRIB_SCHEMAS.get(key) or table().find(domain, op_type, version) or OLDER_SCHEMAS.get(key)
    return found if found is not None and found.since_version <= version else None


def is_built_in(domain: str, op_type: str) -> bool:
    """Return whether the standard or com.microsoft has an operator in some version; what the standard dropped does not count."""
    return (domain, op_type) in CONTRIB_SCHEMAS or op_type in table().names(domain)


def all_schemas() -> list[OpSchema]:
    """Return the schema of every operator and version, sorted by domain, name and version."""
    standard = [
        schema
        for domain in table().domains
        for name in table().names(domain)
        for version in table().versions(domain, name)
        if (schema := table().find(domain, name, version)) is not None
    ]
    known = {(schema.domain, schema.name): schema for schema in standard}
    others = [schema for key, schema in {**OLDER_SCHEMAS, **CONTRIB_SCHEMAS}.items() if key not in known]
    return sorted([*standard, *others], key=lambda schema: (schema.domain, schema.name, schema.since_version))


@functools.cache
def known_domains() -> tuple[str, ...]:
    """Return the domains that have schemas, sorted; "" is ai.onnx."""
    return tuple(sorted(table().domains | {domain for domain, _ in CONTRIB_SCHEMAS}))


_BLOCKED_LAYOUT = "com.microsoft.nchwc"
"""The domain of ONNX Runtime's kernels for channels in blocks."""


def unknown_operator(domain: str, op_type: str, version: int) -> str:
    """Return the message for an operator without schema: what the nearest known ones are and which domains there are.

    In brackets are the words of onnxruntime's own error, which programs look for.
    """
    label = f"{domain + '.' if domain else ''}{op_type}"
    domains = ", ".join(name or "ai.onnx" for name in known_domains())
    if domain == _BLOCKED_LAYOUT:
        return (
            f"operator {label}: ONNX Runtime saved this model at a level at which weights are packed for one processor, in blocks "
            "whose size the file does not state; save it again with graph_optimization_level ORT_ENABLE_EXTENDED or lower"
        )
    own = session_operator_names()
    if (domain, op_type) in own:
        return (
            f"operator {label} of this session exists in versions {own[domain, op_type]} of its domain, the model imports {version}"
        )
    if domain not in known_domains():
        return f"operator {label}{_unknown_domain(domain, op_type, own)}"
    names = _operator_names(domain)
    first = _first_version(domain, op_type)
    if first is not None:
        return f"operator {label} exists only from opset {first} of {domain or 'ai.onnx'} on, the model imports {version}"
    close = difflib.get_close_matches(op_type, names, n=3)
    others = [name for name in known_domains() if name != domain and op_type in _operator_names(name)]
    hints = [f"did you mean {' or '.join(close)}?"] if close else []
    hints += [f"the domain {name or 'ai.onnx'} has an operator of that name" for name in others]
    unknown = (
        f"operator {label} is unknown at opset {version} ({domain or 'ai.onnx'}:{op_type}(-1) is not a registered function/op)"
    )
    return "; ".join([unknown, *hints, f"known domains are {domains}"])


def _unknown_domain(domain: str, op_type: str, own: Mapping[tuple[str, str], str]) -> str:
    """Return what is wrong with an operator of a domain without schemas, and which `own` ones of the session may be meant."""
    add = "add it by SessionOptions.add_operator, register_custom_ops_library, or --load FILE.py on the command line"
    siblings = [name for where, name in own if where == domain]
    if siblings:
        close = difflib.get_close_matches(op_type, siblings, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        return f": the session knows no such operator; {hint}It has {', '.join(siblings)} of {domain!r}; {add}"
    others = dict.fromkeys(where for where, _ in own if not is_replaced(where))
    domains = ", ".join([name or "ai.onnx" for name in known_domains()] + list(others))
    return f": the domain {domain!r} is unknown, known are {domains}; {add}"


def is_too_new(domain: str, op_type: str) -> bool:
    """Return whether an operator without a schema at some version is a built-in one, which exists from a later version on.

    No shape function says what such a node makes, so nothing may be computed of the shapes that a file declares for it.
    """
    return _first_version(domain, op_type) is not None


def _first_version(domain: str, op_type: str) -> int | None:
    """Return the version that a built-in operator appeared in, or None for others."""
    older = OLDER_SCHEMAS.get((domain, op_type))
    return _operator_names(domain).get(op_type) if older is None else older.since_version


@functools.cache
def _operator_names(domain: str) -> dict[str, int]:
    """Return every operator of a domain, with the version that it appeared in."""
    ours = {name: schema.since_version for (where, name), schema in CONTRIB_SCHEMAS.items() if where == domain}
    return ours | table().names(domain)


def check_node(node: Node, schema: OpSchema) -> None:
    """Raise InvalidGraph where `node` breaks `schema` in the number of its inputs and outputs or in its attributes.

    As lenient as ONNX Runtime: attributes whose names begin with "__" pass; more lenient: deprecated operators do.
    """
    if schema.is_deprecated and not schema.inputs:
        return
    _check_inputs(node, schema)
    _check_count(node, schema, "outputs", len(node.outputs), schema.min_outputs, schema.max_outputs, schema.outputs)
    for attribute in schema.attributes.values():
        if attribute.is_required and attribute.name not in node.attributes:
            raise InvalidGraph(
                f"{place_of(node)}: the required attribute {attribute.name!r} ({attribute.kind.name}) is missing; "
                f"{schema.label} takes {_signature(schema)}"
            )
    for name, value in node.attributes.items():
        _check_attribute(node, schema, name, value)


def _check_inputs(node: Node, schema: OpSchema) -> None:
    count = len(node.inputs)
    while count and node.inputs[count - 1] is None and count > schema.max_inputs:
        count -= 1
    _check_count(node, schema, "inputs", count, schema.min_inputs, schema.max_inputs, schema.inputs)
    for index, value in enumerate(node.inputs[:count]):
        formal = schema.input(index)
        if value is None and formal is not None and formal.option is ParameterOption.SINGLE:
            raise InvalidGraph(f"{place_of(node)}: input {index} ({formal.name!r}) is left out, but {schema.label} needs it")


def _check_count(
    node: Node, schema: OpSchema, what: str, count: int, least: int, most: int, formals: tuple[ParameterSchema, ...]
) -> None:
    if least <= count <= most:
        return
    expected = str(least) if least == most else f"at least {least}" if most >= 1 << 30 else f"{least} to {most}"
    names = ", ".join(_MARKS[formal.option].format(formal.name) for formal in formals)
    raise InvalidGraph(f"{place_of(node)} has {count} {what}, expected {expected}: {schema.label} takes ({names})")


def check_types(node: Node, schema: OpSchema) -> None:
    """Raise InvalidGraph where inputs that share a type variable have different types, such as Add of float and int64.

    Also where an input has a type that no version of the operator takes, such as Exp of strings; a type that only another version
    takes passes, as kernels do not tell versions apart by type. Inputs of unknown type pass.
    """
    bound: dict[str, tuple[int, str]] = {}
    for index, value in enumerate(node.inputs):
        formal = schema.input(index)
        if value is None or value.type is None or formal is None:
            continue
        if isinstance(value.type, TensorType):
            _check_type(node, schema, index, str(value.type))
        if not formal.is_homogeneous:
            continue
        if formal.type not in schema.type_constraints:
            continue
        first, type = bound.setdefault(formal.type, (index, str(value.type)))
        if type != str(value.type):
            raise InvalidGraph(
                f"{place_of(node)}: inputs {first} and {index} are {type} and {value.type}, but {schema.label} takes one type "
                f"{formal.type} for both; insert a Cast (Type Error: Type parameter ({formal.type}) of Optype ({node.op_type}) "
                f"bound to different types ({type} and {value.type} in node ({node.name}))"
            )


def _check_type(node: Node, schema: OpSchema, index: int, type: str) -> None:
    if schema.owner:
        _check_custom_type(node, schema, index, type)
        return
    if schema.is_open:
        _check_open_type(node, schema, index, type)
        return
    accepted = _accepted_types(schema.domain, schema.name)
    if not accepted:
        return
    types = accepted[min(index, len(accepted) - 1)]
    if type not in types:
        raise InvalidGraph(
            f"{place_of(node)}: input {index} is {type}, but {schema.label} takes {', '.join(sorted(types))}; insert a Cast "
            f"({_in_onnxruntimes_words(node, index, type)})"
        )


def _in_onnxruntimes_words(node: Node, index: int, type: str) -> str:
    """Return what onnxruntime says of an input's type, which programs look for in its errors."""
    value = node.inputs[index]
    name = "" if value is None else value.name
    return f"Type Error: Type '{type}' of input parameter ({name}) of operator ({node.op_type}) in node ({node.name}) is invalid."


def _check_custom_type(node: Node, schema: OpSchema, index: int, type: str) -> None:
    """Refuse a type that a custom operator does not list; one that lists none takes all."""
    formal = schema.input(index)
    constraint = None if formal is None else schema.type_constraints.get(formal.type)
    if constraint is not None and constraint.types and type not in constraint.types:
        expected = " or ".join(sorted(constraint.types))
        raise InvalidGraph(f"{place_of(node)}: input {index} is {type}, but {schema.label} takes {expected} there; insert a Cast")


_TAKES_STRINGS = frozenset({"DynamicSlice", "ExpandDims", "GatherND", "MurmurHash3"})
"""Operators outside the standard whose first input may be strings, though their schemas list no types."""
_INDICES = frozenset({"I", "M", "Tid", "Tind"})
"""What such schemas call the types of masks, positions and indices, none of which is bool."""


def _check_open_type(node: Node, schema: OpSchema, index: int, type: str) -> None:
    """Refuse what no operator with a schema that lists no types takes: strings, and bool as an index."""
    formal = schema.input(index)
    if formal is None:
        return
    if "(" in formal.type:
        wrong = type != formal.type
    else:
        holds_strings = schema.name in _TAKES_STRINGS and index == 0
        wrong = (type == "tensor(string)" and not holds_strings) or (type == "tensor(bool)" and formal.type in _INDICES)
    if wrong:
        expected = f"{formal.type} there" if "(" in formal.type else "no such tensor there"
        raise InvalidGraph(f"{place_of(node)}: input {index} is {type}, but {schema.label} takes {expected}; insert a Cast")


_ALSO_TAKES = {("", "DynamicQuantizeLinear"): frozenset({"tensor(float16)", "tensor(bfloat16)", "tensor(double)"})}
"""Types of an operator's first input beside the standard's: those of models that converters to half precision write."""


@functools.lru_cache(maxsize=1024)
def _accepted_types(domain: str, op_type: str) -> tuple[frozenset[str], ...]:
    """Return for each formal input the types that some version of the operator takes; the last counts for all beyond."""
    found: dict[int, set[str]] = {}
    for version in table().versions(domain, op_type):
        schema = table().find(domain, op_type, version)
        for index, formal in enumerate(schema.inputs if schema is not None else ()):
            constraint = schema.type_constraints.get(formal.type) if schema is not None else None
            found.setdefault(index, set()).update([formal.type] if constraint is None else constraint.types)
    if found and (domain, op_type) in _ALSO_TAKES:
        found[0] |= _ALSO_TAKES[domain, op_type]
    return tuple(frozenset(found[index]) for index in sorted(found))


_MARKS = {ParameterOption.SINGLE: "{}", ParameterOption.OPTIONAL: "{}?", ParameterOption.VARIADIC: "{}..."}


def _check_attribute(node: Node, schema: OpSchema, name: str, attribute: Attribute) -> None:
    formal = schema.attributes.get(name)
    if formal is None:
        if schema.is_open or name.startswith("__"):
            return
        close = nearest(name, schema.attributes, likeness=0.6)
        hint = f"did you mean {close!r}?" if close else f"{schema.label} takes {_signature(schema)}"
        raise InvalidGraph(f"{place_of(node)}: unknown attribute {name!r}; {hint}")
    if attribute.kind is not formal.kind and attribute.reference is None:
        raise InvalidGraph(f"{place_of(node)}: {wrong_kind(name, attribute, formal.kind)}")


def _signature(schema: OpSchema) -> str:
    return (
        ", ".join(
            f"{item.name}{'' if item.is_required else '?' if item.default is None else f'={item.default!r}'}"
            for item in sorted(schema.attributes.values(), key=lambda item: item.name)
        )
        or "no attributes"
    )
