"""Kernels of the CPU provider that are written outside the package, for custom operators.

    CpuKernel ── claim(node) ──► specification | reason ── lower(low, group, specification) ──► steps
                                                             low.kernel(UserKernel("name", write))

A kernel's machine code is kept by its symbol. That of a `UserKernel` ends with a digest of the code that it writes, so that an
edited file never finds the machine code of the one before, and two files may use one name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.target import Target
from sardonyx.digests import sha256
from sardonyx.errors import Fail, InvalidGraph, SardonyxError, describe
from sardonyx.ir import Node
from sardonyx.ops.session_operators import find_session_operator

if TYPE_CHECKING:
    from sardonyx.providers.cpu.fuse import Group
    from sardonyx.providers.cpu.lowering import Lowering

__all__ = ["CpuKernel", "UserKernel", "kernel_of"]

_NAME_OF_DIGEST = "user_kernel"
_REGISTERS = ("'Register'", "type Register")
"""What Python and NumPy say where they are given a register in the place of a number."""
_AT_RUN_TIME = (
    "; Python runs when the kernel is compiled: what is computed when it runs is written by operators of registers, b.loop, "
    "b.when, b.select and sardonyx.cpu_kernels.mathlib"
)


class CpuKernel:
    """How the CPU provider compiles a custom operator."""

    __slots__ = ("_claim", "_lower", "inputs")

    def __init__(self, claim: Callable[[Node], object], lower: Callable[[Lowering, Group, Any], None], *, inputs: int = 1) -> None:
        """Describe a kernel.

        Args:
            claim: what a node is to compute, as an immutable object that `lower` gets; or a string, why the node is not compiled.
                It is asked only about nodes whose inputs and outputs are all tensors of known type and rank.
            lower: adds the steps of the node `group.node`.
            inputs: how many inputs no node may leave out.
        """
        self._claim, self._lower, self.inputs = claim, lower, inputs

    def claim(self, node: Node) -> object:
        """Return the specification of a node, or why it is not compiled; raises Fail where the claim itself fails."""
        try:
            said = self._claim(node)
        except (InvalidGraph, Fail):
            raise
        except Exception as error:
            raise Fail(f"{node.place}: the claim of its CPU kernel failed: {describe(error)}") from error
        if isinstance(said, bool):
            raise Fail(
                f"{node.place}: the claim of its CPU kernel returned {said}; return what `lower` needs, or a text to decline"
            )
        return said

    def lower(self, low: Lowering, group: Group, spec: object) -> None:
        """Add the steps of a node; raises Fail where the lowering itself fails."""
        try:
            self._lower(low, group, spec)
        except SardonyxError:
            raise
        except Exception as error:
            raise Fail(f"{group.node.place}: the lowering of its CPU kernel failed: {describe(error)}") from error
        for value in dict.fromkeys((group.result, *(value for value in group.node.outputs if value.use_count))):
            buffer = low.of(value) if low.holds(value) else None
            if buffer is None or (buffer.base is None and buffer.constant is None and not low.is_written(buffer)):
                raise Fail(
                    f"{group.node.place}: no step of the lowering of its CPU kernel writes {value.name!r}; give `low.step` the "
                    "buffer that low.result(value) returns, and its place in writes="
                )


class UserKernel:
    """The machine code of a kernel: a name for reports, and a function that writes it."""

    __slots__ = ("_name", "_write")

    def __init__(self, name: str, write: Callable[[Module, str], None]) -> None:
        """Describe a kernel.

        Args:
            name: a Python identifier, for reports and profiles.
            write: writes the kernel into a module under a symbol: `with module.kernel(symbol) as b: ...`. It writes the same
                whenever it is called.

        Raises:
            Fail: the name is no identifier of ASCII letters.
        """
        if not (name.isidentifier() and name.isascii()):
            raise Fail(f"a kernel is named {name!r:.100}; expected an identifier, such as running_sum_f32")
        self._name, self._write = name, write

    def symbol(self, target: Target) -> str:
        """Return the name, and a digest of the code for `target`."""
        module = Module(target)
        self.write(module, _NAME_OF_DIGEST)
        return f"{self._name}_{sha256(str(module).encode()).hexdigest()[:16]}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it into a module; raises Fail where the user's function fails."""
        module.is_checked = True
        try:
            self._write(module, symbol)
        except SardonyxError:
            raise
        except Exception as error:
            hint = _AT_RUN_TIME if any(text in str(error) for text in _REGISTERS) else ""
            raise Fail(f"what writes the kernel {self._name} failed: {describe(error)}{hint}") from error
        finally:
            module.is_checked = False
        if symbol not in module.exports:
            raise Fail(f"what writes the kernel {self._name} wrote none: `with module.kernel(symbol) as b: …` begins it")


def kernel_of(node: Node) -> CpuKernel | None:
    """Return the CPU kernel of a node's operator where the session being built knows it with one, else None."""
    found = find_session_operator(node.domain, node.op_type, node.version)
    kernel = None if found is None else found.expression
    return kernel if isinstance(kernel, CpuKernel) else None
