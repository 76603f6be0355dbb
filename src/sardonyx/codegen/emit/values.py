"""Values of a kernel in the making: Python operators on them write instructions.

    total = total + x.load(i) * 2          %v7 = fmul <16 x float> %v6, splat (float 2.0) …

Both sides of an operator must agree in type, except that a Python number takes the other side's type and a scalar meeting a
vector is spread over its lanes. `//`, `%`, `>>` and the comparisons obey the sign of the type; integer division truncates
as in C.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from sardonyx.codegen.emit.types import BOOL, I32, I64, PTR, U8, Kind, Type, literal

__all__ = ["Emitter", "Number", "Operand", "Pointer", "Register", "Span"]

Number: TypeAlias = int | float | bool
"""A Python number: a constant of the kernel."""


class Emitter:
    """The text of one function as it grows: lines, names of values, functions that it needs declared.

    Where it `is_checked`, mistakes of who writes it are errors that would be code that does something else.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.declarations: dict[str, str] = {}
        self.is_checked = False
        self._count = 0

    def name(self, prefix: str = "v") -> str:
        """Return a name that the function does not have yet."""
        self._count += 1
        return f"{prefix}{self._count}"

    def line(self, text: str) -> None:
        """Write one instruction that gives no value."""
        self.lines.append(text)

    def value(self, text: str, kind: Type) -> Register:
        """Write one instruction and return its value, of type `kind`."""
        self._count += 1
        ref = f"%v{self._count}"
        self.lines.append(f"{ref} = {text}")
        return Register(self, kind, ref)

    def constant(self, kind: Type, number: Number) -> Register:
        """Return `number` as a value of type `kind`, in every lane."""
        return Register(self, kind, literal(kind, number))

    def intrinsic(self, name: str, returns: Type, arguments: Sequence[Register]) -> Register:
        """Call a function of LLVM or of the process by its full name, which is declared on the way."""
        types = ", ".join(argument.type.text for argument in arguments)
        self.declarations[name] = f"declare {returns} @{name}({types})"
        call = f"call {returns} @{name}({', '.join(f'{a.type.text} {a.ref}' for a in arguments)})"
        if returns.kind is not Kind.VOID:
            return self.value(call, returns)
        self.line(call)
        return Register(self, returns, "")


class Register:
    """An SSA value: a type and the text that refers to it."""

    __slots__ = ("emitter", "ref", "type")

    def __init__(self, emitter: Emitter, kind: Type, ref: str) -> None:
        self.emitter = emitter
        self.type = kind
        self.ref = ref

    @property
    def is_constant(self) -> bool:
        """Whether this is a number in the text, not computed by the kernel."""
        return not self.ref.startswith("%")

    def __bool__(self) -> bool:
        """Raise TypeError where the function is checked: the value is known when the kernel runs, so Python cannot choose by it."""
        if not self.emitter.is_checked:
            return True
        raise TypeError("a Register has no truth value while a kernel is written; choose by b.when(condition) or b.select")

    def __repr__(self) -> str:
        """Return the type and name, as in the text of the kernel."""
        return f"<{self.type} {self.ref}>"

    def __add__(self, other: Operand) -> Register:
        """Return the sum; integers wrap around."""
        return _binary("add", self, other)

    def __sub__(self, other: Operand) -> Register:
        """Return the difference; integers wrap around."""
        return _binary("sub", self, other)

    def __mul__(self, other: Operand) -> Register:
        """Return the product; integers wrap around."""
        return _binary("mul", self, other)

    def __truediv__(self, other: Operand) -> Register:
        """Return the quotient of floating-point numbers."""
        return _binary("div", self, other)

    def __floordiv__(self, other: Operand) -> Register:
        """Return the quotient of integers, truncated towards zero; undefined for a divisor of 0."""
        return _binary("quotient", self, other)

    def __mod__(self, other: Operand) -> Register:
        """Return the remainder with the sign of the dividend, as in C; undefined for an integer divisor of 0."""
        return _binary("remainder", self, other)

    def __and__(self, other: Operand) -> Register:
        """Return the bitwise and."""
        return _binary("and", self, other)

    def __or__(self, other: Operand) -> Register:
        """Return the bitwise or."""
        return _binary("or", self, other)

    def __xor__(self, other: Operand) -> Register:
        """Return the bitwise exclusive or."""
        return _binary("xor", self, other)

    def __lshift__(self, other: Operand) -> Register:
        """Shift left; undefined by the type's width or more."""
        return _binary("shift_left", self, other)

    def __rshift__(self, other: Operand) -> Register:
        """Shift right, keeping the sign of a signed type; undefined by the type's width or more."""
        return _binary("shift_right", self, other)

    def __radd__(self, other: Number) -> Register:
        """Return the sum with a number on the left."""
        return _binary("add", self.like(other), self)

    def __rsub__(self, other: Number) -> Register:
        """Return the difference from a number."""
        return _binary("sub", self.like(other), self)

    def __rmul__(self, other: Number) -> Register:
        """Return the product with a number on the left."""
        return _binary("mul", self.like(other), self)

    def __rtruediv__(self, other: Number) -> Register:
        """Return the quotient of a number by this value."""
        return _binary("div", self.like(other), self)

    def __neg__(self) -> Register:
        """Return the value with its sign turned; of a zero too."""
        if self.type.kind is Kind.FLOAT:
            return self.emitter.value(f"fneg {self.type.text} {self.ref}", self.type)
        return _binary("sub", self.like(0), self)

    def __invert__(self) -> Register:
        """Return the value with every bit turned."""
        return _binary("xor", self, True if self.type.kind is Kind.BOOL else -1)

    def __lt__(self, other: Operand) -> Register:
        """Return whether less; False if either is NaN."""
        return _compare("lt", self, other)

    def __le__(self, other: Operand) -> Register:
        """Return whether less or equal; False if either is NaN."""
        return _compare("le", self, other)

    def __gt__(self, other: Operand) -> Register:
        """Return whether greater; False if either is NaN."""
        return _compare("gt", self, other)

    def __ge__(self, other: Operand) -> Register:
        """Return whether greater or equal; False if either is NaN."""
        return _compare("ge", self, other)

    def eq(self, other: Operand) -> Register:
        """Return whether equal; False if either is NaN. A method, since `==` of Python objects must stay what it is."""
        return _compare("eq", self, other)

    def ne(self, other: Operand) -> Register:
        """Return whether not equal; True if either is NaN."""
        return _compare("ne", self, other)

    def like(self, number: Number) -> Register:
        """Return `number` as a constant of this value's type."""
        return self.emitter.constant(self.type, number)

    def to(self, kind: Type) -> Register:
        """Convert each lane to the element type of `kind` by value.

        Float to integer truncates, with no fixed result for NaN and outside the target's range. A bool is whether it is not 0.

        Raises:
            TypeError: either type is float16 or bfloat16, which `narrow` converts.
        """
        target = kind.vector(self.type.lanes)
        if target is self.type or target == self.type:
            return self
        if target.kind is Kind.BOOL:
            return self.ne(0)
        opcode = _cast_opcode(self.type, target)
        if opcode is None:
            return Register(self.emitter, target, self.ref)
        return self.emitter.value(f"{opcode} {self.type.text} {self.ref} to {target.text}", target)

    def bits_as(self, kind: Type) -> Register:
        """Return the same bits under another type of the same size: a scalar `kind` is taken lane by lane if its width allows."""
        target = kind.vector(self.type.lanes) if kind.lanes == 1 and kind.bits == self.type.bits else kind
        if target.text == self.type.text:
            return Register(self.emitter, target, self.ref)
        return self.emitter.value(f"bitcast {self.type.text} {self.ref} to {target.text}", target)

    def splat(self, lanes: int) -> Register:
        """Return this scalar in each of `lanes` lanes."""
        if lanes == self.type.lanes:
            return self
        kind = self.type.vector(lanes)
        first = self.emitter.value(f"insertelement {kind} poison, {self.type.text} {self.ref}, i32 0", kind)
        return self.emitter.value(f"shufflevector {kind} {first.ref}, {kind} poison, <{lanes} x i32> zeroinitializer", kind)

    def lane(self, index: int | Register) -> Register:
        """Return the scalar in lane `index`."""
        number = index if isinstance(index, Register) else self.emitter.constant(I32, index)
        text = f"extractelement {self.type.text} {self.ref}, {number.type.text} {number.ref}"
        return self.emitter.value(text, self.type.scalar)

    def with_lane(self, index: int | Register, scalar: Register) -> Register:
        """Return this vector with `scalar` in lane `index`."""
        number = index if isinstance(index, Register) else self.emitter.constant(I32, index)
        text = f"insertelement {self.type.text} {self.ref}, {scalar.type.text} {scalar.ref}, {number.type.text} {number.ref}"
        return self.emitter.value(text, self.type)

    def shuffle(self, lanes: Sequence[int], other: Register | None = None) -> Register:
        """Return a vector of the lanes numbered `lanes`, counting through this vector and on through `other`."""
        kind = self.type.vector(len(lanes))
        second = "poison" if other is None else other.ref
        order = ", ".join(f"i32 {lane}" for lane in lanes)
        text = f"shufflevector {self.type.text} {self.ref}, {self.type.text} {second}, <{len(lanes)} x i32> <{order}>"
        if len(lanes) == 1:
            return self.lane(lanes[0])
        return self.emitter.value(text, kind)


Operand: TypeAlias = Register | int | float | bool
"""What an operator takes on its right side."""


class Span:
    """How many lanes a memory access touches, and under which mask: what a loop over vectors hands to its body.

    One lane means scalars; a mask (of bools, as many as lanes) leaves memory alone where it is false and loads 0 there.
    """

    __slots__ = ("lanes", "mask")

    def __init__(self, lanes: int, mask: Register | None = None) -> None:
        self.lanes = lanes
        self.mask = mask


_ONE = Span(1)


class Pointer(Register):
    """An address of elements of one type; indices and offsets count elements."""

    __slots__ = ("element",)

    def __init__(self, emitter: Emitter, ref: str, element: Type) -> None:
        super().__init__(emitter, PTR, ref)
        self.element = element

    def at(self, offset: Operand) -> Pointer:
        """Return the address `offset` elements further."""
        if isinstance(offset, int) and offset == 0:
            return self
        index = self.emitter.constant(I64, offset) if not isinstance(offset, Register) else offset.to(I64)
        memory = "i8" if self.element is BOOL else self.element.text
        text = f"getelementptr inbounds {memory}, ptr {self.ref}, i64 {index.ref}"
        return Pointer(self.emitter, self.emitter.value(text, PTR).ref, self.element)

    def of(self, element: Type) -> Pointer:
        """Return the same address, of elements of another type."""
        return Pointer(self.emitter, self.ref, element)

    def load(self, index: Operand = 0, span: Span | int = _ONE, *, align: int | None = None) -> Register:
        """Return the element at `index`, or as many from there as `span` has lanes; `align` promises an alignment in bytes.

        Pointers load as pointers. A bool is a byte in memory: any but 0 is True.
        """
        if self.element is BOOL:
            return self.of(U8).load(index, span, align=align).ne(0)
        span = Span(span) if isinstance(span, int) else span
        address = self.at(index)
        kind = self.element.vector(span.lanes)
        align = align or self.element.size_bytes
        if span.mask is None:
            return self.emitter.value(f"load {kind}, ptr {address.ref}, align {align}", kind)
        name = f"llvm.masked.load.{mangle(kind)}.p0"
        self.emitter.declarations[name] = f"declare {kind} @{name}(ptr, {span.mask.type}, {kind})"
        text = f"call {kind} @{name}(ptr align {align} {address.ref}, {span.mask.type} {span.mask.ref}, {kind} zeroinitializer)"
        return self.emitter.value(text, kind)

    def load_pointer(self, index: Operand, element: Type) -> Pointer:
        """Return the address kept at `index`, counted in addresses; it is of elements of type `element`."""
        return Pointer(self.emitter, self.of(PTR).load(index).ref, element)

    def store(self, value: Operand, index: Operand = 0, span: Span | int = _ONE, *, align: int | None = None) -> None:
        """Write `value` at `index`; a number or scalar is spread over the lanes of `span`."""
        span = Span(span) if isinstance(span, int) else span
        if self.element is BOOL:
            bits = value if isinstance(value, Register) else self.emitter.constant(BOOL, value)
            self.of(U8).store(bits.to(U8), index, span, align=align)
            return
        value = value if isinstance(value, Register) else self.emitter.constant(self.element, value)
        if self.emitter.is_checked and value.type.scalar.text != self.element.scalar.text:
            kind = value.type.scalar
            raise TypeError(f"a Register of {kind.kind.value} {kind} cannot be stored as {self.element}: convert by .to()")
        value = value if value.type.lanes > 1 else value.splat(span.lanes)
        address = self.at(index)
        align = align or self.element.size_bytes
        if span.mask is None:
            self.emitter.line(f"store {value.type.text} {value.ref}, ptr {address.ref}, align {align}")
            return
        name = f"llvm.masked.store.{mangle(value.type)}.p0"
        self.emitter.declarations[name] = f"declare void @{name}({value.type}, ptr, {span.mask.type})"
        self.emitter.line(
            f"call void @{name}({value.type.text} {value.ref}, ptr align {align} {address.ref}, "
            f"{span.mask.type.text} {span.mask.ref})"
        )

    def stream(self, value: Register, index: Operand = 0) -> None:
        """Write a vector at `index` past the caches, at a multiple of its size; a `stream_fence` follows the last."""
        size_bytes = value.type.lanes * value.type.scalar.size_bytes
        address = self.at(index).ref
        self.emitter.line(f"store {value.type.text} {value.ref}, ptr {address}, align {size_bytes}, !nontemporal !{{i32 1}}")

    def gather(self, indices: Register, mask: Register | None = None) -> Register:
        """Return the elements at the integer vector `indices`; 0 where `mask` is false."""
        if self.element is BOOL:
            return self.of(U8).gather(indices, mask).ne(0)
        lanes = indices.type.lanes
        addresses = self._addresses(indices)
        kind = self.element.vector(lanes)
        mask = self.emitter.constant(BOOL.vector(lanes), True) if mask is None else mask
        name = f"llvm.masked.gather.{mangle(kind)}.v{lanes}p0"
        self.emitter.declarations[name] = f"declare {kind} @{name}({addresses.type}, {mask.type}, {kind})"
        align = self.element.size_bytes
        text = (
            f"call {kind} @{name}({addresses.type} align {align} {addresses.ref}, {mask.type} {mask.ref}, {kind} zeroinitializer)"
        )
        return self.emitter.value(text, kind)

    def scatter(self, value: Register, indices: Register, mask: Register | None = None) -> None:
        """Write the lanes of `value` at the integer vector `indices`, in order, where `mask` is true."""
        if self.element is BOOL:
            self.of(U8).scatter(value.to(U8), indices, mask)
            return
        lanes = indices.type.lanes
        addresses = self._addresses(indices)
        mask = self.emitter.constant(BOOL.vector(lanes), True) if mask is None else mask
        name = f"llvm.masked.scatter.{mangle(value.type)}.v{lanes}p0"
        self.emitter.declarations[name] = f"declare void @{name}({value.type}, {addresses.type}, {mask.type})"
        self.emitter.line(
            f"call void @{name}({value.type} {value.ref}, {addresses.type} align {self.element.size_bytes} "
            f"{addresses.ref}, {mask.type} {mask.ref})"
        )

    def _addresses(self, indices: Register) -> Register:
        kind = PTR.vector(indices.type.lanes)
        return self.emitter.value(f"getelementptr {self.element}, ptr {self.ref}, {indices.type} {indices.ref}", kind)


def mangle(kind: Type) -> str:
    """Return the type as LLVM writes it into the names of overloaded intrinsics: v16f32, i64."""
    letter = {"float": "f32", "double": "f64", "ptr": "p0"}.get(kind.element, kind.element)
    return letter if kind.lanes == 1 else f"v{kind.lanes}{letter}"


_OPCODES = {
    "add": {Kind.FLOAT: "fadd", Kind.SIGNED: "add", Kind.UNSIGNED: "add"},
    "sub": {Kind.FLOAT: "fsub", Kind.SIGNED: "sub", Kind.UNSIGNED: "sub"},
    "mul": {Kind.FLOAT: "fmul", Kind.SIGNED: "mul", Kind.UNSIGNED: "mul"},
    "div": {Kind.FLOAT: "fdiv"},
    "quotient": {Kind.SIGNED: "sdiv", Kind.UNSIGNED: "udiv"},
    "remainder": {Kind.FLOAT: "frem", Kind.SIGNED: "srem", Kind.UNSIGNED: "urem"},
    "and": {Kind.SIGNED: "and", Kind.UNSIGNED: "and", Kind.BOOL: "and"},
    "or": {Kind.SIGNED: "or", Kind.UNSIGNED: "or", Kind.BOOL: "or"},
    "xor": {Kind.SIGNED: "xor", Kind.UNSIGNED: "xor", Kind.BOOL: "xor"},
    "shift_left": {Kind.SIGNED: "shl", Kind.UNSIGNED: "shl"},
    "shift_right": {Kind.SIGNED: "ashr", Kind.UNSIGNED: "lshr"},
}

_PREDICATES = {
    Kind.FLOAT: {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"},
    Kind.SIGNED: {"lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge", "eq": "eq", "ne": "ne"},
    Kind.UNSIGNED: {"lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge", "eq": "eq", "ne": "ne"},
    Kind.BOOL: {"lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge", "eq": "eq", "ne": "ne"},
    Kind.POINTER: {"eq": "eq", "ne": "ne", "lt": "ult"},
}


def agree(left: Register, right: Operand) -> tuple[Register, Register]:
    """Return both operands in one type: numbers take the type of `left`, a scalar meeting a vector is spread over its lanes.

    Raises:
        TypeError: the types differ in more than that.
    """
    if not isinstance(right, Register):
        return left, left.like(right)
    if left.type is right.type or left.type == right.type:
        return left, right
    if left.type.scalar != right.type.scalar or 1 not in (left.type.lanes, right.type.lanes):
        raise TypeError(
            f"operands are {left.type.name} ({left.type.kind.value}) and {right.type.name} ({right.type.kind.value}): convert one "
            "with .to()"
        )
    lanes = max(left.type.lanes, right.type.lanes)
    return left.splat(lanes), right.splat(lanes)


def _binary(operator: str, left: Register, right: Operand) -> Register:
    left, right = agree(left, right)
    opcode = _OPCODES[operator].get(left.type.kind)
    if opcode is None:
        raise _undefined(operator, left.type)
    return left.emitter.value(f"{opcode} {left.type.text} {left.ref}, {right.ref}", left.type)


def _compare(relation: str, left: Register, right: Operand) -> Register:
    left, right = agree(left, right)
    predicate = _PREDICATES.get(left.type.kind, {}).get(relation)
    if predicate is None:
        raise _undefined(relation, left.type)
    opcode = "fcmp" if left.type.is_float else "icmp"
    text = f"{opcode} {predicate} {left.type.text} {left.ref}, {right.ref}"
    return left.emitter.value(text, BOOL.vector(left.type.lanes))


def _undefined(operator: str, kind: Type) -> TypeError:
    advice = ": convert it by from_narrow and to_narrow" if kind.is_narrow else ""
    return TypeError(f"{operator} is not defined for {kind.name} ({kind.kind.value}){advice}")


def _cast_opcode(source: Type, target: Type) -> str | None:
    """Return the instruction that converts `source` to `target`; None where the bits are the same."""
    if source.is_narrow or target.is_narrow:
        raise _undefined("to", source if source.is_narrow else target)
    if source.kind is Kind.POINTER:
        return "ptrtoint"
    if target.kind is Kind.POINTER:
        return "inttoptr"
    if source.is_float and target.is_float:
        return "fpext" if source.bits < target.bits else "fptrunc"
    if source.is_float:
        return "fptosi" if target.kind is Kind.SIGNED else "fptoui"
    if target.is_float:
        return "sitofp" if source.kind is Kind.SIGNED else "uitofp"
    if source.bits == target.bits:
        return None
    if source.bits > target.bits:
        return "trunc"
    return "sext" if source.kind is Kind.SIGNED else "zext"
