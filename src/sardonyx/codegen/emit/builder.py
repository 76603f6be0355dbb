"""Write the body of a function so that it reads like the algorithm: loops, branches, variables and vectors over LLVM IR.

    for i, span in b.vectors(0, n, F32):
        y.store(b.fma(x.load(i, span), a, y.load(i, span)), i, span)

Text is written straight away: there is no tree in between. What a kernel writes is what it gets, but for the cleaning that
every module passes through (inlining, variables to registers, common subexpressions); nothing is vectorised, unrolled or
hoisted behind its back.

Flow is structured: a `with` block is a loop body or a branch. State that changes in it is a `Variable`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from sardonyx.codegen.emit.types import BOOL, I8, I16, I32, I64, VOID, Kind, Type, literal
from sardonyx.codegen.emit.values import Emitter, Number, Operand, Pointer, Register, Span, agree, mangle
from sardonyx.codegen.target import Target

__all__ = ["Function", "Repeat", "Switch", "Variable"]

_COUNTERS = {1: I8, 2: I16, 4: I32, 8: I64}


class Variable:
    """A value that loops and branches change: a stack slot that the compiler turns into a register."""

    __slots__ = ("_slot", "type")

    def __init__(self, slot: Pointer) -> None:
        self.type = slot.element
        self._slot = slot

    @property
    def value(self) -> Register:
        """What the variable holds at this point of the text."""
        emitter = self._slot.emitter
        return emitter.value(f"load {self.type}, ptr {self._slot.ref}", self.type)

    def set(self, value: Operand) -> None:
        """Let the variable hold `value` from this point on."""
        operand = value if isinstance(value, Register) else self._slot.emitter.constant(self.type, value)
        if operand.type != self.type:
            raise TypeError(f"a variable of {self.type} cannot hold {operand.type}")
        self._slot.emitter.line(f"store {self.type} {operand.ref}, ptr {self._slot.ref}")

    def add(self, value: Operand) -> None:
        """Add `value` to what the variable holds."""
        self.set(self.value + value)


class Function(Emitter):
    """The body of one function: where instructions are written in order, and control flow is shaped.

    `arguments` are its numbers and `addresses` its pointers, each in the order of declaration.
    """

    def __init__(self, target: Target, symbol: str, returns: Type = VOID) -> None:
        super().__init__()
        self.target = target
        self.symbol = symbol
        self.returns = returns
        self.arguments: list[Register] = []
        self.addresses: list[Pointer] = []
        self._slots: list[str] = []
        self._block = "entry"

    # -- constants and variables

    def const(self, kind: Type, number: Number) -> Register:
        """Return `number` as a value of type `kind`, in every lane."""
        return self.constant(kind, number)

    def lanes(self, kind: Type) -> int:
        """Return how many elements of `kind` one register of the target holds."""
        return self.target.lanes(max(kind.bits, 8))

    def pointer(self, name: str, element: Type) -> Pointer:
        """Return the address that `name` refers to: an argument, or a table of the module."""
        return Pointer(self, name, element)

    def iota(self, kind: Type, lanes: int) -> Register:
        """Return the integer vector of the lanes' numbers: 0, 1, 2 and so on."""
        if lanes == 1:
            return self.const(kind, 0)
        return Register(self, kind.vector(lanes), f"<{', '.join(f'{kind.element} {lane}' for lane in range(lanes))}>")

    def vector_of(self, kind: Type, numbers: Sequence[Number]) -> Register:
        """Return a constant vector of these numbers."""
        items = ", ".join(f"{kind.element} {literal(kind.scalar, number)}" for number in numbers)
        return Register(self, kind.scalar.vector(len(numbers)), f"<{items}>")

    def variable(self, initial: Register) -> Variable:
        """Return a variable of the type of `initial`, and holding it."""
        variable = Variable(self.stack(initial.type, 1))
        variable.set(initial)
        return variable

    def stack(self, kind: Type, count: int, *, align: int | None = None) -> Pointer:
        """Return memory for `count` elements of `kind` that lives as long as the call; its content is undefined."""
        ref = f"%{self.name('s')}"
        alignment = f", align {align}" if align else ""
        self._slots.append(f"{ref} = alloca {kind}, i64 {count}{alignment}")
        return Pointer(self, ref, kind)

    # -- choices and numbers

    def select(self, condition: Register, yes: Operand, no: Operand) -> Register:
        """Return `yes` where `condition` holds, else `no`, lane by lane; at least one of them is a value."""
        if isinstance(yes, Register):
            first, second = agree(yes, no)
        elif isinstance(no, Register):
            second, first = agree(no, yes)
        else:
            raise TypeError("select needs a value on one side to know its type")
        lanes = max(first.type.lanes, condition.type.lanes)
        first, second = first.splat(lanes), second.splat(lanes)
        text = f"select {condition.type} {condition.ref}, {first.type} {first.ref}, {second.type} {second.ref}"
        return self.value(text, first.type)

    def min(self, left: Register, right: Operand) -> Register:
        """Return the lesser; `right` if either is NaN or both are zeros: one instruction."""
        left, right = agree(left, right)
        return self.select(left < right, left, right)

    def max(self, left: Register, right: Operand) -> Register:
        """Return the greater; `right` if either is NaN or both are zeros: one instruction."""
        left, right = agree(left, right)
        return self.select(left > right, left, right)

    def fma(self, left: Register, right: Operand, addend: Operand) -> Register:
        """Return `left * right + addend`, rounded once where the target can, else twice."""
        left, factor = agree(left, right)
        left, term = agree(left, addend)
        left, factor = agree(left, factor)
        if not self.target.has_fma:
            return left * factor + term
        return self.call_math("fma", left, factor, term)

    def call_math(self, name: str, *arguments: Register) -> Register:
        """Call LLVM's intrinsic `llvm.<name>` on arguments of one type, which is that of the result.

        Such as sqrt, fabs, floor, ceil, trunc, copysign, minimum, maximum, ctpop, smin, umax, sadd.sat, fshl.
        """
        kind = arguments[0].type
        return self.intrinsic(f"llvm.{name}.{mangle(kind)}", kind, arguments)

    def sqrt(self, x: Register) -> Register:
        """Return the square root, correctly rounded; NaN below 0."""
        return self.call_math("sqrt", x)

    def round_even(self, x: Register) -> Register:
        """Return the nearest whole number, ties to even; a zero keeps the sign of x.

        Without the instruction of SSE 4.1, numbers that may have a fraction are added to one so large that none is left.
        """
        if self.target.has_rounding:
            return self.call_math("roundeven", x)
        large = 2.0**52 if x.type.bits == 64 else 2.0**23
        size = self.abs(x)
        return self.select(size < large, self.call_math("copysign", (size + large) - large, x), x)

    def abs(self, x: Register) -> Register:
        """Return the magnitude; the least integer stays as it is."""
        if x.type.kind is Kind.FLOAT:
            return self.call_math("fabs", x)
        return x if x.type.kind is Kind.UNSIGNED else self.select(x < 0, -x, x)

    def is_nan(self, x: Register) -> Register:
        """Return whether each lane is NaN."""
        return self.value(f"fcmp uno {x.type} {x.ref}, {x.ref}", BOOL.vector(x.type.lanes))

    # -- vectors

    def reduce(self, vector: Register, combine: Callable[[Register, Register], Register]) -> Register:
        """Fold the lanes to one scalar, halves onto each other: a fixed order, log2(lanes) steps."""
        width = vector.type.lanes
        while width > 1:
            width //= 2
            vector = combine(vector.shuffle(range(width)), vector.shuffle(range(width, 2 * width)))
        return vector

    def sum_lanes(self, vector: Register) -> Register:
        """Return the sum of all lanes, in a fixed order."""
        return self.reduce(vector, lambda left, right: left + right)

    def max_lanes(self, vector: Register) -> Register:
        """Return the greatest lane."""
        return self.reduce(vector, self.max)

    def min_lanes(self, vector: Register) -> Register:
        """Return the least lane."""
        return self.reduce(vector, self.min)

    def join(self, low: Register, high: Register) -> Register:
        """Return one vector of the lanes of `low`, then those of `high`."""
        return low.shuffle(range(2 * low.type.lanes), high)

    def interleave(self, left: Register, right: Register) -> Register:
        """Take lanes in turn: left[0], right[0], left[1], right[1] and so on."""
        lanes = left.type.lanes
        return left.shuffle([lane for pair in zip(range(lanes), range(lanes, 2 * lanes), strict=True) for lane in pair], right)

    def tail_mask(self, remaining: Register, lanes: int) -> Register:
        """Return a mask of the first `remaining` (an integer of 0 to `lanes`) of `lanes` lanes."""
        if lanes == 1:
            return remaining > 0
        kind = _COUNTERS[min(max(self.target.vector_bytes // lanes, 1), 8)]
        return self.iota(kind, lanes) < remaining.to(kind)

    def any_lane(self, mask: Register) -> Register:
        """Return whether any lane of a mask holds."""
        if mask.type.lanes == 1:
            return mask
        return self.intrinsic(f"llvm.vector.reduce.or.{mangle(mask.type)}", BOOL, [mask])

    def vectors(self, begin: Operand, end: Operand, kind: Type, *, lanes: int | None = None) -> Iterator[tuple[Register, Span]]:
        """Walk [begin, end) by vectors: `for i, span in b.vectors(0, n, F32): y.store(f(x.load(i, span)), i, span)`.

        A range that ends before it begins has nothing. The body is written twice: for whole vectors, and for what is left: under a
        mask where masks are free, else one by one.
        """
        lanes = lanes or self.lanes(kind)
        start = self._index(begin)
        stop = self.max(self._index(end), start)
        whole = start + ((stop - start) & -lanes)
        with self.loop(start, whole, lanes) as i:
            yield i, Span(lanes)
        if lanes == 1:
            return
        if self.target.has_masks:
            with self.when(whole < stop):
                yield whole, Span(lanes, self.tail_mask(stop - whole, lanes))
            return
        with self.loop(whole, stop) as i:
            yield i, Span(1)

    # -- control flow

    @contextmanager
    def loop(self, begin: Operand, end: Operand, step: Operand = 1) -> Iterator[Register]:
        """Run the block for begin, begin + step, … while less than `end`; `step` is positive."""
        first, last = self._index(begin), self._index(end)
        body, done = self.name("loop"), self.name("done")
        self._branch_if(first < last, body, done)
        before = self._block
        index = Register(self, first.type, f"%{self.name('i')}")
        self._open(body)
        phi = len(self.lines)
        self.lines.append("")
        yield index
        following = index + step
        self.lines[phi] = f"{index.ref} = phi {first.type} [{first.ref}, %{before}], [{following.ref}, %{self._block}]"
        self._branch_if(following < last, body, done)
        self._open(done)

    @contextmanager
    def repeat(self) -> Iterator[Repeat]:
        """Run the block until `stop_if` or `stop` of the yielded object leaves it."""
        body, done = self.name("repeat"), self.name("done")
        self._jump(body)
        self._open(body)
        yield Repeat(self, done)
        self._jump(body)
        self._open(done)

    @contextmanager
    def when(self, condition: Register) -> Iterator[None]:
        """Run the block if `condition` holds."""
        body, done = self.name("then"), self.name("done")
        self._branch_if(condition, body, done)
        self._open(body)
        yield
        self._jump(done)
        self._open(done)

    def branch(self, condition: Register, yes: Callable[[], object], no: Callable[[], object]) -> None:
        """Write `yes()` for where `condition` holds and `no()` for where it does not."""
        first, second, done = self.name("then"), self.name("else"), self.name("done")
        self._branch_if(condition, first, second)
        for label, write in ((first, yes), (second, no)):
            self._open(label)
            write()
            self._jump(done)
        self._open(done)

    @contextmanager
    def switch(self, value: Register) -> Iterator[Switch]:
        """Run the block of the case that equals `value`, none if none does."""
        switch = Switch(self, self.name("done"))
        position = len(self.lines)
        self.lines.append("")
        yield switch
        cases = " ".join(f"{value.type} {number}, label %{label}" for number, label in switch.labels.items())
        self.lines[position] = f"switch {value.type} {value.ref}, label %{switch.done} [ {cases} ]"
        self._open(switch.done)

    def give(self, value: Register | None = None) -> None:
        """Return from the function; nothing may follow in this block."""
        self.line("ret void" if value is None else f"ret {value.type} {value.ref}")
        self._open(self.name("dead"))

    def call(self, callee: Function | Register, *arguments: Register, returns: Type = VOID) -> Register:
        """Call a function of this module, or one by its address, which returns `returns`."""
        target, kind = (f"@{callee.symbol}", callee.returns) if isinstance(callee, Function) else (callee.ref, returns)
        text = f"call {kind} {target}({', '.join(f'{a.type} {a.ref}' for a in arguments)})"
        if kind is not VOID:
            return self.value(text, kind)
        self.line(text)
        return Register(self, VOID, "")

    # -- memory order

    def atomic_load(self, pointer: Pointer, order: str = "monotonic") -> Register:
        """Read one integer whole; `order` is LLVM's name: monotonic (C's relaxed), acquire, release, acq_rel, seq_cst."""
        kind = pointer.element
        return self.value(f"load atomic {kind}, ptr {pointer.ref} {order}, align {kind.size_bytes}", kind)

    def atomic_store(self, pointer: Pointer, value: Operand, order: str = "monotonic") -> None:
        """Write one integer whole."""
        operand = value if isinstance(value, Register) else self.const(pointer.element, value)
        kind = pointer.element
        self.line(f"store atomic {kind} {operand.ref}, ptr {pointer.ref} {order}, align {kind.size_bytes}")

    def atomic_add(self, pointer: Pointer, value: Operand, order: str = "monotonic") -> Register:
        """Add to one integer whole and return what it was."""
        operand = value if isinstance(value, Register) else self.const(pointer.element, value)
        return self.value(f"atomicrmw add ptr {pointer.ref}, {operand.type} {operand.ref} {order}", operand.type)

    def compare_exchange(self, pointer: Pointer, expected: Operand, new: Register, order: str = "acq_rel") -> Register:
        """Write `new` if the integer is `expected`, and return whether it was."""
        _, old = agree(new, expected)
        pair = f"%{self.name()}"
        failure = "monotonic" if order in ("release", "monotonic") else "acquire"
        self.line(f"{pair} = cmpxchg ptr {pointer.ref}, {new.type} {old.ref}, {new.type} {new.ref} {order} {failure}")
        return self.value(f"extractvalue {{ {new.type}, i1 }} {pair}, 1", BOOL)

    def fence(self, order: str = "seq_cst") -> None:
        """Order the memory accesses before with those after."""
        self.line(f"fence {order}")

    def pause(self) -> None:
        """Tell the processor that this loop waits."""
        if self.target.triple.startswith("x86"):
            self.intrinsic("llvm.x86.sse2.pause", VOID, [])
        elif self.target.triple.startswith(("aarch64", "arm64")):
            self.intrinsic("llvm.aarch64.hint", VOID, [self.const(I32, 1)])

    def stream_fence(self) -> None:
        """Let what was written past the caches come before all that is written later."""
        if self.target.triple.startswith("x86"):
            self.intrinsic("llvm.x86.sse.sfence", VOID, [])

    def prefetch(self, pointer: Pointer, *, write: bool = False, locality: int = 3) -> None:
        """Ask for the cache line of an address, which need not be valid."""
        self.declarations["llvm.prefetch.p0"] = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"
        self.line(f"call void @llvm.prefetch.p0(ptr {pointer.ref}, i32 {int(write)}, i32 {locality}, i32 1)")

    # -- the text

    def definition(self, linkage: str, arguments: str, attributes: str) -> str:
        """Return the whole function as LLVM reads it."""
        end = "ret void" if self.returns is VOID else "unreachable"
        body = "\n".join([*self._slots, *self.lines, end])
        return f"define {linkage}{self.returns} @{self.symbol}({arguments}) {attributes} {{\nentry:\n{body}\n}}\n"

    def _index(self, value: Operand) -> Register:
        return value if isinstance(value, Register) else self.const(I64, value)

    def _open(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self._block = label

    def _jump(self, label: str) -> None:
        self.lines.append(f"br label %{label}")

    def _branch_if(self, condition: Register, yes: str, no: str) -> None:
        self.lines.append(f"br i1 {condition.ref}, label %{yes}, label %{no}")


class Repeat:
    """A loop without end, and the ways to leave it."""

    def __init__(self, function: Function, done: str) -> None:
        self._function = function
        self._done = done

    def stop_if(self, condition: Register) -> None:
        """Leave the loop if `condition` holds."""
        going = self._function.name("more")
        self._function._branch_if(condition, self._done, going)
        self._function._open(going)


class Switch:
    """The cases of a switch as they are written."""

    def __init__(self, function: Function, done: str) -> None:
        self._function = function
        self.done = done
        self.labels: dict[int, str] = {}

    @contextmanager
    def case(self, number: int) -> Iterator[None]:
        """Run the block if the switched value is `number`."""
        label = self._function.name("case")
        self.labels[number] = label
        self._function._open(label)
        yield
        self._function._jump(self.done)
