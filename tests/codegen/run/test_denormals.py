"""Denormal numbers as zero, thread by thread."""

from __future__ import annotations

import dataclasses
import threading

import numpy as np
import pytest

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.run.denormals import flush_bits, flushing_denormals, has_control, read_control, write_control
from sardonyx.codegen.target import host_target

_TINY = np.float32(1e-40)
_NEEDS_CONTROL = pytest.mark.skipif(not has_control(host_target()), reason="the processor has no control word that is known")


@_NEEDS_CONTROL
def test_numpy_computes_with_zeros_inside_and_not_behind() -> None:
    """Operands and results, of NumPy too; what was before is restored, also for nested contexts."""
    array = np.full(100, _TINY)
    with flushing_denormals():
        with flushing_denormals():
            assert not (array * np.float32(1)).any()
        assert not (np.full(100, np.float32(1e-30)) * np.float32(1e-10)).any()
    assert (array * np.float32(1)).all()


@_NEEDS_CONTROL
def test_an_error_inside_restores_the_thread() -> None:
    """It comes out unchanged."""
    with pytest.raises(ZeroDivisionError), flushing_denormals():
        1 // 0  # noqa: B018  the error is what counts
    assert (np.full(100, _TINY) * np.float32(1)).all()


@_NEEDS_CONTROL
def test_other_threads_stay_as_they_are() -> None:
    """The control word is one thread's own; those that are started inside begin with it."""
    found: list[bool] = []
    inside = threading.Event()

    def compute() -> None:
        inside.wait()
        found.append(bool((np.full(100, _TINY) * np.float32(1)).all()))

    thread = threading.Thread(target=compute)
    thread.start()
    with flushing_denormals():
        inside.set()
        thread.join()
    assert found == [True]


def test_bits_are_those_of_the_processor() -> None:
    """FTZ and DAZ of MXCSR, FZ of FPCR; nothing where no control word is known."""
    triples = {name: f"{name}-unknown-linux-gnu" for name in ("x86_64", "aarch64", "mips")}
    targets = {name: dataclasses.replace(host_target(), triple=triple) for name, triple in triples.items()}
    assert {name: flush_bits(target) for name, target in targets.items()} == {"x86_64": 0x8040, "aarch64": 1 << 24, "mips": 0}
    assert not has_control(targets["mips"])


def test_code_for_aarch64_sets_its_control_word() -> None:
    """By LLVM's functions for FPCR; for other processors there is no code."""
    texts = {}
    for triple in ("aarch64-unknown-linux-gnu", "mips-unknown-linux-gnu"):
        module = Module(dataclasses.replace(host_target(), triple=triple))
        with module.function("f", export=True) as b:
            write_control(b, read_control(b))
        texts[triple.partition("-")[0]] = str(module)
    assert "@llvm.aarch64.set.fpcr(i64" in texts["aarch64"]
    assert "llvm." not in texts["mips"].partition("define")[2]
