"""LLVM in a process of its own."""

import marshal
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cancelling import after, ended_by, handler, interrupt, interrupted_starts

from sardonyx.cancellation import Flag
from sardonyx.codegen import llvm
from sardonyx.codegen.run import compile_process
from sardonyx.codegen.run.compile_process import CompileProcess, compile_texts
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import host_target
from sardonyx.errors import Fail, RunTerminated


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


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Iterator[CompileProcess]:
    """A compiler process of the test's own, in the place of the one that all share."""
    found = CompileProcess()
    monkeypatch.setattr(compile_process, "_PROCESS", found)
    yield found
    found.close()


def _child(process: CompileProcess) -> "subprocess.Popen[bytes]":
    assert process._process is not None
    return process._process


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs signals that stop a process")
def test_a_process_that_is_stopped_is_not_waited_for(process: CompileProcess) -> None:
    """After some seconds of silence LLVM is loaded here, the process is gone, and later batches do not wait at all."""
    compile_texts([_text(1)], host_target(), 1)
    child = _child(process)
    os.kill(child.pid, signal.SIGSTOP)
    started = time.monotonic()
    assert compile_texts(map(_text, range(3)), host_target(), 1) == [_here(_text(number)) for number in range(3)]
    assert time.monotonic() - started < 10
    assert child.returncode is not None
    assert compile_texts([_text(4)], host_target(), 1) == [_here(_text(4))]
    assert process._process is None


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs signals that stop a process")
def test_a_stopped_process_that_reads_no_more_is_not_written_to_for_ever(process: CompileProcess) -> None:
    """The pipe to it is full."""
    compile_texts([_text(1)], host_target(), 1)
    os.kill(_child(process).pid, signal.SIGSTOP)
    text = _text(1) + "\n;" + "x" * (1 << 20)
    assert compile_texts([text], host_target(), 1) == [_here(_text(1))]


def test_a_long_compilation_is_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that says that it is alive is waited for: a kernel may take longer than a silence may."""
    monkeypatch.setattr(compile_process, "_SILENCE_SECONDS", 0.5)
    reader, writer = os.pipe()

    def beat() -> None:
        for _ in range(8):
            os.write(writer, bytes(llvm.LENGTH_BYTES))
            time.sleep(0.1)
        content = marshal.dumps((7, b"object", ""))
        os.write(writer, len(content).to_bytes(llvm.LENGTH_BYTES, "little") + content)

    thread = threading.Thread(target=beat)
    thread.start()
    with open(reader, "rb", buffering=0) as replies, open(writer, "wb"):
        assert compile_process._answer(replies) == (7, (b"object", ""))
        thread.join()
        with pytest.raises(TimeoutError, match="said nothing"):
            compile_process._answer(replies)


def test_a_process_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """That it is alive does not help, if no object comes."""
    monkeypatch.setattr(compile_process, "_LONGEST_SECONDS", 0.0)
    (tmp_path / "replies").write_bytes(bytes(100 * llvm.LENGTH_BYTES))
    with (tmp_path / "replies").open("rb", buffering=0) as replies, pytest.raises(TimeoutError, match="made nothing"):
        compile_process._answer(replies)


def test_paths_need_not_be_strings(process: CompileProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`sys.path` of some programs holds `pathlib.Path`, and things that no import can use."""
    monkeypatch.setattr(sys, "path", [*sys.path, tmp_path, 7])
    assert process.compile([_text(1)], host_target(), 1) == [_here(_text(1))]


def test_customizations_that_print_do_not_disturb(process: CompileProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What a `sitecustomize` writes is not taken for a reply."""
    (tmp_path / "sitecustomize.py").write_text("import sys; print('welcome'); sys.stdout.flush()")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert process.compile([_text(1)], host_target(), 1) == [_here(_text(1))]


def test_a_program_that_answers_nonsense_is_done_without(
    process: CompileProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whatever comes over the pipe, the kernels are compiled, here."""
    interpreter = tmp_path / "python"
    interpreter.write_text("#!/bin/sh\nprintf '\\005\\000\\000\\000\\000\\000\\000\\000hello'; cat > /dev/null\n")
    interpreter.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(interpreter))
    assert compile_texts([_text(1)], host_target(), 1) == [_here(_text(1))]


def test_the_process_is_as_isolated_as_the_program() -> None:
    """`python -I` starts it with -I."""
    code = (
        "import sys; sys.path[:0] = sys.argv[1:]; from sardonyx.codegen.run import compile_process; print(compile_process._flags())"
    )
    source = str(Path(llvm.__file__).parents[2])
    for options, flags in (([], "['-P', '-S']"), (["-E"], "['-P', '-E', '-S']"), (["-I"], "['-I', '-S']")):
        done = subprocess.run([sys.executable, *options, "-c", code, source], check=True, capture_output=True, text=True)
        assert done.stdout.strip() == flags


def test_a_process_that_ended_by_itself_leaves_no_zombie(process: CompileProcess) -> None:
    """It is taken leave of when the next kernels are wanted, be they cached."""
    compile_texts([_text(1)], host_target(), 1)
    child = _child(process)
    os.kill(child.pid, signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    Engine(host_target()).add()
    assert child.returncode is not None


def test_kernels_are_compiled_where_no_thread_may_start(process: CompileProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a process nor a thread: one after the other, here."""

    def refuse(*arguments: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(sys, "executable", "")
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert compile_texts(map(_text, range(3)), host_target(), 1) == [_here(_text(number)) for number in range(3)]


def test_without_memory_for_llvm_the_error_names_the_remedy(process: CompileProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM can be loaded nowhere."""

    def refuse() -> None:
        raise OSError("failed to map segment from shared object")

    monkeypatch.setattr(sys, "executable", "")
    monkeypatch.setattr(llvm, "binding", refuse)
    with pytest.raises(Fail, match="failed to map segment .*; allow more memory"):
        compile_texts([_text(1)], host_target(), 1)


def test_one_thread_compiles_where_address_space_is_short() -> None:
    """Each thread reserves some, and LLVM aborts without any."""
    pytest.importorskip("resource")
    code = (
        "import resource; from sardonyx.codegen.run import compile_process\n"
        "compile_process.available_processors = lambda: 5\n"
        "resource.setrlimit(resource.RLIMIT_AS, (5 << 30, resource.RLIM_INFINITY)); assert compile_process._threads() == 5\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, resource.RLIM_INFINITY)); assert compile_process._threads() == 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def _slow_texts() -> Iterator[str]:
    """Texts without an end: the writer of kernels takes its time."""
    number = 0
    while True:
        time.sleep(0.01)
        number += 1
        yield _text(number)


def test_a_load_that_is_ended_waits_for_no_kernel() -> None:
    """The process ends with it, and the next batch has a new one; it is not given up."""
    process, flag = CompileProcess(), Flag()
    numbers = "\n".join(f"%v{i} = {'mul' if i % 2 else 'xor'} i64 %v{i - 1}, {2 * i + 3}" for i in range(1, 20_000))
    long = f"define i64 @f(i64 %v0) {{\n{numbers}\nret i64 %v19999 }}"
    with ended_by(flag), after(0.5, lambda: flag.set(True)), pytest.raises(RunTerminated):
        process.compile([long] * 500, host_target(), 2)
    assert not process.is_given_up
    assert process.compile([_text(1)], host_target(), 1) == [_here(_text(1))]
    process.close()


def test_an_exception_of_a_handler_is_no_failure_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Handlers of alarms raise TimeoutError, as the process does that falls silent; it comes out, and kernels are not compiled here."""
    process = CompileProcess()
    monkeypatch.setattr(compile_process, "_PROCESS", process)

    def stop(number: int, frame: object) -> None:
        raise TimeoutError("of the user")

    with handler(stop), after(0.5, interrupt), pytest.raises(TimeoutError, match="of the user"):
        compile_texts(_slow_texts(), host_target(), 1)
    assert not process.is_given_up
    process.close()


@pytest.mark.parametrize("threads", [1, 2])
def test_kernels_that_are_compiled_here_can_be_waited_for_no_longer(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    """What has not begun is not compiled any more."""
    monkeypatch.setenv("SARDONYX_COMPILE", "inline")
    monkeypatch.setattr(compile_process, "_threads", lambda: threads)
    flag = Flag()
    texts = [_text(number) for number in range(100_000)]
    with ended_by(flag), after(0.5, lambda: flag.set(True)), pytest.raises(RunTerminated):
        compile_texts(texts, host_target(), 1)


def test_an_interrupt_while_a_thread_starts_leaves_none_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread runs, though what started it was interrupted; it would keep the process from ending."""
    monkeypatch.setenv("SARDONYX_COMPILE", "inline")
    monkeypatch.setattr(compile_process, "_threads", lambda: 2)
    with interrupted_starts() as started, pytest.raises(KeyboardInterrupt):
        compile_texts([_text(3)], host_target(), 1)
    started[0].join(20)
    assert not started[0].is_alive()
