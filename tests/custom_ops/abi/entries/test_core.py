"""Registration, statuses, config entries and logging."""

from __future__ import annotations

import ctypes

import pytest
from support.ort_api import ask, call

from sardonyx.custom_ops.abi.entries.core import LOGGER, Registration
from sardonyx.custom_ops.abi.handles import keep
from sardonyx.custom_ops.abi.statuses import raise_status
from sardonyx.errors import InvalidArgument


def test_domains_are_added_to_a_session() -> None:
    """With the addresses of their operators, in order."""
    registration = Registration({}, [])
    options = keep(registration)
    domain = ask("CreateCustomOpDomain", ctypes.c_char_p(b"mine"))
    for operator in (0x10, 0x20):
        raise_status(call("CustomOpDomain_Add", domain, operator), "add")
    raise_status(call("AddCustomOpDomain", options, domain), "add")
    assert [(item.name, item.operators) for item in registration.domains] == [("mine", [0x10, 0x20])]


def test_null_is_no_operator() -> None:
    """The error says what was expected."""
    domain = ask("CreateCustomOpDomain", ctypes.c_char_p(b"mine"))
    with pytest.raises(InvalidArgument, match="expected an OrtCustomOp"):
        raise_status(call("CustomOpDomain_Add", domain, None), "add")


def test_config_entries_are_read_and_added() -> None:
    """An unknown one is an error."""
    registration = Registration({"a": "1"}, [])
    options, key, size = keep(registration), ctypes.c_char_p(b"b"), ctypes.c_size_t(8)
    assert ask("HasSessionConfigEntry", options, key, out=ctypes.c_int32) == 0
    with pytest.raises(InvalidArgument, match="no config entry 'b'"):
        raise_status(call("GetSessionConfigEntry", options, key, None, ctypes.byref(size)), "get")
    raise_status(call("AddSessionConfigEntry", options, key, ctypes.c_char_p(b"2")), "add")
    buffer = ctypes.create_string_buffer(8)
    raise_status(call("GetSessionConfigEntry", options, key, ctypes.byref(buffer), ctypes.byref(size)), "get")
    assert (buffer.value, size.value) == (b"2", 2)


def test_a_status_has_code_and_text() -> None:
    """NULL has the code of success."""
    status = call("CreateStatus", ctypes.c_int(2), ctypes.c_char_p(b"what"))
    assert call("GetErrorCode", status, returns=ctypes.c_int32) == 2
    assert ctypes.string_at(call("GetErrorMessage", status)) == b"what"
    call("ReleaseStatus", status)
    assert call("GetErrorCode", None, returns=ctypes.c_int32) == 0


def test_messages_become_trace_events() -> None:
    """The logger says from which severity on."""
    assert ask("Logger_GetLoggingSeverityLevel", LOGGER, out=ctypes.c_int32) == 2
    text = ctypes.c_char_p(b"text")
    raise_status(call("Logger_LogMessage", LOGGER, ctypes.c_int(3), text, text, ctypes.c_int(7), text), "log")


def test_what_is_not_there_is_null() -> None:
    """Experimental functions, and training: libraries ask and go without."""
    assert call("GetExperimentalFunction", ctypes.c_char_p(b"OrtApi_New_SinceV99")) is None
    assert call("GetTrainingApi", ctypes.c_uint32(1)) is None
