"""Statuses, the registration of operators, config entries and logging."""

from __future__ import annotations

import ctypes
import dataclasses

from sardonyx.custom_ops.abi.entry import INT32, POINTER, UINT32, Entry, entry
from sardonyx.custom_ops.abi.handles import drop, find, keep
from sardonyx.custom_ops.abi.statuses import Status, make_status
from sardonyx.custom_ops.abi.strings import copy_text, read_text, write_int32, write_pointer
from sardonyx.errors import InvalidArgument
from sardonyx.trace import event

__all__ = ["ENTRIES", "LOGGER", "Domain", "Logger", "Registration"]

ENTRIES: list[Entry] = []


@dataclasses.dataclass(slots=True)
class Domain:
    """An OrtCustomOpDomain."""

    name: str
    """The domain."""
    operators: list[int]
    """The addresses of the OrtCustomOps that were added, in order."""


@dataclasses.dataclass(slots=True)
class Registration:
    """The OrtSessionOptions that a library's RegisterCustomOps gets."""

    config: dict[str, str]
    """Config entries of the session, to which the library may add."""
    domains: list[Domain]
    """The domains that were added, in order."""


class Logger:
    """An OrtLogger: messages become trace events."""


LOGGER = keep(Logger())
"""The handle of the one logger."""
_WARNING = 2


@entry(ENTRIES, "CreateStatus", INT32, POINTER, returns=POINTER)
def _create_status(code: int, text: int | None) -> int:
    return make_status(code, read_text(text) if text else "")


@entry(ENTRIES, "GetErrorCode", POINTER, returns=INT32)
def _get_error_code(status: int | None) -> int:
    return find(status, Status).code if status else 0


@entry(ENTRIES, "GetErrorMessage", POINTER, returns=POINTER)
def _get_error_message(status: int | None) -> int:
    return ctypes.addressof(find(status, Status).text)


@entry(ENTRIES, "CreateCustomOpDomain", POINTER, POINTER)
def _create_custom_op_domain(name: int | None, out: int | None) -> None:
    write_pointer(out, keep(Domain(read_text(name), [])))


@entry(ENTRIES, "CustomOpDomain_Add", POINTER, POINTER)
def _custom_op_domain_add(domain: int | None, operator: int | None) -> None:
    if not operator:
        raise InvalidArgument("the library adds NULL to a domain; expected an OrtCustomOp")
    find(domain, Domain).operators.append(operator)


@entry(ENTRIES, "AddCustomOpDomain", POINTER, POINTER)
def _add_custom_op_domain(options: int | None, domain: int | None) -> None:
    find(options, Registration).domains.append(find(domain, Domain))


@entry(ENTRIES, "AddSessionConfigEntry", POINTER, POINTER, POINTER)
def _add_session_config_entry(options: int | None, key: int | None, value: int | None) -> None:
    find(options, Registration).config[read_text(key)] = read_text(value)


@entry(ENTRIES, "HasSessionConfigEntry", POINTER, POINTER, POINTER)
def _has_session_config_entry(options: int | None, key: int | None, out: int | None) -> None:
    write_int32(out, int(read_text(key) in find(options, Registration).config))


@entry(ENTRIES, "GetSessionConfigEntry", POINTER, POINTER, POINTER, POINTER)
def _get_session_config_entry(options: int | None, key: int | None, out: int | None, size: int | None) -> None:
    entries, name = find(options, Registration).config, read_text(key)
    if name not in entries:
        raise InvalidArgument(f"no config entry {name!r} was added")
    copy_text(entries[name], out, size)


@entry(ENTRIES, "Logger_LogMessage", POINTER, INT32, POINTER, POINTER, INT32, POINTER)
def _logger_log_message(
    logger: int | None, severity: int, message: int | None, path: int | None, line: int, function: int | None
) -> None:
    find(logger, Logger)
    where = f"{read_text(path) if path else ''}:{line} {read_text(function) if function else ''}"
    event("custom_op.log", severity=severity, message=read_text(message), place=where)


@entry(ENTRIES, "Logger_GetLoggingSeverityLevel", POINTER, POINTER)
def _logger_get_logging_severity_level(logger: int | None, out: int | None) -> None:
    find(logger, Logger)
    write_int32(out, _WARNING)


@entry(ENTRIES, "GetExperimentalFunction", POINTER, returns=POINTER)
def _get_experimental_function(name: int | None) -> None:
    read_text(name)


@entry(ENTRIES, "GetTrainingApi", UINT32, returns=POINTER)
def _get_training_api(version: int) -> None:
    return


def _release(handle: int | None) -> None:
    drop(handle)


for _name in ("Status", "CustomOpDomain", "OpAttr", "Op", "KernelInfo"):
    entry(ENTRIES, f"Release{_name}", POINTER, returns=None)(_release)
