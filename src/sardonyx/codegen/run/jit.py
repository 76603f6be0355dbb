"""From the text of modules to addresses of machine code.

    Module ─► text ─► object cache ─┬─ known ────────────────────► object ─► linked into memory ─► address of each symbol
                                    └─ new ─► LLVM, elsewhere ─► object ─┘

A process whose kernels are all in the cache never loads LLVM: `elf` links what it needs, where it knows the processor.
"""

from __future__ import annotations

import marshal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sardonyx.codegen import llvm
from sardonyx.codegen.run import elf
from sardonyx.codegen.run.externals import check_externals
from sardonyx.codegen.target import Target
from sardonyx.digests import sha256
from sardonyx.disk_cache import Cache
from sardonyx.errors import Fail
from sardonyx.forks import new_lock, without_fork
from sardonyx.held_memory import HeldMemory
from sardonyx.trace import event, span

if TYPE_CHECKING:
    from sardonyx.codegen.emit.module import Module

__all__ = ["DEFAULT_LEVEL", "LEVELS", "Engine", "kernel_key", "object_key"]

LEVELS = (0, 1, 2)
"""How much is optimised: 0 what kernels need to be correct and short, 1 (the default) tidied too, 2 LLVM's own pipeline."""


DEFAULT_LEVEL = 1


class Engine:
    """Machine code of some modules. It is freed when the engine dies: whoever calls an address must keep its engine.

    One engine may be used from many threads.
    """

    def __init__(self, target: Target, *, cache: Cache | None = None, level: int = DEFAULT_LEVEL) -> None:
        """Make an engine without code.

        Args:
            target: what to compile for.
            cache: where compiled objects are looked up and kept; None compiles always.
            level: how much to optimise, one of LEVELS.
        """
        self.target = target
        self._cache = cache
        self._level = level
        self._lock = new_lock()
        self._addresses: dict[str, int] = {}
        self._libraries: list[object] = []  # images, or llvmlite's resource trackers: while they live, so does the code

    def add(self, *modules: Module) -> None:
        """Compile modules, or take them from the cache, and make their symbols known.

        Raises:
            Fail: LLVM rejects a text or an object, the code calls what is not in `externals.PROVIDED`, or a symbol is known
                already; the engine is as before.
        """
        texts = [str(module) for module in modules]
        keys = [object_key(text, self.target, self._level) for text in texts]
        objects = self._objects(keys, lambda number: texts[number], [", ".join(module.exports) for module in modules])
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
        symbols = list(writers)

        def write(number: int) -> str:
            module = _new_module(self.target)
            writers[symbols[number]](module, symbols[number])
            return str(module)

        keys = [kernel_key(edition, symbol, self.target, self._level) for symbol in symbols]
        objects = self._objects(keys, write, symbols)
        with self._lock:
            for symbol, machine_code in zip(symbols, objects, strict=True):
                self._link([symbol], machine_code)

    def add_named(self, name: str, exports: Sequence[str], write: Callable[[Module], None], edition: str) -> None:
        """Compile a module of several functions, or take it from the cache by name, as `add_kernels` does.

        Args:
            name: the module's.
            exports: the functions that it exports.
            write: writes it.
            edition: as of `add_kernels`.

        Raises:
            Fail: as `add`.
        """
        key = kernel_key(edition, name, self.target, self._level)
        laid = self._laid_out(key)
        if laid is not None:
            self.link_code(laid)
            return

        def written(_number: int) -> str:
            module = _new_module(self.target)
            write(module)
            return str(module)

        (machine_code,) = self._objects([key], written, [name])
        if elf.is_supported() and self._cache is not None:
            code = elf.laid_out([machine_code])
            laid = code._replace(symbols=tuple((symbol, place) for symbol, place in code.symbols if symbol in exports))
            self._cache.store(_laid_key(key), marshal.dumps(tuple(laid)))
            self.link_code(laid)
            return
        with self._lock:
            self._link(exports, machine_code)

    def _laid_out(self, key: str) -> elf.Code | None:
        """Return the object of a key as the cache has it laid out, which needs not be read again; None where it has not."""
        content = None if self._cache is None or not elf.is_supported() else self._cache.load(_laid_key(key))
        try:
            return None if content is None else elf.Code(*marshal.loads(content))
        except (EOFError, TypeError, ValueError):
            return None

    def link(self, objects: Mapping[str, bytes]) -> None:
        """Make kernels known whose machine code is at hand, each an object by the symbol that it exports; raises Fail as `add`."""
        with self._lock:
            for symbol, machine_code in objects.items():
                self._link([symbol], machine_code)

    def link_code(self, code: elf.Code) -> None:
        """Make the functions of objects known that are laid out already; raises Fail as `add`."""
        with self._lock:
            self._add([symbol for symbol, _ in code.symbols], elf.Image(code))

    def address(self, symbol: str) -> int:
        """Return the address of an exported function; raises KeyError for one that no module of this engine exports."""
        return self._addresses[symbol]

    @property
    def symbols(self) -> Mapping[str, int]:
        """The address of every exported function."""
        return self._addresses

    @property
    def memory(self) -> list[HeldMemory]:
        """The blocks of its machine code; none for code that llvmlite links, which does not say where it is."""
        return [library.memory for library in self._libraries if isinstance(library, elf.Image)]

    def _objects(self, keys: Sequence[str], write: Callable[[int], str], names: Sequence[str]) -> list[bytes]:
        """Return the object of each key: from the cache, or else compiled from the text that `write` makes of its number.

        `names` are those of the kernels, for errors.
        """
        _reap()
        found = [None if self._cache is None else self._cache.load(key) for key in keys]
        missing = [number for number, machine_code in enumerate(found) if machine_code is None]
        if not missing:
            return [machine_code or b"" for machine_code in found]
        with without_fork():
            from sardonyx.codegen.run.compile_process import compile_texts  # which is not needed where all are known

        with span("codegen.compile", objects=len(missing)):
            event("codegen.begin", objects=len(missing))
            made = compile_texts((_written(write(number), names[number]) for number in missing), self.target, self._level)
        for number, machine_code in zip(missing, made, strict=True):
            check_externals(names[number], machine_code)
        for number, machine_code in zip(missing, made, strict=True):
            found[number] = machine_code
            if self._cache is not None:
                self._cache.store(keys[number], machine_code)
        return [machine_code or b"" for machine_code in found]

    def _link(self, symbols: Sequence[str], machine_code: bytes) -> None:
        self._add(symbols, self._linked(symbols, machine_code))

    def _add(self, symbols: Sequence[str], library: Any) -> None:  # an image, or llvmlite's resource tracker
        twice = self._addresses.keys() & symbols
        if twice:
            raise Fail(f"symbols {sorted(twice)} are in the engine already: name each kernel once")
        self._libraries.append(library)
        self._addresses |= {symbol: library[symbol] for symbol in symbols}

    def _linked(self, symbols: Sequence[str], machine_code: bytes) -> Any:  # an image, or llvmlite's resource tracker
        if elf.is_supported():
            return elf.Image(machine_code)
        try:
            with without_fork():
                llvm.binding()
            return llvm.link(machine_code, symbols, self.target.triple, self.target.features)
        except ValueError as error:
            raise Fail(str(error)) from error


def _new_module(target: Target) -> Module:
    with without_fork():
        from sardonyx.codegen.emit.module import Module  # which processes whose kernels are known do without

    return Module(target)


def _reap() -> None:
    """Let go of the compiling process where it has ended, if there was one."""
    module = sys.modules.get("sardonyx.codegen.run.compile_process")
    if module is not None:
        module.reap()


def _written(text: str, name: str) -> str:
    event("codegen.write", kernel=name)
    return text


def kernel_key(edition: str, symbol: str, target: Target, level: int = DEFAULT_LEVEL) -> str:
    """Return the key of a kernel that is kept by name, as `Engine.add_kernels` keeps it."""
    return object_key(f"{edition}/{symbol}", target, level)


def _laid_key(key: str) -> str:
    """Return the key of an object that is laid out."""
    return sha256(f"laid out {key}".encode()).hexdigest()


def object_key(text: str, target: Target, level: int) -> str:
    """Return the name under which the object of a module is kept: a digest of all that it depends on."""
    with without_fork():  # the version is read with imports of its own
        version = llvm.version()
    parts = (version, target.key, str(level), text)
    return sha256("\0".join(parts).encode()).hexdigest()
