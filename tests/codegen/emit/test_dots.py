"""Dot products of four bytes."""

import numpy as np
from support.kernels import call

from sardonyx.codegen.emit.dots import dot4, has_dot4
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I32
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target, machine_target
from sardonyx.dtypes import Array


def _dots(target: Target, total: Array, left: Array, right: Array) -> Array:
    module, lanes = Module(target), target.lanes(32)
    with module.kernel("dots") as b, b.loop(b.begin, b.end) as task:
        t, u, s, y = (b.buffer(index, I32).at(task * lanes) for index in range(4))
        y.store(dot4(b, t.load(0, lanes), u.load(0, lanes), s.load(0, lanes)), 0, lanes)
    engine, result = Engine(target), np.zeros_like(total)
    engine.add(module)
    call(engine, "dots", [total, left, right, result], [], 0, len(total) // lanes)
    return result


def test_unsigned_bytes_times_signed_ones_are_added_exactly(target: Target) -> None:
    """The extreme ones too, and sums that wrap, on every level: by an instruction or in its place."""
    generator, count = np.random.default_rng(0), 64
    left = generator.integers(0, 256, (count, 4), dtype=np.uint8)
    right = generator.integers(-128, 128, (count, 4), dtype=np.int8)
    left[:8], right[:4], right[4:8] = 255, -128, 127
    total = generator.integers(-(1 << 31), 1 << 31, count).astype(np.int32)
    total[:2] = -(1 << 31), (1 << 31) - 1
    exact = total.astype(np.int64) + (left.astype(np.int64) * right).sum(axis=1)
    np.testing.assert_array_equal(
        _dots(target, total, left.view(np.int32)[:, 0], right.view(np.int32)[:, 0]), exact.astype(np.int32)
    )


def test_the_instruction_depends_on_features_and_width() -> None:
    """AVX-VNNI has vectors of 256 bits, AVX512-VNNI has all."""
    avx2 = ["avx", "avx2", "fma", "f16c"]
    avx512 = [*avx2, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"]
    assert not has_dot4(machine_target("x86_64", avx2))
    assert has_dot4(machine_target("x86_64", [*avx2, "avxvnni"]))
    assert not has_dot4(machine_target("x86_64", [*avx512, "avxvnni"]))
    assert has_dot4(machine_target("x86_64", [*avx512, "avx512vnni"]))
    assert not has_dot4(machine_target("aarch64", []))
