"""The kernels of the process: compiled once, found again, freed."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from support.models import model

import sardonyx
from sardonyx import InferenceSession
from sardonyx.codegen.emit.expr import argument
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.kernels.elementwise import Access, write_map
from sardonyx.codegen.target import host_target
from sardonyx.disk_cache import shared_cache
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir import Graph
from sardonyx.provider import Body, Partition
from sardonyx.providers.cpu import library
from sardonyx.providers.cpu.library import Library, decision_facts, driver_for, edition, kernel_cache, library_for, take_facts
from sardonyx.providers.cpu.lowering import Write
from sardonyx.providers.cpu.program import CpuProgram
from sardonyx.providers.cpu.provider import CpuProvider


class _Counted:
    """Writes a small kernel, and counts how often it is asked to."""

    def __init__(self) -> None:
        self.written: list[str] = []

    def __call__(self, module: Module, symbol: str) -> None:
        self.written.append(symbol)
        write_map(module, symbol, [F32], [argument(0, F32) * 2.0], [Access.ORDERED] * 2)

    def of(self, *symbols: str) -> dict[str, Write]:
        return dict.fromkeys(symbols, self)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("SARDONYX_CACHE_DIR", str(tmp_path))
    shared_cache.cache_clear()
    yield
    shared_cache.cache_clear()


class _Watched(CpuProvider):
    """The provider, which also remembers the kernels of what it compiles."""

    def __init__(self) -> None:
        super().__init__(host_target(None), 1)
        self.symbols: list[str] = []

    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> CpuProgram:
        program = super().compile(partition, bodies)
        self.symbols += [step.partition(": ")[2] for step in program.steps]
        return program


def test_a_kernel_is_compiled_once() -> None:
    """While a program keeps its engine, others get the same address; only what is missing is written."""
    found, writer = Library(host_target(None)), _Counted()
    first, engines = found.compile(writer.of("a", "b"))
    second, others = found.compile(writer.of("b", "c"))
    assert writer.written == ["a", "b", "c"]
    assert first["b"] == second["b"]
    assert len({first["a"], first["b"], second["c"]}) == 3
    assert engines[0] in others


def test_engines_die_with_the_last_that_uses_them() -> None:
    """Each with its own last user."""
    found, writer = Library(host_target(None)), _Counted()
    _, engines = found.compile(writer.of("a"))
    _, shared = found.compile(writer.of("a", "b"))
    watched: list[weakref.ref[object]] = [weakref.ref(engine) for engine in shared]
    del engines
    gc.collect()
    assert all(reference() is not None for reference in watched)
    del shared
    gc.collect()
    assert all(reference() is None for reference in watched)


def test_many_threads_compile_a_kernel_once() -> None:
    """Those that come second wait for the first."""
    found, writer = Library(host_target(None)), _Counted()
    results: list[Sequence[object]] = []
    threads = [threading.Thread(target=lambda: results.append(found.compile(writer.of("a")))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert writer.written == ["a"]
    assert len({str(result[0]) for result in results}) == 1


def test_a_warm_cache_compiles_nothing() -> None:
    """Another library, as of another process, links what is on the disk: not even the text is written."""
    cold, warm = _Counted(), _Counted()
    Library(host_target(None)).compile(cold.of("a", "b"))
    addresses, _ = Library(host_target(None)).compile(warm.of("a", "b"))
    assert (cold.written, warm.written) == (["a", "b"], [])
    assert len(set(addresses.values())) == 2


def test_sessions_share_kernels_and_free_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engines of a model live as long as one of its sessions."""
    monkeypatch.setenv("SARDONYX_CACHE_DIR", "")
    shared_cache.cache_clear()
    text = to_bytes(model("graph(x: float[N]) -> (y) { a = Sigmoid(x) b = Cosh(a) y = Atanh(b) }"))
    provider, writer = _Watched(), _Counted()
    sessions = [InferenceSession(text, providers=[provider]) for _ in range(2)]
    symbol, same = provider.symbols
    assert symbol == same
    for left in (1, 0):
        sessions.pop()
        gc.collect()
        library_for(host_target(None)).compile(writer.of(symbol))
        assert writer.written == [symbol] * (1 - left)


def test_there_is_one_library_and_one_driver_for_a_target() -> None:
    """Whoever asks."""
    assert library_for(host_target(None)) is library_for(host_target(None))
    assert driver_for(host_target(None)) is driver_for(host_target(None))


_COMMENT = "\n# of the second edition\n"


def _application(path: Path, addition: str) -> Path:
    """Zip the package, with an addition to one file that writes kernels."""
    package = Path(sardonyx.__file__).parent
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(package.rglob("*.py")):
            name = file.relative_to(package.parent).as_posix()
            changed = name == "sardonyx/codegen/kernels/elementwise.py"
            archive.writestr(name, file.read_text(encoding="utf-8") + (addition if changed else ""))
    return path


def test_editions_of_a_zipped_application_have_kernels_of_their_own(tmp_path: Path) -> None:
    """A package in a zip is told from its next version, so that no version runs the kernels of another."""
    code = "from sardonyx.providers.cpu import library; print(library.__file__, library.edition())"
    editions = set()
    for number, addition in enumerate(("", _COMMENT)):
        path = _application(tmp_path / f"{number}.zip", addition)
        done = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(path)}, capture_output=True, text=True, check=True
        )
        file, found = done.stdout.split()
        assert file.startswith(str(path))
        editions.add(found)
    assert len(editions) == 2
    assert not any(found.startswith("unknown") for found in editions)


def test_without_sources_there_is_no_cache_of_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects on the disk could be those of another edition, and the edition is one that no other process has."""
    assert kernel_cache() is shared_cache()
    library._digest.cache_clear()
    monkeypatch.setattr(library._SOURCES, "known", None)
    monkeypatch.setattr(library, "digest_of", lambda *packages: None)
    try:
        assert kernel_cache() is None
        assert edition() == edition()
        assert edition().startswith("unknown-")
    finally:
        library._digest.cache_clear()


def test_facts_of_another_process_are_taken_where_none_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sources are not read, and what was found out here stays."""
    monkeypatch.setattr(library._SOURCES, "known", None)
    take_facts(("of another process", "1.0"))
    assert edition() == "of another process"
    take_facts(("of a third", "2.0"))
    assert decision_facts()[0] == "of another process"


def test_kernels_at_hand_are_linked_once() -> None:
    """One that a program has already is that program's; the cache gives the code of those that it knows."""
    found, writer = Library(host_target(None)), _Counted()
    first, engines = found.compile(writer.of("a"))
    other = Library(host_target(None))
    other.compile(writer.of("a", "b"))
    objects = found.objects(["a", "b"])
    assert objects is not None
    second, others = found.link(objects)
    assert second["a"] == first["a"]
    assert second["b"] not in first.values()
    assert others[0] is engines[0]
    assert found.objects(["a", "never written"]) is None
