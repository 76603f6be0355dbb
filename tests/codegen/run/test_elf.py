"""Objects put into executable memory without LLVM."""

import ctypes
import gc
import struct

import pytest

from sardonyx.codegen import llvm
from sardonyx.codegen.run import elf
from sardonyx.codegen.run.elf import Image, functions_outside
from sardonyx.codegen.target import host_target
from sardonyx.errors import Fail

pytestmark = pytest.mark.skipif(not elf.is_supported(), reason="x86-64 Linux only")

_CONSTANTS = """
@table = private unnamed_addr constant [4 x i64] [i64 2, i64 3, i64 5, i64 7], align 64
define i64 @prime(i64 %i) { %p = getelementptr i64, ptr @table, i64 %i
 %v = load i64, ptr %p
 ret i64 %v }
define i64 @twice(i64 %i) { %v = call i64 @prime(i64 %i)
 %w = add i64 %v, %v
 ret i64 %w }
"""
_CALL = """
declare i32 @toupper(i32)
define i64 @upper(i64 %i) { %c = trunc i64 %i to i32
 %v = call i32 @toupper(i32 %c)
 %w = zext i32 %v to i64
 ret i64 %w }
"""
_VARIABLE = "@counter = global i64 1\ndefine i64 @next() { %v = load i64, ptr @counter\n ret i64 %v }"
_MISSING = "declare i64 @no_such_function()\ndefine i64 @f() { %v = call i64 @no_such_function()\n ret i64 %v }"


def _object(text: str) -> bytes:
    target = host_target()
    return llvm.compile_text(text, target.triple, target.features, 1)


def _call(image: Image, symbol: str, number: int) -> int:
    return int(ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(image[symbol])(number))


def test_functions_reach_their_constants_and_one_another() -> None:
    """Sections keep their distances."""
    image = Image(_object(_CONSTANTS))
    assert [_call(image, "prime", number) for number in range(4)] == [2, 3, 5, 7]
    assert _call(image, "twice", 3) == 14


def test_functions_of_the_c_library_are_called_through_stubs() -> None:
    """They may lie farther away than a call reaches."""
    assert _call(Image(_object(_CALL)), "upper", ord("a")) == ord("A")


def test_a_function_that_the_process_lacks_is_named() -> None:
    """Nothing is left to jump into the void."""
    with pytest.raises(Fail, match="kernel f calls no_such_function"):
        Image(_object(_MISSING))


def test_what_an_object_leaves_to_the_loader_is_listed() -> None:
    """Functions of its own are not among it."""
    assert functions_outside(_object(_CALL)) == ["toupper"]
    assert functions_outside(_object(_CONSTANTS)) == []
    with pytest.raises(Fail, match="no whole ELF object"):
        functions_outside(_object(_CALL)[:-100])


def test_variables_are_refused() -> None:
    """The pages are read-only."""
    with pytest.raises(Fail, match="variables"):
        Image(_object(_VARIABLE))


def test_an_unknown_symbol_is_a_key_error() -> None:
    """Only exported functions have addresses."""
    with pytest.raises(KeyError):
        Image(_object(_CONSTANTS))["table"]


@pytest.mark.parametrize("length", [0, 1, 63, 64, 200, -100, -1])
def test_a_part_of_an_object_is_refused(length: int) -> None:
    """A truncated file is an error, not a crash."""
    with pytest.raises(Fail, match="no whole ELF object"):
        Image(_object(_CONSTANTS)[:length])


def test_another_architecture_is_refused() -> None:
    """The header says which machine the code is for."""
    content = bytearray(_object(_CONSTANTS))
    struct.pack_into("<H", content, 18, 183)
    with pytest.raises(Fail, match="x86-64"):
        Image(bytes(content))


def test_memory_is_given_back() -> None:
    """A thousand images made and dropped leave no mappings behind."""
    content = _object(_CONSTANTS)

    def mappings() -> int:
        with open("/proc/self/maps") as lines:
            return sum(1 for _ in lines)

    Image(content)
    gc.collect()
    before = mappings()
    for _ in range(1000):
        Image(content)
    gc.collect()
    assert mappings() < before + 20
