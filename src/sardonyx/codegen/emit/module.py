"""Functions, kernels and constant tables that are compiled together.

    module = Module(target)
    with module.kernel("saxpy_f32") as b:
        x, y, a = b.buffer(0, F32), b.buffer(1, F32), b.param_float(0)
        for i, span in b.vectors(b.begin, b.end, F32):
            y.store(b.fma(x.load(i, span), a, y.load(i, span)), i, span)

A kernel has the signature that the native driver calls: `void (void **buffers, const int64_t *params, int64_t begin, int64_t end)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.types import F32, F64, I64, PTR, VOID, Type, literal, of_dtype
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["Address", "Kernel", "Module"]


@dataclass(frozen=True, slots=True)
class Address:
    """An argument of a function that is a pointer."""

    element: Type
    """What it points to."""
    unique: bool = True
    """Whether no other pointer of the function reaches the same memory, if either writes to it."""


_WORD_BYTES = 8


class Kernel(Function):
    """A function that the native driver calls with `buffers`, `params` and a range of tasks [begin, end), or a part of one.

    A part is a function that a kernel calls with its own buffers and params, and arguments besides: large kernels are compiled
    much faster in parts than in one piece.
    """

    def __init__(self, target: Target, symbol: str) -> None:
        super().__init__(target, symbol)
        self._buffers = Pointer(self, "%buffers", PTR)
        self._params = Pointer(self, "%params", I64)
        self.begin = Register(self, I64, "%begin")
        self.end = Register(self, I64, "%end")

    def call_part(self, part: Kernel, *arguments: Register) -> None:
        """Call a part of this kernel."""
        self.call(part, self._buffers, self._params, *arguments)

    def buffer(self, index: int, element: Type) -> Pointer:
        """Return the address of buffer `index`, of elements of type `element`."""
        return self._buffers.load_pointer(index, element)

    def param(self, index: int) -> Register:
        """Return the integer parameter `index`."""
        return self._params.load(index)

    def param_at(self, index: Register) -> Register:
        """Return the integer parameter whose number is computed."""
        return self._params.load(index)

    def scalar(self, index: int, kind: Type) -> Register:
        """Return the scalar `index`, a number of type `kind` in the first bytes of a word; scalars lie before the parameters."""
        return self._params.of(kind).load(-(index + 1) * (_WORD_BYTES // kind.size_bytes))

    def param_float(self, index: int, kind: Type = F32) -> Register:
        """Return the parameter `index`, whose 64 bits are those of a float64, as a number of type `kind`."""
        return self._params.of(F64).load(index).to(kind)


class Module:
    """What is compiled in one go; `str(module)` is its text."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.exports: list[str] = []
        self.is_checked = False
        """Whether functions that are begun are checked (see `Emitter`): those of users are."""
        self._parts: list[str] = []
        self._declarations: dict[str, str] = {}

    @contextmanager
    def kernel(self, symbol: str) -> Iterator[Kernel]:
        """Write the body of the kernel named `symbol`."""
        kernel = Kernel(self.target, symbol)
        kernel.is_checked = self.is_checked
        yield kernel
        self._add(kernel, f"{_KERNEL_ARGUMENTS}, i64 %begin, i64 %end", export=True, inline=False)

    @contextmanager
    def part(self, symbol: str, *arguments: Type | Address) -> Iterator[Kernel]:
        """Write the body of a part, for `Kernel.call_part`."""
        part = Kernel(self.target, symbol)
        part.is_checked = self.is_checked
        words = _declare_arguments(part, arguments)
        yield part
        self._add(part, ", ".join([_KERNEL_ARGUMENTS, *words]), export=False, inline=False)

    @contextmanager
    def function(
        self, symbol: str, *arguments: Type | Address, returns: Type = VOID, inline: bool = False, export: bool = False
    ) -> Iterator[Function]:
        """Write the body of a function, which is local to the module unless `export`."""
        function = Function(self.target, symbol, returns)
        function.is_checked = self.is_checked
        words = _declare_arguments(function, arguments)
        yield function
        self._add(function, ", ".join(words), export=export, inline=inline)

    def table(self, symbol: str, numbers: Array) -> str:
        """Put a constant array into the module; returns its name, for `Function.pointer`."""
        kind = of_dtype(numbers.dtype)
        items = ", ".join(f"{kind} {literal(kind, number)}" for number in numbers.ravel().tolist())
        self._parts.append(f"@{symbol} = private unnamed_addr constant [{numbers.size} x {kind}] [{items}], align 64\n")
        return f"@{symbol}"

    def __str__(self) -> str:
        """Return the module as LLVM reads it."""
        head = f'target triple = "{self.target.triple}"\n'
        return "\n".join([head, *self._declarations.values(), *self._parts])

    def _add(self, function: Function, arguments: str, *, export: bool, inline: bool) -> None:
        if export:
            self.exports.append(function.symbol)
        self._declarations |= function.declarations
        linkage = "" if export else "internal "
        self._parts.append(function.definition(linkage, arguments, "alwaysinline nounwind" if inline else "nounwind"))


_KERNEL_ARGUMENTS = "ptr noalias %buffers, ptr noalias %params"


def _declare_arguments(function: Function, arguments: Sequence[Type | Address]) -> list[str]:
    """Give `function` its arguments and return how LLVM declares each."""
    words = []
    for position, argument in enumerate(arguments):
        ref = f"%a{position}"
        if isinstance(argument, Address):
            function.addresses.append(Pointer(function, ref, argument.element))
            words.append(f"ptr {'noalias ' if argument.unique else ''}{ref}")
        else:
            function.arguments.append(Register(function, argument, ref))
            words.append(f"{argument} {ref}")
    return words
