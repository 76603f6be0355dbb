"""From the text of modules to addresses of machine code.

    Module ─► text ─► object cache ─┬─ known ────────────────► object ─► linked into memory ─► address of each symbol
                                    └─ new ─► passes ─► object ─┘

llvmlite takes one lock around every call into LLVM. The two long calls (passes, code generation) are made past it, each on a
context and a target machine of its own, which LLVM allows: so modules are compiled side by side.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sardonyx.codegen.llvm import binding, version
from sardonyx.codegen.module import Module
from sardonyx.codegen.object_cache import ObjectCache
from sardonyx.codegen.processors import available_processors
from sardonyx.codegen.target import Target
from sardonyx.errors import Fail

__all__ = ["Engine", "compile_object", "object_key"]

LEVELS = (0, 1, 2)
"""How much is optimised: 0 what kernels need to be correct and short, 1 (the default) tidied too, 2 LLVM's own pipeline."""


class Engine:
    """Machine code of some modules. It is freed when the engine dies: whoever calls an address must keep its engine.

    One engine may be used from many threads.
    """

    def __init__(self, target: Target, *, cache: ObjectCache | None = None, level: int = 1, threads: int | None = None) -> None:
        """Make an engine without code.

        Args:
            target: what to compile for.
            cache: where compiled objects are looked up and kept; None compiles always.
            level: how much to optimise, one of LEVELS.
            threads: how many modules to compile at a time; None takes as many as the process has processors.
        """
        self.target = target
        self._cache = cache
        self._level = level
        self._threads = threads or available_processors()
        self._lock = threading.Lock()
        self._addresses: dict[str, int] = {}
        self._libraries: list[Any] = []  # llvmlite's resource trackers: while they live, so does the code
        self._linker = binding().create_lljit_compiler(_machine(target), use_jit_link=_has_jit_link(target), suppress_errors=True)

    def add(self, *modules: Module) -> None:
        """Compile modules, or take them from the cache, and make their symbols known.

        Raises:
            Fail: LLVM rejects a text or an object, or a symbol is known already; the engine is as before.
        """
        texts = [str(module) for module in modules]
        objects = self._side_by_side(self._object, texts)
        with self._lock:
            for module, machine_code in zip(modules, objects, strict=True):
                self._link(module.exports, machine_code)

    def add_kernels(self, writers: Mapping[str, Callable[[Module, str], None]], edition: str) -> None:
        """Compile kernels, each by itself, or take them from the cache by name: the text of a known one is not even written.

        Args:
            writers: symbol -> what writes the kernel of that symbol into a module.
            edition: stands for all that a symbol does not say: whatever else the texts depend on, such as the writers' sources.

        Raises:
            Fail: as `add`.
        """
        keys = {symbol: object_key(f"{edition}/{symbol}", self.target, self._level) for symbol in writers}
        found = {symbol: None if self._cache is None else self._cache.load(key) for symbol, key in keys.items()}
        missing = [symbol for symbol, machine_code in found.items() if machine_code is None]
        texts = []
        for symbol in missing:
            module = Module(self.target)
            writers[symbol](module, symbol)
            texts.append(str(module))
        made = self._side_by_side(lambda text: compile_object(text, self.target, self._level), texts)
        for symbol, machine_code in zip(missing, made, strict=True):
            found[symbol] = machine_code
            if self._cache is not None:
                self._cache.store(keys[symbol], machine_code)
        with self._lock:
            for symbol, code in found.items():
                self._link([symbol], code or b"")

    def address(self, symbol: str) -> int:
        """The address of an exported function; raises KeyError for one that no module of this engine exports."""
        return self._addresses[symbol]

    @property
    def symbols(self) -> Mapping[str, int]:
        """The address of every exported function."""
        return self._addresses

    def _side_by_side(self, compile_one: Callable[[str], bytes], texts: Sequence[str]) -> list[bytes]:
        workers = min(self._threads, len(texts))
        if workers <= 1:
            return [compile_one(text) for text in texts]
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(compile_one, texts))

    def _object(self, text: str) -> bytes:
        if self._cache is None:
            return compile_object(text, self.target, self._level)
        key = object_key(text, self.target, self._level)
        found = self._cache.load(key)
        if found is not None:
            return found
        made = compile_object(text, self.target, self._level)
        self._cache.store(key, made)
        return made

    def _link(self, symbols: Sequence[str], machine_code: bytes) -> None:
        twice = self._addresses.keys() & symbols
        if twice:
            raise Fail(f"symbols {sorted(twice)} are in the engine already: name each kernel once")
        builder = binding().JITLibraryBuilder().add_object_img(machine_code).add_current_process()
        for symbol in symbols:
            builder.export_symbol(symbol)
        try:
            library = builder.link(self._linker, f"library{len(self._libraries)}")
        except RuntimeError as error:
            raise Fail(f"LLVM cannot link the object of {', '.join(symbols)}: {error}") from error
        self._libraries.append(library)
        self._addresses |= {symbol: library[symbol] for symbol in symbols}


def object_key(text: str, target: Target, level: int) -> str:
    """The name under which the object of a module is kept: a digest of all that it depends on."""
    parts = (version(), target.key, str(level), text)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def compile_object(text: str, target: Target, level: int = 1) -> bytes:
    """Compile the text of one module to an ELF object; safe in many threads at once.

    Raises:
        Fail: LLVM does not accept the text; the message quotes it.
    """
    llvm = binding()
    try:
        module = llvm.parse_assembly(text, llvm.create_context())
        module.verify()
    except RuntimeError as error:
        raise Fail(f"a kernel is not valid LLVM IR, which is an error of its generator: {error}") from error
    machine = _machine(target)
    _optimize(module, machine, level)
    return _emit(module, machine)


def _machine(target: Target) -> Any:  # an llvmlite TargetMachine
    description = binding().Target.from_triple(target.triple)
    return description.create_target_machine(
        features=target.features, opt=2, reloc="pic", codemodel="small", jit=True
    )


def _has_jit_link(target: Target) -> bool:
    """Whether LLVM's newer linker, which keeps the parts of an object close together, knows this object format."""
    return "linux" in target.triple


def _optimize(module: Any, machine: Any, level: int) -> None:  # llvmlite's ModuleRef and TargetMachine
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


def _emit(module: Any, machine: Any) -> bytes:  # llvmlite's ModuleRef and TargetMachine
    from llvmlite.binding import ffi

    with ffi.OutputString() as error:
        buffer = _unlocked("LLVMPY_TargetMachineEmitToMemory")(machine, module, 1, error)
        if not buffer:
            raise Fail(f"LLVM generates no code: {error}")
    try:
        return ctypes.string_at(ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


@functools.cache
def _unlocked(name: str) -> Callable[..., Any]:
    """A function of llvmlite's library, without the lock around it and, as always in ctypes, without the GIL."""
    from llvmlite.binding import ffi
    from llvmlite.utils import get_library_name

    locked = getattr(ffi.lib, name)
    library = ctypes.CDLL(str(Path(ffi.__file__).with_name(get_library_name())))
    function = library[name]
    function.argtypes, function.restype = locked.argtypes, locked.restype
    return function
