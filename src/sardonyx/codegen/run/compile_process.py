"""A process that runs LLVM, so that this one need not load it.

    texts ─► pipe ─► llvm.py as a program: several threads ─► pipe ─► objects

LLVM takes about 80 MiB of memory, and compiles there while Python writes the next kernel here. The process is started when a
kernel is missing in the object cache, serves all sessions, and ends when it has had nothing to do for a while, or when this
process ends. Where none can be started (an embedded interpreter, a sandbox), or where it falls silent (stopped, starved), LLVM is
loaded here instead, and is used here from then on: the memory is spent.
"""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import marshal
import os
import re
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import IO, Any

from sardonyx import config
from sardonyx.cancellation import check_cancelled, holding, raise_interrupt
from sardonyx.codegen import llvm
from sardonyx.codegen.run.processors import available_processors
from sardonyx.codegen.target import Target
from sardonyx.errors import Fail
from sardonyx.forks import new_lock, renew_in_child, without_fork
from sardonyx.trace import event

__all__ = ["CompileProcess", "compile_texts", "is_given_up", "reap"]

_TRIES = 2
"""How often a process is started for one batch: the one that there was may just have ended for want of work."""
_SILENCE_SECONDS = 5.0
"""How long the process may say nothing while there is work; it says something every `llvm.BEAT_SECONDS`."""
_LONGEST_SECONDS = 8.0
"""How long it may take to the next object, though the process says that it is alive: LLVM can hang where memory is short."""
_PATIENCE_SECONDS = 0.03
"""How long to wait without asking whether the load was ended."""
_AMPLE_BYTES = 4 << 30
"""Address space in which several threads can compile."""
_LONGEST_REPLY_BYTES = 1 << 30
"""More than any object; what says more does not come from `llvm.serve`."""


class _SilentError(TimeoutError):
    """The process says nothing."""


def compile_texts(texts: Iterable[str], target: Target, level: int) -> list[bytes]:
    """Compile modules side by side, in the other process where possible.

    Args:
        texts: LLVM IR; each is compiled while the next is written.
        target: what to compile for.
        level: how much to optimise, as for `llvm.compile_text`.

    Raises:
        Fail: LLVM rejects a text; the message quotes it.
    """
    rest, written = iter(texts), list[str]()
    is_here = config.compiles_inline() or _PROCESS.is_used_by_caller
    for _ in range(0 if is_here else _TRIES):
        if _PROCESS.is_given_up:
            break
        try:
            return _PROCESS.compile(_kept(rest, written), target, level)
        except TimeoutError as error:
            _raise_if_ended(error)
            event("compile_process.silent", detail=str(error))
            break
        except (OSError, EOFError) as error:
            _raise_if_ended(error)
            event("compile_process.lost", detail=str(error) or "it ended")
    if not is_here:
        _PROCESS.give_up()
    return _compile_here([*written, *rest], target, level)


def _raise_if_ended(error: BaseException) -> None:
    """Raise where `error` is no failure of the process, but ends the load."""
    check_cancelled()
    raise_interrupt(error)


def reap() -> None:
    """Take leave of the process, if it has ended for want of work."""
    _PROCESS.reap()


def is_given_up() -> bool:
    """Return whether LLVM runs in this process from now on, since the other could not be started or fell silent."""
    return _PROCESS.is_given_up


def _kept(rest: Iterator[str], written: list[str]) -> Iterator[str]:
    """Yield all texts, those first that were written before; the list grows, so that a second try has them."""
    yield from list(written)
    for text in rest:
        written.append(text)
        yield text


def _compile_here(texts: list[str], target: Target, level: int) -> list[bytes]:
    def compile_one(text: str) -> bytes:
        check_cancelled()
        try:
            machine_code = llvm.compile_text(text, target.triple, target.features, level)
        except ValueError as error:
            raise Fail(str(error)) from error
        event("codegen.object", bytes=len(machine_code))
        return machine_code

    try:
        with without_fork():
            llvm.binding()
        if _threads() == 1:
            return [compile_one(text) for text in texts]
        pool = ThreadPoolExecutor(_threads())
        try:
            try:
                work = [pool.submit(contextvars.copy_context().run, compile_one, text) for text in texts]
            except RuntimeError as error:
                raise_interrupt(error)
                return [compile_one(text) for text in texts]  # no thread can be started
            return [_result(future) for future in work]
        finally:  # a thread whose start was interrupted is not known to the pool: without this it would wait for ever
            pool.shutdown(wait=False, cancel_futures=True)
    except (ImportError, MemoryError, OSError) as error:
        raise Fail(
            f"kernels cannot be compiled, neither by a process of their own nor in this one: {str(error) or 'no memory'}; "
            "allow more memory (ulimit -v), or prepare the kernels elsewhere: make a session there with the same SARDONYX_CACHE_DIR"
        ) from error


def _result(future: Future[bytes]) -> bytes:
    """Return what a thread compiles; raises as `check_cancelled` while it does."""
    while not wait([future], _PATIENCE_SECONDS).done:
        check_cancelled()
    return future.result()


def _threads() -> int:
    """Return how many threads compile: one where address space is short, of which each reserves 70 MiB; LLVM aborts without any."""
    with contextlib.suppress(ImportError):
        with without_fork():
            import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if 0 <= limit < _AMPLE_BYTES:
            return 1
    return available_processors()


class CompileProcess:
    """The process and its pipes. May be used from many threads; one batch of texts is compiled at a time."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._lock = new_lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._user: int | None = None
        self.is_given_up = False

    @property
    def is_used_by_caller(self) -> bool:
        """Whether this thread waits for the process already, and a handler of a signal or a finalizer came in between."""
        return self._user == threading.get_ident()

    def compile(self, texts: Iterable[str], target: Target, level: int) -> list[bytes]:
        """Compile modules.

        Raises:
            Fail: LLVM rejects a text; the message quotes it.
            TimeoutError: it falls silent, though there is work.
            OSError: no process can be started, or it broke.
            EOFError: it ended.
        """
        with holding(self._lock):
            if self.is_given_up:  # while this thread waited for the lock
                raise TimeoutError("the compiler process was given up")
            try:
                self._user = threading.get_ident()
                requests, replies = self._pipes()
                count = 0
                for text in texts:
                    _send(requests, (count, text, target.triple, target.features, level))
                    count += 1
                answers = dict(_told(_answer(replies)) for _ in range(count))
            except BaseException as error:
                self.is_given_up = isinstance(error, _SilentError)
                self._end()
                raise
            finally:
                self._user = None
        for _, problem in answers.values():
            if problem:
                raise Fail(problem)
        return [answers[number][0] for number in range(count)]

    def give_up(self) -> None:
        """End the process for good."""
        self.is_given_up = True
        self.close()

    def reap(self) -> None:
        """Take leave of a process that ended for want of work, so that it does not stay as a zombie."""
        process = self._process
        if process is not None:
            process.poll()

    def close(self) -> None:
        """End the process, if there is one."""
        with self._lock:
            self._end()

    def after_fork(self) -> None:
        """Let go of the process, in the child of a fork: it is the parent's."""
        process, self._process, self._user = self._process, None, None
        if process is not None:
            process.returncode = 0
            _close_pipes(process)

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        if self._process is None or self._process.poll() is not None:
            self._end()
            self._process = _start()
        if self._process.stdin is None or self._process.stdout is None:
            raise OSError("the process has no pipes")
        return self._process.stdin, self._process.stdout

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        _close_pipes(process)
        process.kill()  # it keeps nothing, and a stopped process would not hear a request to end
        process.wait()


def _start() -> subprocess.Popen[bytes]:
    program = Path(llvm.__file__)
    if not re.match(r"(python|pypy)", Path(sys.executable or "").name, re.IGNORECASE) or not program.is_file():
        raise OSError(f"{sys.executable or 'this interpreter'!r} cannot run {program.name} as a program")
    with without_fork():  # whose child would keep open what this one waits to be closed
        process = subprocess.Popen(
            [sys.executable, *_flags(), str(program)],
            bufsize=0,  # a buffer has a lock, which the child of a fork may find taken
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    if process.stdin is not None:
        if _HAS_POLL:
            os.set_blocking(process.stdin.fileno(), False)
        _send(process.stdin, (_search_path(), _threads()))
    return process


_HAS_POLL = hasattr(select, "poll")  # Windows has none for pipes: there the process is waited for without a limit


def _flags() -> list[str]:
    """Return the options of the interpreter: as isolated as this one, and without `site`, whose customizations may print or fail.

    The path is sent, so `site` has nothing to find.
    """
    isolation = ["-I"] if sys.flags.isolated else ["-P", "-E"] if sys.flags.ignore_environment else ["-P"]
    return [*isolation, "-S"]


def _search_path() -> list[str]:
    """Return the folders of `sys.path`, in which some programs put `pathlib.Path` and things that no import can use."""
    entries: list[object] = list(sys.path)
    return [str(entry) for entry in entries if isinstance(entry, str | Path)]


def _wait_for(pipe: IO[bytes], event_mask: int) -> None:
    """Wait until a pipe can be read or written.

    Raises:
        TimeoutError: that takes too long.
    """
    poll, end = select.poll(), time.monotonic() + _SILENCE_SECONDS
    poll.register(pipe, event_mask)
    while not poll.poll(_PATIENCE_SECONDS * 1000):
        check_cancelled()
        if time.monotonic() < end:
            continue
        raise _SilentError(f"the compiler process has said nothing for {_SILENCE_SECONDS:g} s")


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def _send(requests: IO[bytes], request: tuple[Any, ...]) -> None:  # what marshal writes
    rest = memoryview(marshal.dumps(request))
    while rest:
        if _HAS_POLL:
            _wait_for(requests, select.POLLOUT)
        rest = rest[requests.write(rest) or 0 :]


def _answer(replies: IO[bytes]) -> tuple[int, tuple[bytes, str]]:
    length, deadline = 0, time.monotonic() + _LONGEST_SECONDS
    while not length:  # 0 only says that the process is alive
        if time.monotonic() > deadline:
            raise _SilentError(f"the compiler process has made nothing for {_LONGEST_SECONDS:g} s")
        length = int.from_bytes(_received(replies, llvm.LENGTH_BYTES), "little")
    if length > _LONGEST_REPLY_BYTES:
        raise OSError("the compiler process does not say what it should")
    try:
        number, machine_code, problem = marshal.loads(_received(replies, length))
    except (TypeError, ValueError) as error:
        raise OSError("the compiler process does not say what it should") from error
    return number, (machine_code, problem)


def _told(answer: tuple[int, tuple[bytes, str]]) -> tuple[int, tuple[bytes, str]]:
    event("codegen.object", number=answer[0])
    return answer


def _received(replies: IO[bytes], size_bytes: int) -> bytes:
    content = b""
    while len(content) < size_bytes:
        if _HAS_POLL:
            _wait_for(replies, select.POLLIN)
        piece = replies.read(size_bytes - len(content))
        if not piece:
            raise EOFError("the compiler process ended")
        content += piece
    return content


_PROCESS = CompileProcess()
atexit.register(_PROCESS.close)
renew_in_child(_PROCESS)
