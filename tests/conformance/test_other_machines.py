"""Kernels for processors other than this one: they compile, and call nothing that a process may lack. None of them is run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.backend_suite import KINDS, cases_of
from support.contrib_cases import contrib_cases
from support.machines import MACHINES
from support.random_nodes import newest_schemas, random_cases

import sardonyx as ort
from sardonyx.codegen import llvm
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.run.driver_code import write_driver
from sardonyx.codegen.run.externals import check_externals
from sardonyx.codegen.target import Target
from sardonyx.errors import Fail, SardonyxError
from sardonyx.ir import Graph
from sardonyx.provider import Body, Partition
from sardonyx.providers.cpu.compile import lower_partition
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.program import CpuProgram
from sardonyx.providers.cpu.provider import CpuProvider
from sardonyx.providers.cpu.storage import Storage

DRAWS = 6
"""Random nodes of each operator, over the types that its schema lists."""
LEAST = 650
"""Fewer kernels than this would mean that sessions no longer ask for them."""


class Collecting(CpuProvider):
    """Writes the kernels that its sessions need and compiles none; the programs that it returns cannot run."""

    def __init__(self, target: Target) -> None:
        super().__init__(target, 1)
        self.texts: dict[str, str] = {}

    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> CpuProgram:
        low = Lowering(self._target, self._threads)
        lowered = lower_partition(low, partition)
        for symbol in {step.symbol for step in lowered.steps} - self.texts.keys():
            module = Module(self._target)
            low.writers[symbol](module, symbol)
            self.texts[symbol] = str(module)
        storage = Storage(lowered.steps, lowered.inputs, [buffer.root for buffer in lowered.outputs])
        runner: Any = None
        return CpuProgram.of(partition.inputs, lowered.outputs, storage, {}, [], runner, low.threads, low.packs)


def models() -> Iterator[Any]:
    """The models of the suite and of the operators beside it, then random nodes of all types; Any as protobuf's messages are."""
    for kind in KINDS:
        yield from (case.model for case in cases_of(kind))
    yield from (case.model for case in contrib_cases())
    for schema, opset in newest_schemas().values():
        yield from (case.model for case in random_cases(schema, opset, DRAWS))


def kernels_for(target: Target) -> dict[str, str]:
    """The texts of the kernels that sessions of all models ask for, and the driver's."""
    provider = Collecting(target)
    for model in models():
        source = str(model) if isinstance(model, Path) else model
        with contextlib.suppress(SardonyxError):  # random nodes may be refused
            ort.InferenceSession(source, providers=[provider])
    driver = Module(target)
    write_driver(driver)
    return {**provider.texts, "driver": str(driver)}


@pytest.mark.parametrize("name", MACHINES)
def test_kernels_for_any_machine_compile_and_call_only_what_processes_have(name: str) -> None:
    """Every kernel that conformance sessions ask for, and the driver; on a machine without some instruction LLVM calls functions."""
    target = MACHINES[name]
    llvm.binding().initialize_all_targets()
    llvm.binding().initialize_all_asmprinters()
    texts = kernels_for(target)
    assert len(texts) >= LEAST

    def problem_of(symbol: str) -> str:
        try:
            check_externals(symbol, llvm.compile_text(texts[symbol], target.triple, target.features, 1))
        except (Fail, ValueError) as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(2) as pool:
        problems = [problem for problem in pool.map(problem_of, texts) if problem]
    assert not problems, "\n".join(problems)
