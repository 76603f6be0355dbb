"""The control word of floating-point numbers, processor by processor."""

from __future__ import annotations

import dataclasses

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.run.control_word import flush_bits, has_control, read_control, write_control
from sardonyx.codegen.target import host_target


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
