"""LLVM in a process of its own."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from sardonyx.codegen import llvm
from sardonyx.codegen.run import compile_process
from sardonyx.codegen.run.compile_process import CompileProcess, compile_texts
from sardonyx.codegen.target import host_target
from sardonyx.errors import Fail


def _text(number: int) -> str:
    return f"define i64 @f{number}() {{ ret i64 {number} }}"


def _here(text: str) -> bytes:
    target = host_target()
    return llvm.compile_text(text, target.triple, target.features, 1)


def test_objects_come_back_in_the_order_of_the_texts() -> None:
    """Whatever the order in which the process is done with them."""
    texts = [_text(number) for number in range(20)]
    assert compile_texts(texts, host_target(), 1) == [_here(text) for text in texts]


def test_more_objects_than_a_pipe_holds_come_back() -> None:
    """Texts are all sent before the first object is read, and nobody waits for the other."""
    numbers = "\n".join(f"%v{i} = {'mul' if i % 2 else 'xor'} i64 %v{i - 1}, {2 * i + 3}" for i in range(1, 400))
    texts = [f"define i64 @f{number}(i64 %v0) {{\n{numbers}\nret i64 %v399 }}" for number in range(200)]
    started = time.monotonic()
    objects = compile_texts(texts, host_target(), 0)
    assert sum(map(len, objects)) > 200_000
    assert time.monotonic() - started < llvm.IDLE_SECONDS


def test_many_threads_share_the_process() -> None:
    """Batches do not mix."""
    found: dict[int, list[bytes]] = {}

    def work(number: int) -> None:
        found[number] = compile_texts([_text(number), _text(number + 10)], host_target(), 1)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: [_here(_text(number)), _here(_text(number + 10))] for number in range(6)}


def test_a_text_that_llvm_rejects_fails_its_batch_only() -> None:
    """The next batch is compiled as if nothing had been."""
    with pytest.raises(Fail, match="not valid LLVM IR"):
        compile_texts([_text(1), "define nonsense"], host_target(), 1)
    assert compile_texts([_text(1)], host_target(), 1) == [_here(_text(1))]


def test_a_process_that_was_killed_is_replaced() -> None:
    """No text is lost, though the texts are written only once."""
    process = CompileProcess()
    process.compile([_text(1)], host_target(), 1)
    child = process._process
    assert child is not None
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert process.compile([_text(2)], host_target(), 1) == [_here(_text(2))]
    process.close()


def test_without_a_process_llvm_is_loaded_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter that cannot be started as a program compiles by itself."""
    monkeypatch.setattr(sys, "executable", "")
    monkeypatch.setattr(compile_process, "_PROCESS", CompileProcess())
    assert compile_texts(map(_text, range(3)), host_target(), 1) == [_here(_text(number)) for number in range(3)]


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """SARDONYX_COMPILE=inline starts nothing."""
    process = CompileProcess()
    monkeypatch.setattr(compile_process, "_PROCESS", process)
    monkeypatch.setenv("SARDONYX_COMPILE", "inline")
    assert compile_texts([_text(4)], host_target(), 1) == [_here(_text(4))]
    assert process._process is None


def test_a_session_leaves_llvm_to_the_process() -> None:
    """Neither a cold nor a warm session loads LLVM."""
    code = (
        "import sys, tempfile, os; os.environ['SARDONYX_CACHE_DIR'] = tempfile.mkdtemp()\n"
        "from sardonyx.codegen.run.driver import Driver; from sardonyx.codegen.target import host_target\n"
        "Driver(host_target())\n"
        "assert 'llvmlite.binding' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_a_process_of_its_own() -> None:
    """The parent's pipes are left alone."""
    compile_texts([_text(1)], host_target(), 1)
    code = (
        "import os, sys\n"
        "from sardonyx.codegen.run.compile_process import compile_texts; from sardonyx.codegen.target import host_target\n"
        "one = compile_texts(['define i64 @f() { ret i64 1 }'], host_target(), 1)\n"
        "if (pid := os.fork()) == 0:\n"
        "    sys.exit(compile_texts(['define i64 @f() { ret i64 1 }'], host_target(), 1) != one)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0\n"
        "assert compile_texts(['define i64 @f() { ret i64 1 }'], host_target(), 1) == one"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, capture_output=True)
    assert not done.stderr


def test_an_interrupt_leaves_nothing_behind() -> None:
    """What was under way is not taken for the answer to what comes next."""

    def texts() -> Iterator[str]:
        yield _text(1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compile_texts(texts(), host_target(), 1)
    assert compile_texts([_text(2)], host_target(), 1) == [_here(_text(2))]
