"""The processor's control word of floating-point numbers, which each thread has for itself, and denormal numbers as zero.

    x86-64   MXCSR   flush results to zero (bit 15), take operands as zero (bit 6)
    aarch64  FPCR    both (bit 24), of float32 and float64

Whoever sets the bits in a thread takes them back before others compute there. On other processors there are none: nothing changes.
"""

from __future__ import annotations

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.types import I32, I64, VOID
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.target import Target

__all__ = ["flush_bits", "has_control", "read_control", "write_control"]

_MXCSR_FLUSH, _MXCSR_FLAGS = 0x8040, 0x3F
_FPCR_FLUSH = 1 << 24


def flush_bits(target: Target) -> int:
    """Return the bits of the control word that make denormal numbers zero; 0 where there are none."""
    return {"x86_64": _MXCSR_FLUSH, "aarch64": _FPCR_FLUSH, "arm64": _FPCR_FLUSH}.get(_processor(target), 0)


def has_control(target: Target) -> bool:
    """Return whether code for `target` can read and write the control word."""
    return flush_bits(target) != 0


def read_control(b: Function) -> Register:
    """Return the control word of the thread, without the flags of what happened there; 0 on a processor without one."""
    if not has_control(b.target):
        return b.const(I64, 0)
    if _processor(b.target) != "x86_64":
        return b.intrinsic("llvm.aarch64.get.fpcr", I64, [])
    slot = b.stack(I32, 1)
    _on_mxcsr(b, "st", slot)
    return slot.load().to(I64) & ~_MXCSR_FLAGS


def write_control(b: Function, word: Register) -> None:
    """Set the control word of the thread to what `read_control` returned, or to that with other bits."""
    if not has_control(b.target):
        return
    if _processor(b.target) != "x86_64":
        b.intrinsic("llvm.aarch64.set.fpcr", VOID, [word])
        return
    slot = b.stack(I32, 1)
    slot.store(word.to(I32))
    _on_mxcsr(b, "ld", slot)


def _on_mxcsr(b: Function, way: str, slot: Pointer) -> None:
    name = f"llvm.x86.sse.{way}mxcsr"
    b.declarations[name] = f"declare void @{name}(ptr)"
    b.line(f"call void @{name}(ptr {slot.ref})")


def _processor(target: Target) -> str:
    return target.triple.partition("-")[0]
