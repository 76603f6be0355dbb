"""Sessions that libraries make: the table's functions, called as C calls them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.models import model
from support.ort_api import ask, call

import sardonyx.session.library_sessions  # noqa: F401  says what makes sessions
from sardonyx.custom_ops.abi.statuses import raise_status
from sardonyx.custom_ops.abi.values import find_value, make_value, release_value
from sardonyx.dtypes import Array
from sardonyx.errors import Fail, InvalidArgument, InvalidProtobuf, NoSuchFile
from sardonyx.formats.onnx import to_bytes

BYTES = to_bytes(model("graph(x: float[n, 3], z: float[3]) -> (y: float[n, 3], s: int64[2]) {\ny = Add(x, z)\ns = Shape(y)\n}"))
X, Z = np.array([[1, 2, 3], [4, 5, 6]], np.float32), np.array([10, 20, 30], np.float32)


def _session(options: int | None = None, content: bytes = BYTES) -> int:
    env = ask("CreateEnv", ctypes.c_int(2), ctypes.c_char_p(b"mine"))
    made: int = ask("CreateSessionFromArray", env, ctypes.c_char_p(content), len(content), options)
    return made


def _texts(*texts: bytes) -> Any:
    return (ctypes.c_char_p * len(texts))(*texts)


def _run(
    session: int, outputs: Any, names: Sequence[bytes] = (b"y", b"s"), options: int | None = None, feed: Sequence[Array] = (X, Z)
) -> None:
    values = [make_value(array) for array in feed]
    given = (ctypes.c_uint64 * len(values))(*(value.address for value in values))
    try:
        raise_status(
            call("Run", session, options, _texts(b"x", b"z"), given, len(values), _texts(*names), len(names), outputs), "Run"
        )
    finally:
        for value in values:
            release_value(value.address)


def test_a_model_is_run() -> None:
    """Results are values that the library releases."""
    session, outputs = _session(), (ctypes.c_uint64 * 2)()
    _run(session, outputs)
    np.testing.assert_array_equal(np.asarray(find_value(outputs[0]).content), X + Z)
    np.testing.assert_array_equal(np.asarray(find_value(outputs[1]).content), [2, 3])
    for address in outputs:
        call("ReleaseValue", int(address), returns=None)
    call("ReleaseSession", session, returns=None)
    with pytest.raises(InvalidArgument, match="released or none"):
        _run(session, outputs)


def test_results_are_stored_in_values_that_are_given() -> None:
    """Where they fit."""
    mine = make_value(np.zeros((2, 3), np.float32))
    outputs = (ctypes.c_uint64 * 1)(mine.address)
    _run(_session(), outputs, [b"y"])
    assert outputs[0] == mine.address
    np.testing.assert_array_equal(np.asarray(mine.content), X + Z)
    wrong = make_value(np.zeros((3, 2), np.float32))
    with pytest.raises(InvalidArgument, match="does not fit the value"):
        _run(_session(), (ctypes.c_uint64 * 1)(wrong.address), [b"y"])


def test_a_session_describes_its_model() -> None:
    """Counts, names, types and shapes."""
    session, allocator = _session(), ask("GetAllocatorWithDefaultOptions")
    for kind, names in (("Input", [b"x", b"z"]), ("Output", [b"y", b"s"])):
        assert ask(f"SessionGet{kind}Count", session) == 2
        for index, name in enumerate(names):
            address = ask(f"SessionGet{kind}Name", session, index, allocator)
            assert ctypes.string_at(address) == name
            raise_status(call("AllocatorFree", allocator, address), "free")
        with pytest.raises(InvalidArgument, match="number 2 of 2"):
            ask(f"SessionGet{kind}Name", session, 2, allocator)
    info = ask("SessionGetInputTypeInfo", session, 0)
    tensor = ask("CastTypeInfoToTensorInfo", info)
    assert ask("GetTensorElementType", tensor, out=ctypes.c_int32) == 1
    assert ask("GetDimensionsCount", tensor) == 2
    dims = (ctypes.c_int64 * 2)()
    raise_status(call("GetDimensions", tensor, dims, 2), "dims")
    assert list(dims) == [-1, 3]
    assert (
        ask(
            "GetTensorElementType", ask("CastTypeInfoToTensorInfo", ask("SessionGetOutputTypeInfo", session, 1)), out=ctypes.c_int32
        )
        == 7
    )


def test_options_reach_the_session() -> None:
    """By functions and by config entries; a copy is one of its own."""
    options = ask("CreateSessionOptions")
    for name, value in (("SetIntraOpNumThreads", 1), ("SetSessionGraphOptimizationLevel", 1), ("SetSessionExecutionMode", 0)):
        raise_status(call(name, options, ctypes.c_int(value)), name)
    for name in ("DisableMemPattern", "EnableCpuMemArena", "DisablePerSessionThreads"):
        raise_status(call(name, options), name)
    raise_status(call("SetSessionLogId", options, ctypes.c_char_p(b"mine")), "id")
    raise_status(
        call("AddSessionConfigEntry", options, ctypes.c_char_p(b"session.disable_prepacking"), ctypes.c_char_p(b"1")), "entry"
    )
    copy = ask("CloneSessionOptions", options)
    raise_status(call("SetSessionGraphOptimizationLevel", options, ctypes.c_int(7)), "level")
    outputs = (ctypes.c_uint64 * 2)()
    _run(_session(copy), outputs)
    with pytest.raises(Fail, match="7 is not a valid GraphOptimizationLevel"):
        _session(options)
    call("ReleaseSessionOptions", options, returns=None)


def test_a_run_is_ended_by_its_options() -> None:
    """And goes on where they are unset."""
    options, outputs = ask("CreateRunOptions"), (ctypes.c_uint64 * 2)()
    raise_status(call("RunOptionsSetTerminate", options), "set")
    with pytest.raises(Fail, match="the run was terminated"):
        _run(_session(), outputs, options=options)
    raise_status(call("RunOptionsUnsetTerminate", options), "unset")
    _run(_session(), outputs, options=options)
    call("ReleaseRunOptions", options, returns=None)


def test_a_model_in_a_file(tmp_path: Path) -> None:
    """One that is not there is an error, and so are bytes that are no model."""
    (tmp_path / "m.onnx").write_bytes(BYTES)
    env, outputs = ask("CreateEnv", ctypes.c_int(2), None), (ctypes.c_uint64 * 2)()
    _run(ask("CreateSession", env, ctypes.c_char_p(str(tmp_path / "m.onnx").encode()), None), outputs)
    with pytest.raises(NoSuchFile):
        ask("CreateSession", env, ctypes.c_char_p(str(tmp_path / "no.onnx").encode()), None)
    with pytest.raises(InvalidProtobuf):
        _session(content=b"nothing")
    call("ReleaseEnv", env, returns=None)
    with pytest.raises(InvalidArgument, match="released or none"):
        ask("CreateSession", env, ctypes.c_char_p(b"m"), None)


def test_wrong_feeds_are_errors_of_the_run() -> None:
    """With what the session says; nothing is made then."""
    outputs = (ctypes.c_uint64 * 2)()
    with pytest.raises(InvalidArgument, match="'x'"):
        _run(_session(), outputs, feed=[X.astype(np.float64), Z])
    with pytest.raises(InvalidArgument, match="NULL"):
        raise_status(call("Run", _session(), None, None, None, 1, _texts(b"y"), 1, outputs), "Run")
    assert list(outputs) == [0, 0]
