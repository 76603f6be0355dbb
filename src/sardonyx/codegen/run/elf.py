"""Machine code from an ELF object of x86-64, put into executable memory without LLVM.

    image = Image(machine_code)
    image["kernel"]                  the address of an exported function

    sections ─► Code, one block: code, constants, then a stub for each function outside ─► Image: pages, read-only, executable

An object that a compiler made for kernels is simple: code and constants that point to one another by distances of 32 bits, and
calls of the C library, which may be farther away and go through stubs. Whatever else an object holds is refused.

Source: System V ABI, AMD64 supplement (relocation types), and the ELF-64 object file format.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import platform
import struct
import sys
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from sardonyx.errors import Fail
from sardonyx.held_memory import HeldKind, HeldMemory

__all__ = ["MAGIC", "Code", "Image", "Pages", "functions_outside", "is_supported", "laid_out"]

MAGIC = b"\x7fELF"
"""How an object file begins."""
_HEADER = struct.Struct("<4sBBBxxxxxxxxxHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QIIq")
_STUB = struct.Struct("<6sQxx")  # jmp [rip + 0], then where to

_SYMBOL_TABLE, _RELOCATION_TABLE, _NO_BITS = 2, 4, 8
_IN_MEMORY, _WRITABLE = 2, 1
_GLOBAL, _ABSOLUTE, _X86_64 = 1, 0xFFF1, 62
_ADDRESS_64, _DISTANCE_32, _CALL_32 = 1, 2, 4
_JUMP = b"\xff\x25\x00\x00\x00\x00"
_READ, _WRITE, _EXECUTE = 1, 2, 4
_FIXED = 16


def is_supported() -> bool:
    """Return whether this process can run such objects."""
    return sys.platform == "linux" and platform.machine() == "x86_64" and sys.maxsize > 1 << 32


def functions_outside(machine_code: bytes) -> list[str]:
    """Return the names that an ELF object of 64 bits, of any processor, leaves to the loader to find, in alphabetical order.

    Raises:
        Fail: it is no whole object.
    """
    try:
        return _Object(machine_code).outside
    except (struct.error, IndexError, ValueError) as error:
        raise Fail(f"{len(machine_code)} bytes are no whole ELF object: {error}") from error


class _Section(NamedTuple):
    kind: int
    flags: int
    start: int
    size: int
    link: int
    about: int
    alignment: int


class _Symbol(NamedTuple):
    name: str
    binding: int
    section: int
    value: int


class Code(NamedTuple):
    """Objects that are laid out in one block, but not yet at an address: what is left does not depend on the objects."""

    block: bytes
    """Code and constants; distances within it are filled in."""
    stubs: tuple[tuple[int, str], ...]
    """Where jumps to functions outside are, and their names."""
    fixups: tuple[tuple[int, int, int, bool], ...]
    """What depends on the address of the block: place, type, value, and whether that counts from the beginning of the block."""
    symbols: tuple[tuple[str, int], ...]
    """Exported functions, and where they begin."""


def laid_out(objects: Iterable[bytes]) -> Code:
    """Return objects one behind the other.

    Raises:
        Fail: one is no object for x86-64, or has something that kernels do not have.
    """
    block, stubs, fixups, symbols = bytearray(), [], [], []
    for machine_code in objects:
        try:
            source = _Object(machine_code)
            block += bytes(-len(block) % source.alignment)
            begin = len(block)
            part = _laid_out(source)
        except (struct.error, IndexError, ValueError) as error:
            raise Fail(f"{len(machine_code)} bytes are no whole ELF object for x86-64: {error}") from error
        block += part.block
        stubs += [(begin + place, name) for place, name in part.stubs]
        fixups += [
            (begin + place, kind, begin + value if is_inside else value, is_inside) for place, kind, value, is_inside in part.fixups
        ]
        symbols += [(name, begin + place) for name, place in part.symbols]
    return Code(bytes(block), tuple(stubs), tuple(fixups), tuple(symbols))


class Image:
    """An object in executable memory, which is given back when the image dies: whoever calls an address must keep its image."""

    def __init__(self, code: bytes | Code) -> None:
        """Put an object, or several that are laid out, into memory, link and protect them.

        Raises:
            Fail: it is no object for x86-64, has something that kernels do not have, or calls a function that the process lacks.
        """
        code = laid_out([code]) if isinstance(code, bytes) else code
        block = bytearray(code.block)
        self._pages = Pages(len(block))
        base = self._pages.address
        for place, name in code.stubs:
            _STUB.pack_into(block, place, _JUMP, _address_outside(name, [name for name, _ in code.symbols]))
        for place, kind, value, is_inside in code.fixups:
            _apply(block, place, kind, value + base if is_inside else value, base + place)
        self._pages.fill(block)
        self._symbols = {name: base + place for name, place in code.symbols}

    def __getitem__(self, symbol: str) -> int:
        """Return the address of an exported function; raises KeyError for another name."""
        return self._symbols[symbol]

    @property
    def memory(self) -> HeldMemory:
        """The pages of the code."""
        return HeldMemory(HeldKind.CODE, self._pages.address, self._pages.size_bytes)


def _laid_out(source: _Object) -> Code:
    """Return an object alone."""
    if source.machine != _X86_64:
        raise ValueError("it is for another processor")
    places, size = source.layout()
    stubs = {name: size + _STUB.size * index for index, name in enumerate(source.outside)}
    block = bytearray(size + _STUB.size * len(stubs))
    for index, place in places.items():
        section = source.sections[index]
        if section.kind != _NO_BITS:
            block[place : place + section.size] = source.content(section)
    fixups = []
    for place, kind, symbol, addend in source.relocations(places):
        if kind not in (_ADDRESS_64, _DISTANCE_32, _CALL_32):
            raise ValueError(f"it has a relocation of type {kind}, which kernels do not have")
        is_inside, value = symbol.section != _ABSOLUTE, _target(symbol, places, stubs) + addend
        if is_inside and kind in (_DISTANCE_32, _CALL_32):
            _apply(block, place, kind, value, place)
        else:
            fixups.append((place, kind, value, is_inside))
    symbols = [
        (symbol.name, places[symbol.section] + symbol.value)
        for symbol in source.symbols
        if symbol.binding == _GLOBAL and symbol.section in places
    ]
    return Code(bytes(block), tuple((place, name) for name, place in stubs.items()), tuple(fixups), tuple(symbols))


class _Object:
    """The parts of an object file."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        magic, bits, order, _, kind, machine, _, _, _, table, _, _, _, _, _, count, _ = _HEADER.unpack_from(content)
        if (magic, bits, order, kind) != (MAGIC, 2, 1, 1):
            raise ValueError("the header says something else")
        self.machine = machine
        self.sections = [_section(content, table + _SECTION.size * index) for index in range(count)]
        self.symbols = list(self._read_symbols())

    @property
    def outside(self) -> list[str]:
        """The names of what the object uses and does not have, each once."""
        return sorted({symbol.name for symbol in self.symbols if symbol.name and not symbol.section})

    @property
    def exports(self) -> list[str]:
        """The names of what the object has for others."""
        return sorted(symbol.name for symbol in self.symbols if symbol.binding == _GLOBAL and symbol.section)

    @property
    def alignment(self) -> int:
        """What the place of the object must be a multiple of."""
        return max(16, *(section.alignment for section in self.sections if section.flags & _IN_MEMORY))

    def content(self, section: _Section) -> bytes:
        """Return the bytes of a section."""
        found = self._content[section.start : section.start + section.size]
        if len(found) != section.size:
            raise ValueError("a section ends behind the end")
        return found

    def layout(self) -> tuple[dict[int, int], int]:
        """Return where each section that belongs into memory goes, and how many bytes they take together."""
        places, end = {}, 0
        for index, section in enumerate(self.sections):
            if not section.flags & _IN_MEMORY:
                continue
            if section.flags & _WRITABLE:
                raise ValueError("it has variables, which kernels do not have")
            end = -(-end // max(section.alignment, 1)) * max(section.alignment, 1)
            places[index] = end
            end += section.size
        return places, -(-end // 16) * 16

    def relocations(self, places: dict[int, int]) -> Iterator[tuple[int, int, _Symbol, int]]:
        """Yield (place in the block, type, symbol, addend) of each relocation of a section in memory."""
        for section in self.sections:
            if section.kind != _RELOCATION_TABLE or section.about not in places:
                continue
            for offset, kind, symbol, addend in _RELOCATION.iter_unpack(self.content(section)):
                if not 0 <= offset <= self.sections[section.about].size - 4:
                    raise ValueError("a relocation lies outside its section")
                yield places[section.about] + offset, kind, self.symbols[symbol], addend

    def _read_symbols(self) -> Iterator[_Symbol]:
        for section in self.sections:
            if section.kind != _SYMBOL_TABLE:
                continue
            names = self.content(self.sections[section.link])
            for name, info, _, where, value, _ in _SYMBOL.iter_unpack(self.content(section)):
                yield _Symbol(names[name : names.index(b"\0", name)].decode(), info >> 4, where, value)


class Pages:
    """Memory of whole pages: written once, then executable; given back when the object dies."""

    def __init__(self, size: int) -> None:
        """Take at least `size` bytes; raises Fail where the system gives none."""
        libc = _libc()
        self.size_bytes = -(-max(size, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
        address = libc.mmap(None, self.size_bytes, _READ | _WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        if address in (None, ctypes.c_void_p(-1).value):
            raise Fail(f"the system gives no {self.size_bytes} bytes of memory for kernels: {_reason()}")
        self.address = int(address)
        weakref.finalize(self, libc.munmap, self.address, self.size_bytes).atexit = False

    def fill(self, content: bytes | bytearray) -> None:
        """Write the content, and let it be executed; raises Fail where the system does not."""
        ctypes.memmove(self.address, bytes(content), len(content))
        if _libc().mprotect(self.address, self.size_bytes, _READ | _EXECUTE):
            reason = _reason()
            if not self._map(content):
                raise Fail(f"the system does not let kernels be executed: {reason}")

    def _map(self, content: bytes | bytearray) -> bool:
        """Put a file in memory with the content in place of the pages, and return whether the system lets that be executed.

        Some forbid pages that were written to, as `PR_SET_MDWE` of Linux and services with `MemoryDenyWriteExecute` do.
        """
        try:
            descriptor = os.memfd_create("sardonyx")
        except OSError:
            return False
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            file.truncate(self.size_bytes)
            file.write(content)
            flags = mmap.MAP_PRIVATE | _FIXED
            return bool(_libc().mmap(self.address, self.size_bytes, _READ | _EXECUTE, flags, descriptor, 0) == self.address)


def _section(content: bytes, place: int) -> _Section:
    _, kind, flags, _, start, size, link, about, alignment, _ = _SECTION.unpack_from(content, place)
    return _Section(kind, flags, start, size, link, about, alignment)


def _target(symbol: _Symbol, places: dict[int, int], stubs: dict[str, int]) -> int:
    """Return what a relocation means: a place in the block, or, of an absolute symbol, an address."""
    if not symbol.section:
        return stubs[symbol.name]
    if symbol.section == _ABSOLUTE:
        return symbol.value
    if symbol.section not in places:
        raise ValueError(f"{symbol.name!r} lies in no section that is in memory")
    return places[symbol.section] + symbol.value


def _apply(block: bytearray, place: int, kind: int, value: int, origin: int) -> None:
    """Fill in a relocation; distances count from `origin`."""
    if kind == _ADDRESS_64:
        struct.pack_into("<Q", block, place, value)
    else:
        struct.pack_into("<i", block, place, value - origin)


def _address_outside(name: str, kernels: Sequence[str]) -> int:
    try:
        return int(ctypes.cast(_process()[name], ctypes.c_void_p).value or 0)
    except AttributeError as error:
        raise Fail(f"kernel {', '.join(kernels)} calls {name}, which this process does not have") from error


def _reason() -> str:
    return os.strerror(ctypes.get_errno())


@functools.cache
def _process() -> ctypes.CDLL:
    """Return the functions of the C library and of all that is loaded for everybody."""
    return ctypes.CDLL(None)


@functools.cache
def _libc() -> Any:  # functions with argument types of their own
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return libc
