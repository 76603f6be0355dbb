"""Forks while other threads make sessions."""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import sardonyx
from sardonyx.forks import is_half_imported, new_lock, renew_in_child, without_fork

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

SOURCES = Path(sardonyx.__file__).parent
ALONE = ("cli", "interop")
"""Folders whose imports happen in one thread: in the command, or where the program asks for another package's models."""
LIMIT_SECONDS = 60

SCRIPT = """
import os, random, sys, threading, time
import numpy as np
import sardonyx as ort
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir.text import parse_model
CONTENTS = [to_bytes(parse_model(text)) for text in (
    "ir_version 10\\nopset 21\\ngraph g(x: float[n, 8]) -> (y: float[n, 8]) {\\nw: float[8, 8] = ... 1\\na = MatMul(x, w)\\ny = Tanh(a)\\n}",
    "ir_version 10\\nopset 21\\ngraph g(x: float[n, 8]) -> (y: float[n, 8]) {\\na = Softmax(x)\\ny = Erf(a)\\n}",
)]
FEED = {"x": np.ones((2, 8), np.float32)}
forks, longest_seconds = int(sys.argv[1]), float(sys.argv[2])
random.seed(sys.argv[2])
if forks > 1:
    ort.InferenceSession(CONTENTS[0]).run(None, FEED)
def make():
    while True:
        for content in CONTENTS:
            ort.InferenceSession(content).run(None, FEED)
threading.Thread(target=make, daemon=True).start()
lost = []
for number in range(forks):
    time.sleep(random.random() * longest_seconds)
    child = os.fork()
    if child == 0:
        for content in CONTENTS:
            ort.InferenceSession(content).run(None, FEED)
        os._exit(0)
    deadline = time.monotonic() + 25
    while (found := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    if found != (child, 0):
        lost.append((number, found))
        if found[0] == 0:
            os.kill(child, 9)
            os.waitpid(child, 0)
        if len(lost) > 1:
            break
print(lost)
sys.stdout.flush()
os._exit(len(lost))
"""


def _fork(forks: int, longest_seconds: float, **environment: str) -> tuple[int, str, str]:
    # newer Pythons warn of every fork beside threads, which is what this is about
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", SCRIPT, str(forks), str(longest_seconds)]
    limit = LIMIT_SECONDS + 30 * forks
    found = subprocess.run(command, capture_output=True, text=True, timeout=limit, env={**os.environ, **environment}, check=False)
    return found.returncode, found.stdout, found.stderr


def test_a_child_makes_sessions_whatever_other_threads_do() -> None:
    """A thread makes sessions, the process forks 15 times at random moments; each child makes and runs sessions, none hangs."""
    assert _fork(15, 0.1) == (0, "[]\n", "")


@pytest.mark.parametrize("longest_seconds", [0.1, 0.3, 0.5, 0.8, 1.2])
def test_a_child_makes_the_first_session_that_another_thread_was_making(longest_seconds: float) -> None:
    """The fork comes while that thread imports half of the package."""
    assert _fork(1, longest_seconds) == (0, "[]\n", "")


def test_a_child_compiles_what_another_thread_was_compiling(tmp_path: Path) -> None:
    """Both find an empty cache; the process that compiles is the parent's."""
    assert _fork(3, 0.5, SARDONYX_CACHE_DIR=str(tmp_path)) == (0, "[]\n", "")


def _in_child(action: Callable[[], bool]) -> bool:
    """Whether `action` is true in the child of a fork."""
    child = os.fork()
    if child == 0:
        os._exit(0 if action() else 1)
    deadline = time.monotonic() + LIMIT_SECONDS
    while (found := os.waitpid(child, os.WNOHANG))[0] == 0:
        if time.monotonic() > deadline:
            os.kill(child, 9)
            os.waitpid(child, 0)
            return False
        time.sleep(0.01)
    return found[1] == 0


def test_a_lock_that_another_thread_holds_is_free_in_the_child() -> None:
    """It stays held in the parent."""
    lock = new_lock()
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        assert _in_child(lambda: lock.acquire(blocking=False))
        assert not lock.acquire(blocking=False)
    finally:
        done.set()
        thread.join()


def test_a_thread_may_take_a_lock_again_that_it_holds() -> None:
    """A handler of a signal runs in the middle of what its thread does."""
    lock = new_lock()
    with lock:
        assert lock.acquire(timeout=1)
        lock.release()


def test_what_asks_to_be_renewed_is_renewed_in_the_child_only() -> None:
    """`after_fork` is called there, once for each fork."""

    class Holder:
        def __init__(self) -> None:
            self.renewed = 0

        def after_fork(self) -> None:
            self.renewed += 1

    holder = Holder()
    renew_in_child(holder)
    assert _in_child(lambda: holder.renewed == 1)
    assert holder.renewed == 0


def test_a_fork_waits_for_work_that_it_would_cut() -> None:
    """It happens after the block of the other thread."""
    entered, order = threading.Event(), list[str]()

    def work() -> None:
        with without_fork():
            entered.set()
            time.sleep(0.2)
            order.append("done")

    thread = threading.Thread(target=work)
    thread.start()
    entered.wait()
    assert _in_child(lambda: order == ["done"])
    thread.join()


def test_a_thread_may_fork_within_its_own_block() -> None:
    """It waits for itself neither in the parent nor in the child, and the block can be entered again in both."""

    def again() -> bool:
        with without_fork():
            return True

    with without_fork():
        assert _in_child(again)
    assert _in_child(again)
    assert again()


def _imports_within_functions(path: Path) -> Iterator[int]:
    """Lines of imports in functions that a fork may cut."""

    def walk(node: ast.AST, within: bool, guarded: bool) -> Iterator[int]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.Import, ast.ImportFrom)) and within and not guarded:
                yield child.lineno
            inner = within or isinstance(child, ast.FunctionDef)
            yield from walk(
                child, inner, guarded or (isinstance(child, ast.With) and "without_fork()" in ast.unparse(child.items[0]))
            )

    yield from walk(ast.parse(path.read_text(encoding="utf-8")), False, False)


def _sources() -> list[Path]:
    """The modules of the package that run in the program's process, in several threads."""
    found = [path for path in SOURCES.rglob("*.py") if path.relative_to(SOURCES).parts[0] not in ALONE]
    return [path for path in found if path != SOURCES / "codegen" / "llvm.py"]  # a program of its own; its callers load llvmlite


def test_no_import_can_be_cut_by_a_fork() -> None:
    """Imports in functions lie in a `without_fork()` block."""
    assert [f"{path}:{line}" for path in _sources() for line in _imports_within_functions(path)] == []


def test_every_lock_is_renewed_in_the_child() -> None:
    """Locks come from `new_lock`, except those of one run, which the child does not have."""
    own = {SOURCES / "forks.py", SOURCES / "runtime" / "executors" / "dataflow.py"}
    texts = {path: path.read_text(encoding="utf-8") for path in _sources() if path not in own}
    assert [
        path for path, text in texts.items() if "threading.Lock(" in text or "RLock(" in text or "cached_property" in text
    ] == []


def test_a_module_is_half_imported_while_its_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither before nor after, nor where there is none."""
    (tmp_path / "half.py").write_text("from sardonyx.forks import is_half_imported\nwithin = is_half_imported('half')\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert not is_half_imported("half")
    assert importlib.import_module("half").within
    assert not is_half_imported("half")


HOOKED_MEANWHILE = """
import importlib.abc, importlib.util, os, sys, threading, time

import sardonyx.forks

class Slow(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name in ("logging", "concurrent.futures.thread"):
            started.set()
            time.sleep(0.3)

def work():
    with sardonyx.forks.without_fork():
        import concurrent.futures.thread

for name in ("concurrent.futures.thread", "concurrent.futures._base", "concurrent.futures", "concurrent", "logging"):
    assert name not in sys.modules, name
started = threading.Event()
sys.meta_path.insert(0, Slow())
thread = threading.Thread(target=work)
thread.start()
started.wait()
child = os.fork()
import concurrent.futures.thread, logging
logging.getLogger("x").debug("y")
with concurrent.futures.ThreadPoolExecutor(1) as pool:
    assert pool.submit(int).result() == 0
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
again = os.fork()
if again == 0:
    os._exit(0)
assert os.waitpid(again, 0)[1] == 0
"""


def test_modules_that_hook_into_forks_may_be_imported_while_one_waits() -> None:
    """Parent and child have them whole, and their locks free."""
    done = subprocess.run([sys.executable, "-c", HOOKED_MEANWHILE], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
