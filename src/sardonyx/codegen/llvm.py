"""The border to llvmlite: the text of a module becomes an ELF object, in this process or, run as a program, in one of its own.

    machine_code = compile_text(text, triple, features, level)

llvmlite takes one lock around every call into LLVM. The two long calls (passes, code generation) are made past it, each on a
context and a target machine of its own, which LLVM allows: so modules are compiled side by side.

The file imports nothing of sardonyx, and llvmlite on first use only: as a program (see `compile_process`) it is LLVM and little
else, and `import sardonyx` stays fast.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import marshal
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, TypeAlias

__all__ = ["binding", "compile_text", "know_version", "link", "make_machine", "serve", "version"]

LlvmObject: TypeAlias = Any
"""An object of llvmlite, or its module: the package has no type information."""

LENGTH_BYTES = 8
"""The length before each reply of the program."""
IDLE_SECONDS = 60.0
"""How long the program waits for work before it ends; no kernel takes so long."""
BEAT_SECONDS = 1.0
"""How often the program says that it is alive, while it compiles."""


@functools.cache
def binding() -> LlvmObject:
    """Return the module `llvmlite.binding`, with the host's code generator initialised."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def version() -> str:
    """Return the version of llvmlite and the size of its library in bytes, found without loading it.

    Objects are valid for no other.
    """
    if not _VERSION:
        _VERSION.append(_found_version())
    return _VERSION[0]


def know_version(text: str) -> None:
    """Take what `version` returned in a process with the same packages installed."""
    if not _VERSION:
        _VERSION.append(text)


_VERSION: list[str] = []


def _found_version() -> str:
    spec = find_spec("llvmlite")
    folders = [Path(folder) / "binding" for folder in (spec.submodule_search_locations or ())] if spec is not None else []
    sizes = [str(path.stat().st_size) for folder in folders for path in sorted(folder.glob("*llvmlite*.*")) if path.suffix != ".py"]
    return "/".join([_llvmlite_version(), *sizes])


def _llvmlite_version() -> str:
    """Return the version from what was installed, or, in a frozen application that has no such records, from the package."""
    from importlib.metadata import distributions  # which takes as long as all else here

    entries: list[object] = list(sys.path)  # programs put other things there, which imports pass over
    found = next(iter(distributions(name="llvmlite", path=[entry for entry in entries if isinstance(entry, str)])), None)
    if found is not None:
        return found.version
    import llvmlite

    return str(llvmlite.__version__)


def compile_text(text: str, triple: str, features: str, level: int) -> bytes:
    """Compile the text of one module to an ELF object; safe in many threads at once.

    Args:
        text: LLVM IR without data layout.
        triple: architecture and system.
        features: LLVM's feature string.
        level: 0 does what kernels need to be correct and short, 1 tidies too, 2 is LLVM's own pipeline.

    Raises:
        ValueError: LLVM does not accept the text, or generates no code for it.
    """
    llvm, machine = binding(), make_machine(triple, features)
    try:
        module = llvm.parse_assembly(f'target datalayout = "{machine.target_data}"\n{text}', llvm.create_context())
    except RuntimeError as error:
        raise _invalid(error) from error
    with module:  # closed here: where frames of an error lie in a cycle, the collector might free the context before its module
        try:
            module.verify()
        except RuntimeError as error:
            raise _invalid(error) from error
        _optimize(module, machine, level)
        return _emit(module, machine)


def _invalid(error: RuntimeError) -> ValueError:
    return ValueError(f"a kernel is not valid LLVM IR, which is an error of its generator: {error}")


def make_machine(triple: str, features: str) -> LlvmObject:  # a TargetMachine
    """Return LLVM's code generator for position-independent code."""
    description = binding().Target.from_triple(triple)
    return description.create_target_machine(features=features, opt=2, reloc="pic", codemodel="small", jit=True)


def link(machine_code: bytes, symbols: Sequence[str], triple: str, features: str) -> LlvmObject:  # a ResourceTracker
    """Put an object into memory with LLVM's linker; the result maps symbols to addresses, and the code lives as long as it.

    Raises:
        ValueError: LLVM cannot link the object.
    """
    builder = binding().JITLibraryBuilder().add_object_img(machine_code).add_current_process()
    for symbol in symbols:
        builder.export_symbol(symbol)
    try:
        return builder.link(_linker(triple, features), f"library{next(_NUMBERS)}")
    except RuntimeError as error:
        raise ValueError(f"LLVM cannot link the object of {', '.join(symbols)}: {error}") from error


_NUMBERS = itertools.count()


@functools.cache
def _linker(triple: str, features: str) -> LlvmObject:  # an LLJIT
    return binding().create_lljit_compiler(make_machine(triple, features), use_jit_link="linux" in triple, suppress_errors=True)


def _optimize(module: LlvmObject, machine: LlvmObject, level: int) -> None:  # ModuleRef and TargetMachine
    llvm = binding()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = options.loop_interleaving = False
    builder = llvm.create_pass_builder(machine, options)
    passes = builder.getModulePassManager() if level >= 2 else llvm.create_new_module_pass_manager()
    if level < 2:
        passes.add_always_inliner_pass()
        passes.add_sroa_pass()
    if level == 1:
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
        passes.add_dead_code_elimination_pass()
    _unlocked("LLVMPY_RunNewModulePassManager")(passes, module, builder)


def _emit(module: LlvmObject, machine: LlvmObject) -> bytes:  # ModuleRef and TargetMachine
    from llvmlite.binding import ffi

    with ffi.OutputString() as error:
        buffer = _unlocked("LLVMPY_TargetMachineEmitToMemory")(machine, module, 1, error)
        if not buffer:
            raise ValueError(f"LLVM generates no code: {error}")
    try:
        return ctypes.string_at(ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


@functools.cache
def _unlocked(name: str) -> Callable[..., Any]:
    """Return a function of llvmlite's library, without the lock around it and, as always in ctypes, without the GIL."""
    from llvmlite.binding import ffi
    from llvmlite.utils import get_library_name

    locked = getattr(ffi.lib, name)
    library = ctypes.CDLL(str(Path(ffi.__file__).with_name(get_library_name())))
    function = library[name]
    function.argtypes, function.restype = locked.argtypes, locked.restype
    return function


def serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    """Compile what comes in until the other side closes or falls silent.

    The first request is (module search path, threads), each later one (number, text, triple, features, level). The reply to
    it is (number, object, ""), or (number, b"", why not), behind its length in 8 bytes; replies come in any order. While a text is
    compiled, a length of 0 says every BEAT_SECONDS that it goes on. What else happens, such as a lack of memory, ends the process.
    """
    path, threads = marshal.load(requests)
    sys.path[:] = path
    lock, counting = threading.Lock(), threading.Lock()
    compiling = [0]  # how many texts LLVM is busy with: where it cannot even begin, nothing must say that it goes on

    def answer(number: int, *arguments: Any) -> None:
        with counting:
            compiling[0] += 1
        try:
            reply = (number, compile_text(*arguments), "")
        except (ValueError, RuntimeError) as error:
            reply = (number, b"", str(error))
        except BaseException:  # noqa: BLE001 - the other side waits for the reply: it hears that there will be none
            os._exit(1)
        patience.renew()
        content = marshal.dumps(reply)
        with counting:
            compiling[0] -= 1
        with lock:
            replies.write(len(content).to_bytes(LENGTH_BYTES, "little") + content)
            replies.flush()

    def beat() -> None:
        while True:
            time.sleep(BEAT_SECONDS)
            with lock, contextlib.suppress(OSError):
                if compiling[0]:
                    replies.write(bytes(LENGTH_BYTES))
                    replies.flush()

    patience = _Patience()
    threading.Thread(target=beat, daemon=True).start()
    binding()
    from concurrent.futures import ThreadPoolExecutor  # for the program alone

    with ThreadPoolExecutor(threads) as pool, contextlib.suppress(EOFError):
        while True:
            request = marshal.load(requests)
            patience.renew()  # never waits for those who write: the other side may read only when it has sent all
            pool.submit(answer, *request)


class _Patience:
    """Ends the process when it has not been renewed for a while."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self.renew()

    def renew(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = threading.Timer(IDLE_SECONDS, os._exit, (0,))
            self._timer.daemon = True
            self._timer.start()


if __name__ == "__main__":
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # where nothing that is printed gets between the replies
    serve(sys.stdin.buffer, replies)
