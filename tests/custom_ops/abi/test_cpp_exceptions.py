"""C++ exceptions that a library's functions throw, by a library in C++ that is compiled where there is a compiler."""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

import sardonyx
from sardonyx.codegen.run.elf import is_supported
from sardonyx.custom_ops.abi.cpp_exceptions import GuardedCall, protect

SOURCE = Path(__file__).parents[2] / "support" / "throwing_ops.cpp"
RUNTIME_ERROR = r"std::runtime_error \(the text of the error\)"


@functools.cache
def _library() -> str:
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None or not is_supported():
        pytest.skip("there is no C++ compiler, or no guard for this system")
    path = Path(tempfile.mkdtemp(prefix="sardonyx_throwing_")) / "libthrowing.so"
    done = subprocess.run(
        [compiler, "-w", "-O1", "-shared", "-fPIC", "-o", str(path), str(SOURCE)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return str(path)


def _session(*op_types: str) -> sardonyx.InferenceSession:
    options = sardonyx.SessionOptions()
    options.register_custom_ops_library(_library())
    nodes = [helper.make_node(op, ["x"], [f"y{place}"], name=f"n{place}", domain="throwing") for place, op in enumerate(op_types)]
    outputs = [helper.make_tensor_value_info(f"y{place}", 1, [1]) for place in range(len(op_types))]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, [1])], outputs)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("throwing", 1)]
    content = helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString()
    return sardonyx.InferenceSession(content, options)


def _feed(number: float) -> dict[str, np.ndarray]:
    return {"x": np.float32([number])}


@pytest.mark.parametrize("op_type", ["Throws", "ThrowsWithoutStatus"])
@pytest.mark.parametrize(
    ("number", "text"), [(1, RUNTIME_ERROR), (2, "of type int out"), (3, "of type Odd out"), (4, "std::out_of_range")]
)
def test_what_a_kernel_throws_is_an_error(op_type: str, number: float, text: str) -> None:
    """With its type, its text where it has one, and the node; of kernels of both forms."""
    session = _session(op_type)
    with pytest.raises(sardonyx.RuntimeException, match=rf'node "n0".*{op_type} of libthrowing.so.*{text}'):
        session.run(None, _feed(number))


def test_runs_go_on_after_an_exception() -> None:
    """Destructors of the library ran; the session is as before, also where other nodes come first."""
    session = _session("Throws", "Throws")
    before = session.run(None, _feed(0))
    for _ in range(20):
        with pytest.raises(sardonyx.RuntimeException):
            session.run(None, _feed(1))
    after = session.run(None, _feed(0))
    assert after[0][0] - before[1][0] == 21


def test_threads_throw_at_the_same_time() -> None:
    """Each gets its own error."""
    session, found = _session("Throws"), []

    def run(number: int) -> None:
        for _ in range(50):
            try:
                session.run(None, _feed(number))
            except sardonyx.RuntimeException as error:
                found.append((number, "std::runtime_error" in str(error), "type int" in str(error)))

    threads = [threading.Thread(target=run, args=(1 + place % 2,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(set(found)) == [(1, True, False), (2, False, True)]
    assert len(found) == 200


def test_a_parallel_loop_may_throw() -> None:
    """What its function throws becomes the status that the library gets."""
    with pytest.raises(sardonyx.SardonyxError, match=RUNTIME_ERROR):
        _session("ThrowsInParallel").run(None, _feed(0))


def test_a_kernel_that_cannot_be_made_is_an_error_of_the_session() -> None:
    """Its constructor may throw too."""
    with pytest.raises(sardonyx.SardonyxError, match=r"CreateKernelV2 of libthrowing.so.*std::logic_error \(no kernel today\)"):
        _session("ThrowsWhenMade")


def test_a_function_that_throws_nothing_gives_its_result() -> None:
    """Of every type, and arguments come through."""
    libc = ctypes.CDLL(None)
    address = ctypes.cast(libc.strtol, ctypes.c_void_p).value or 0
    arguments = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int)
    text = ctypes.create_string_buffer(b"-17")
    assert protect(address, ctypes.c_long, arguments, "strtol")(ctypes.addressof(text), None, 10) == -17
    labs = ctypes.cast(libc.labs, ctypes.c_void_p).value or 0
    call = GuardedCall(labs, -5, returns_status=True)
    assert ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_void_p)(call.function)(call.argument) == 5
    call.raise_thrown("labs")
