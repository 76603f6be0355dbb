"""No kernel calls what a process may lack."""

import pytest

from sardonyx.codegen import llvm
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, I32
from sardonyx.codegen.run.externals import PROVIDED, check_externals
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import host_target, machine_target
from sardonyx.errors import Fail

_TRUNCATES = """
define void @narrow(ptr %x, ptr %y) { %v = load float, ptr %x
 %w = fptrunc float %v to bfloat
 store bfloat %w, ptr %y
 ret void }
"""
_REMAINDER = "define float @rest(float %x, float %y) { %v = frem float %x, %y\n ret float %v }"
_BASELINE = machine_target("x86_64", [])


def _object(text: str) -> bytes:
    llvm.binding().initialize_all_targets()
    llvm.binding().initialize_all_asmprinters()
    return llvm.compile_text(text, _BASELINE.triple, _BASELINE.features, 1)


def test_calls_of_a_support_library_are_refused() -> None:
    """The message names the kernel, and the function that LLVM put in."""
    with pytest.raises(Fail, match="kernel narrow calls __truncsfbf2, which processes need not have"):
        check_externals("narrow", _object(_TRUNCATES))


def test_calls_of_the_c_library_are_let_through() -> None:
    """Every process has C99's mathematics."""
    assert "fmodf" in PROVIDED
    check_externals("rest", _object(_REMAINDER))


def test_formats_other_than_elf_are_left_to_their_linkers() -> None:
    """An object of macOS or Windows is not read."""
    check_externals("k", b"\xcf\xfa\xed\xfe")


def test_a_part_of_an_object_is_refused() -> None:
    """A truncated object is an error, not a crash."""
    with pytest.raises(Fail, match="no whole ELF object"):
        check_externals("k", _object(_REMAINDER)[:100])


def test_an_engine_refuses_them_when_they_are_compiled() -> None:
    """Also what this process happens to have: another one may not."""
    target = host_target()
    module = Module(target)
    with module.function("upper", I32, returns=I32, export=True) as b:
        b.give(b.intrinsic("toupper", I32, [b.arguments[0]]))
    with pytest.raises(Fail, match="kernel upper calls toupper"):
        Engine(target).add(module)

    def write(module: Module, symbol: str) -> None:
        with module.kernel(symbol) as b:
            b.buffer(0, F32).store(b.intrinsic("lgammaf", F32, [b.buffer(0, F32).load()]))

    with pytest.raises(Fail, match="kernel logs calls lgammaf"):
        Engine(target).add_kernels({"logs": write}, "edition")
