"""The functions that compiled code may call, and a check that it calls no others.

LLVM writes calls that are not in a kernel's text: where a processor lacks an instruction, it asks for a function of a compiler's
support library (libgcc, compiler-rt), such as __truncsfbf2. Whether a process has that library, and with that function, is a
matter of luck; so a kernel that calls it is an error of its generator, on every machine alike.
"""

from __future__ import annotations

from sardonyx.codegen.run.elf import MAGIC, functions_outside
from sardonyx.errors import Fail

__all__ = ["PROVIDED", "check_externals"]

_MATHEMATICS = """acos acosh asin asinh atan atanh ceil cos cosh erf expm1 floor fmod log1p pow sin sinh tan tanh trunc""".split()
PROVIDED = frozenset(
    [
        *_MATHEMATICS,
        *(f"{name}f" for name in ("ceil", "floor", "fmod", "trunc")),
        *("memcpy", "memmove", "memset"),
        *("clock_gettime", "pthread_self", "sched_yield", "syscall", "usleep"),
        *("sched_getaffinity", "sched_getcpu", "sched_setaffinity"),
    ]
)
"""What every process has: functions of C99 for numbers and for memory, those by which the thread pool waits, and a clock."""


def check_externals(kernel: str, machine_code: bytes) -> None:
    """Refuse an object that calls a function not in PROVIDED; formats other than ELF are left to the system's linker.

    Args:
        kernel: the names of the functions in the object, for the error.
        machine_code: the object.

    Raises:
        Fail: it calls such a function, or is no whole object.
    """
    if not machine_code.startswith(MAGIC):
        return
    missing = [name for name in functions_outside(machine_code) if name not in PROVIDED]
    if missing:
        raise Fail(
            f"kernel {kernel} calls {', '.join(missing)}, which processes need not have: LLVM writes such calls for "
            "instructions that the processor lacks, so the kernel's generator must use others on this target"
        )
