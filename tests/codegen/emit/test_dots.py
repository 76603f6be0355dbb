"""Dot products of four bytes."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen import llvm
from sardonyx.codegen.emit.dots import (
    DOTS,
    PAIRS,
    SHORT_PAIRS,
    Instruction,
    add_short_pairs,
    dot4,
    dot_pairs,
    flip_sign,
    has_dot4,
    has_pairs,
    has_short_pairs,
    native_left,
)
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I8, I16, I32, U8, Type
from sardonyx.codegen.emit.values import Register
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target, emulated_target, host_target, machine_target
from sardonyx.dtypes import Array

_AVX2 = ["avx", "avx2", "fma", "f16c"]
_AVX512 = [*_AVX2, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"]
_EMULATED = [
    emulated_target("neon", ["dotprod"]),
    emulated_target("neon", ["dotprod", "i8mm"]),
    emulated_target("avx2", ["avxvnni"]),
    emulated_target("avx2", ["avx2"]),
    emulated_target("avx512", ["avx512vnni"]),
    emulated_target("portable", ["none"]),
]


def _dots(target: Target, total: Array, left: Array, right: Array, left_type: Type = U8) -> Array:
    module, lanes = Module(target), target.lanes(32)
    with module.kernel("dots") as b, b.loop(b.begin, b.end) as task:
        t, u, s, y = (b.buffer(index, I32).at(task * lanes) for index in range(4))
        y.store(dot4(b, t.load(0, lanes), u.load(0, lanes), s.load(0, lanes), left_type), 0, lanes)
    engine, result = Engine(target), np.zeros_like(total)
    engine.add(module)
    call(engine, "dots", [total, left, right, result], [], 0, len(total) // lanes)
    return result


def _check(target: Target, left_type: Type) -> None:
    generator, count = np.random.default_rng(0), 64
    low, kind = (0, np.uint8) if left_type == U8 else (-128, np.int8)
    left = generator.integers(low, low + 256, (count, 4)).astype(kind)
    right = generator.integers(-128, 128, (count, 4), dtype=np.int8)
    left[:8], left[8:12], right[:4], right[4:8], right[8:10] = low + 255, low, -128, 127, -128
    total = generator.integers(-(1 << 31), 1 << 31, count).astype(np.int32)
    total[:2] = -(1 << 31), (1 << 31) - 1
    exact = total.astype(np.int64) + (left.astype(np.int64) * right).sum(axis=1)
    result = _dots(target, total, left.view(np.int32)[:, 0], right.view(np.int32)[:, 0], left_type)
    np.testing.assert_array_equal(result, exact.astype(np.int32))


@pytest.mark.parametrize("left_type", [U8, I8], ids=["unsigned", "signed"])
def test_bytes_times_signed_ones_are_added_exactly(target: Target, left_type: Type) -> None:
    """The extreme ones too, and sums that wrap, on every level: by an instruction or in its place."""
    _check(target, left_type)


@pytest.mark.parametrize("left_type", [U8, I8], ids=["unsigned", "signed"])
@pytest.mark.parametrize("emulated", _EMULATED, ids=lambda target: "_".join([target.isa, *target.emulated]))
def test_other_processors_give_the_same_sums(emulated: Target, left_type: Type) -> None:
    """Instructions that this machine lacks are written as what their manual says."""
    _check(emulated, left_type)


def _rows(target: Target) -> list[tuple[Instruction, int]]:
    rows = [(row, bits) for row in (*DOTS, *PAIRS, *SHORT_PAIRS) for bits in row.widths]
    return [(row, bits) for row, bits in rows if row.is_in(target, bits) and bits <= target.vector_bytes * 8]


def test_an_instruction_computes_its_meaning(target: Target) -> None:
    """Each row of the table that the level has, at each width: the template and the meaning give equal bits."""
    for row, bits in _rows(target):
        generator, lanes = np.random.default_rng(bits), bits // 32
        operands = [generator.integers(-(1 << 31), 1 << 31, 8 * lanes).astype(np.int32) for _ in range(3)]
        operands[1][:lanes] = operands[2][:lanes] = 0x80808080 - (1 << 32)
        results = [np.zeros(8 * lanes, np.int32) for _ in range(2)]
        module = Module(target)
        with module.kernel("both") as b, b.loop(0, 8 * lanes, lanes) as place:
            registers = [b.buffer(index, I32).load(place, lanes) for index in range(3)]
            if row in SHORT_PAIRS:
                registers = [register.bits_as(I16.vector(2 * lanes)) for register in registers]
            for index, write in ((3, row.template), (4, row.meaning)):
                b.buffer(index, I32).store(write(b, *registers).bits_as(I32.vector(lanes)), place, lanes)
        engine = Engine(target)
        engine.add(module)
        call(engine, "both", [*operands, *results])
        np.testing.assert_array_equal(*results)


@pytest.mark.parametrize(("feature", "instruction"), [("dotprod", "sdot"), ("i8mm", "usdot")])
def test_templates_for_arm_are_instructions_of_llvm(feature: str, instruction: str) -> None:
    """LLVM makes code for them, with the instruction of the table in it."""
    llvm.binding().initialize_all_targets()
    llvm.binding().initialize_all_asmprinters()
    target = machine_target("aarch64", [feature])
    module = Module(target)
    with module.kernel("dots") as b:
        left: Register = b.buffer(0, I32).load(0, 4)
        b.buffer(1, I32).store(dot4(b, left, left, left, native_left(target)), 0, 4)
    assert f"llvm.aarch64.neon.{instruction}" in str(module)
    assert llvm.compile_text(str(module), target.triple, target.features, 1)


def test_the_instruction_depends_on_features_and_width() -> None:
    """AVX-VNNI has vectors of 256 bits, AVX512-VNNI has all; Arm's is a feature of its own."""
    assert not has_dot4(machine_target("x86_64", _AVX2))
    assert has_dot4(machine_target("x86_64", [*_AVX2, "avxvnni"]))
    assert not has_dot4(machine_target("x86_64", [*_AVX512, "avxvnni"]))
    assert has_dot4(machine_target("x86_64", [*_AVX512, "avx512vnni"]))
    assert not has_dot4(machine_target("aarch64", []))
    assert has_dot4(machine_target("aarch64", ["dotprod"]))


def test_pairs_are_multiplied_where_nothing_takes_four_bytes() -> None:
    """Of 16 bits everywhere on x86, of bytes from SSSE3 on."""
    assert has_pairs(machine_target("x86_64", []))
    assert not has_short_pairs(machine_target("x86_64", []))
    assert has_short_pairs(machine_target("x86_64", ["ssse3"]))
    for features, has in ((_AVX2, True), ([*_AVX2, "avxvnni"], False), (_AVX512, True), ([*_AVX512, "avx512vnni"], False)):
        target = machine_target("x86_64", features)
        assert has_pairs(target) is has_short_pairs(target) is has
    assert not has_pairs(machine_target("aarch64", []))


@pytest.mark.parametrize("emulated", [emulated_target("avx2", ["avx2"]), emulated_target("avx512", ["avx512bw"]), host_target()])
def test_pairs_are_added_exactly(emulated: Target) -> None:
    """Two int16 in 32 bits, which wrap; two bytes in 16 bits, where seven bits times the least byte fit."""
    lanes, module, engine = emulated.lanes(32), Module(emulated), Engine(emulated)
    with module.kernel("pairs") as b:
        left, right, total = (b.buffer(index, I32).load(0, lanes) for index in range(3))
        b.buffer(3, I32).store(dot_pairs(b, total, left, right), 0, lanes)
        short = add_short_pairs(b, total.bits_as(I16.vector(2 * lanes)), left, right)
        b.buffer(4, I16).store(short, 0, 2 * lanes)
    engine.add(module)
    left, right = np.full(4 * lanes, 127, np.uint8), np.full(4 * lanes, -128, np.int8)
    left[::3], right[::5] = 0, 127
    total = np.ones(2 * lanes, np.int16)
    found, shorts = np.zeros(lanes, np.int32), np.zeros(2 * lanes, np.int16)
    call(engine, "pairs", [left, right, total, found, shorts], [])
    halves = left.view(np.int16).astype(np.int64) * right.view(np.int16)
    np.testing.assert_array_equal(found, (halves.reshape(-1, 2).sum(axis=1) + total.view(np.int32)).astype(np.int32))
    np.testing.assert_array_equal(shorts, (left.astype(np.int16) * right).reshape(-1, 2).sum(axis=1) + 1)


def test_only_arm_without_i8mm_wants_signed_bytes_on_the_left() -> None:
    """SDOT takes no unsigned ones."""
    assert native_left(machine_target("aarch64", ["dotprod"])) == I8
    assert native_left(machine_target("aarch64", ["dotprod", "i8mm"])) == U8
    assert native_left(machine_target("x86_64", [*_AVX512, "avx512vnni"])) == U8
    assert native_left(machine_target("x86_64", [])) == U8


def test_turning_signs_moves_bytes_by_half_their_range() -> None:
    """An unsigned byte becomes the signed one that is less by 128."""
    target = host_target()
    module, bytes_ = Module(target), np.arange(256, dtype=np.uint8)
    with module.kernel("flip") as b, b.loop(0, 64, 4) as place:
        b.buffer(1, I32).store(flip_sign(b.buffer(0, I32).load(place, 4)), place, 4)
    engine, result = Engine(target), np.zeros(256, np.int8)
    engine.add(module)
    call(engine, "flip", [bytes_, result])
    np.testing.assert_array_equal(result, bytes_.astype(np.int64) - 128)
