"""The standard's schemas by name and version, read from the `onnx` package once per machine.

    table().find("", "Conv", 13)     the schema in force at opset 13 (Conv-11), or None

Loading `onnx` and asking it for a schema takes 12 MiB and a tenth of a second, mostly for operators that a model does not use. So
what it says is kept in the disk cache, under its version; a schema is unpacked when it is asked for.
"""

from __future__ import annotations

import functools
import marshal
from bisect import bisect_right
from typing import Any

from sardonyx.digests import sha256
from sardonyx.disk_cache import shared_cache
from sardonyx.forks import without_fork
from sardonyx.installed import installed_version
from sardonyx.ir import AttributeKind
from sardonyx.ops.schema import AttributeSchema, OpSchema, ParameterOption, ParameterSchema, TypeConstraint

__all__ = ["SchemaTable", "read_schemas", "table"]

_FORMAT = 1
"""Goes up when packed schemas change their form."""

_Packed = dict[tuple[str, str], list[tuple[int, bytes]]]
"""(domain, operator) -> for each of its versions, in ascending order, the version and the packed schema."""


class SchemaTable:
    """All schemas of the standard's domains."""

    def __init__(self, packed: _Packed) -> None:
        """Adopt what `read_schemas` returned."""
        self._packed = packed
        self._unpacked: dict[tuple[str, str, int], OpSchema] = {}

    @property
    def domains(self) -> frozenset[str]:
        """The domains that have operators; "" is ai.onnx."""
        return frozenset(domain for domain, _ in self._packed)

    def names(self, domain: str) -> dict[str, int]:
        """Return the operators of a domain, with the version that each appeared in."""
        return {name: versions[0][0] for (where, name), versions in self._packed.items() if where == domain}

    def newest(self, domain: str) -> int:
        """Return the newest version of a domain that is known, 0 for a domain without operators."""
        return max((versions[-1][0] for (where, _), versions in self._packed.items() if where == domain), default=0)

    def versions(self, domain: str, op_type: str) -> list[int]:
        """Return the versions with which versions of an operator begin, newest first."""
        return [since for since, _ in reversed(self._packed.get((domain, op_type), ()))]

    def find(self, domain: str, op_type: str, version: int) -> OpSchema | None:
        """Return the schema of an operator in force at opset `version`, or None where there is none."""
        versions = self._packed.get((domain, op_type), ())
        place = bisect_right(versions, version, key=lambda item: item[0])
        if not place:
            return None
        since, packed = versions[place - 1]
        found = self._unpacked.get((domain, op_type, since))
        if found is None:
            found = self._unpacked[domain, op_type, since] = _unpack(domain, op_type, since, packed)
        return found


@functools.cache
def table() -> SchemaTable:
    """Return the table of the installed `onnx`."""
    cache = shared_cache()
    key = sha256(f"schemas/{_FORMAT}/{_onnx_version()}".encode()).hexdigest()
    known = None if cache is None else cache.load(key)
    if known is not None:
        return SchemaTable(marshal.loads(known))
    packed = read_schemas()
    if cache is not None:
        cache.store(key, marshal.dumps(packed))
    return SchemaTable(packed)


def _onnx_version() -> str:
    """Return the version from what was installed, or, in a frozen application that has no such records, from the package."""
    found = installed_version("onnx")
    if found is not None:
        return found
    with without_fork():
        import onnx

    return str(onnx.__version__)


def read_schemas() -> _Packed:
    """Return what the `onnx` package knows."""
    with without_fork():
        import onnx.defs

    found: _Packed = {}
    for schema in sorted(onnx.defs.get_all_schemas_with_history(), key=lambda item: int(item.since_version)):
        found.setdefault((schema.domain, schema.name), []).append((schema.since_version, _pack(schema)))
    return found


def _pack(schema: Any) -> bytes:
    """Return a schema of onnx as bytes; Any because its bindings carry no types, as below."""
    return marshal.dumps(
        (
            [_parameter(item) for item in schema.inputs],
            [_parameter(item) for item in schema.outputs],
            [
                (item.name, item.type.name.removesuffix("_PROTO"), item.required, _default(item.default_value))
                for item in schema.attributes.values()
            ],
            [(item.type_param_str, sorted(item.allowed_type_strs)) for item in schema.type_constraints],
            (
                schema.min_input,
                schema.max_input,
                schema.min_output,
                schema.max_output,
                bool(schema.deprecated),
                bool(schema.has_function or schema.has_context_dependent_function),
            ),
        )
    )


def _parameter(item: Any) -> tuple[str, str, str, bool, int]:
    return item.name, item.type_str, item.option.name.lower(), item.is_homogeneous, item.min_arity


def _default(proto: Any) -> object:
    if proto.type == 0:
        return None
    with without_fork():
        import onnx.helper

    value = onnx.helper.get_attribute_value(proto)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list):
        return tuple(item.decode() if isinstance(item, bytes) else item for item in value)
    return value


def _unpack(domain: str, op_type: str, since_version: int, packed: bytes) -> OpSchema:
    inputs, outputs, attributes, constraints, rest = marshal.loads(packed)
    return OpSchema(
        domain,
        op_type,
        since_version,
        _parameters(inputs),
        _parameters(outputs),
        {name: AttributeSchema(name, AttributeKind[kind], required, default) for name, kind, required, default in attributes},
        {name: TypeConstraint(name, frozenset(types)) for name, types in constraints},
        *rest,
    )


def _parameters(items: list[tuple[str, str, str, bool, int]]) -> tuple[ParameterSchema, ...]:
    return tuple(ParameterSchema(name, type, ParameterOption(option), same, least) for name, type, option, same, least in items)
