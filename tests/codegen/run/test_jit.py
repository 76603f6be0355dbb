"""Compiling, linking, and the life of machine code."""

import ctypes
import gc
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from sardonyx.codegen import llvm
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I64
from sardonyx.codegen.run.jit import Engine, kernel_key, object_key
from sardonyx.codegen.target import Target, available_levels, host_target
from sardonyx.disk_cache import DiskCache
from sardonyx.errors import Fail

_CALL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)


def _adder(target: Target, symbol: str, number: int, repeats: int = 1) -> Module:
    module = Module(target)
    with module.function(symbol, I64, returns=I64, export=True) as f:
        total = f.variable(f.arguments[0])
        for _ in range(repeats):
            total.set((total.value * 3) ^ 5)
        f.give(total.value + number if repeats == 1 else total.value)
    return module


def _call(engine: Engine, symbol: str, number: int) -> int:
    return int(_CALL(engine.address(symbol))(number))


@pytest.mark.parametrize("level", [0, 1, 2])
def test_every_level_of_optimisation_computes_the_same(target: Target, level: int) -> None:
    """Levels differ in speed only."""
    engine = Engine(target, level=level)
    engine.add(_adder(target, "f", 1))
    assert _call(engine, "f", 10) == (30 ^ 5) + 1


def test_modules_are_compiled_side_by_side(target: Target) -> None:
    """Many modules in many threads give what each gives alone."""
    modules = [_adder(target, f"f{i}", i) for i in range(40)]
    engine = Engine(target)
    engine.add(*modules)
    assert [_call(engine, f"f{i}", 1) for i in range(40)] == [6 + i for i in range(40)]


def test_a_warm_cache_runs_no_code_generation(target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second engine loads the object that the first one left."""
    events: list[str] = []
    cache = DiskCache(tmp_path / "objects", report=lambda event, _: events.append(event))
    Engine(target, cache=cache).add(_adder(target, "f", 1))
    engine = Engine(target, cache=cache)
    monkeypatch.setattr("sardonyx.codegen.run.compile_process.compile_texts", None)
    engine.add(_adder(target, "f", 1))
    assert _call(engine, "f", 1) == 7
    assert events == ["disk_cache.miss", "disk_cache.hit"]


def test_a_damaged_object_is_compiled_again(target: Target, tmp_path: Path) -> None:
    """A truncated file costs time, never a wrong result."""
    cache = DiskCache(tmp_path / "objects")
    Engine(target, cache=cache).add(_adder(target, "f", 1))
    for path in cache.folder.iterdir():
        path.write_bytes(path.read_bytes()[:-10])
    engine = Engine(target, cache=cache)
    engine.add(_adder(target, "f", 1))
    assert _call(engine, "f", 1) == 7


def test_objects_of_other_targets_and_levels_have_other_keys() -> None:
    """Another CPU, another level of optimisation, another text: another object."""
    targets = [host_target(level) for level in available_levels()]
    keys = {object_key(text, target, level) for text in ("a", "b") for target in targets for level in (0, 1)}
    assert len(keys) == 4 * len(targets)


def test_a_symbol_is_taken_once(target: Target) -> None:
    """A second kernel of one name is an error that leaves the first in place."""
    engine = Engine(target)
    engine.add(_adder(target, "f", 1))
    with pytest.raises(Fail, match="'f'"):
        engine.add(_adder(target, "f", 2))
    assert _call(engine, "f", 1) == 7


def test_an_unknown_symbol_is_a_key_error(target: Target) -> None:
    """Only exported functions have addresses."""
    with pytest.raises(KeyError):
        Engine(target).address("f")


def test_engines_are_freed_with_their_owner(target: Target) -> None:
    """Engines made and dropped in turn from several threads neither crash nor pile up code."""

    def work() -> None:
        for number in range(10):
            engine = Engine(target)
            engine.add(_adder(target, "f", number))
            assert _call(engine, "f", 1) == 6 + number

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()


def test_code_generation_lets_other_python_threads_run(target: Target) -> None:
    """The GIL is free while a large module is compiled."""
    module = _adder(target, "f", 0, repeats=3000)
    compiling = threading.Thread(target=lambda: llvm.compile_text(str(module), target.triple, target.features, 1))
    compiling.start()
    ticks = 0
    while compiling.is_alive():
        ticks += 1
        time.sleep(0.0005)
    assert ticks > 3


def test_kernels_may_call_the_c_library(target: Target) -> None:
    """Symbols that LLVM invents, such as memcpy, are found in the process."""
    module = Module(target)
    with module.function("copy", I64, I64, I64, export=True) as f:
        f.intrinsic("memcpy", f.arguments[0].type, f.arguments)
    engine = Engine(target)
    engine.add(module)
    x, y = np.arange(5.0), np.zeros(5)
    ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(engine.address("copy"))(y.ctypes.data, x.ctypes.data, 40)
    assert (x == y).all()


def test_kernels_are_found_by_name_without_their_text(target: Target, tmp_path: Path) -> None:
    """A kernel of the same name and edition is loaded and not written; of another edition it is written anew."""
    written: list[str] = []

    def write(module: Module, symbol: str) -> None:
        written.append(symbol)
        with module.function(symbol, I64, returns=I64, export=True) as f:
            f.give(f.arguments[0] + 1)

    for edition in ("1", "1", "2"):
        engine = Engine(target, cache=DiskCache(tmp_path / "objects"))
        engine.add_kernels({"f": write, "g": write}, edition)
        assert _call(engine, "g", 1) == 2
    assert written == ["f", "g", "f", "g"]


def test_modules_are_found_by_name_without_their_text(target: Target, tmp_path: Path) -> None:
    """One with several functions too."""
    written: list[int] = []

    def write(module: Module) -> None:
        written.append(1)
        for number, symbol in enumerate(("first", "second")):
            with module.function(symbol, I64, returns=I64, export=True) as f:
                f.give(f.arguments[0] + number)

    for edition in ("1", "1", "2"):
        engine = Engine(target, cache=DiskCache(tmp_path / "objects"))
        engine.add_named("both", ("first", "second"), write, edition)
        assert [_call(engine, symbol, 5) for symbol in ("first", "second")] == [5, 6]
    assert len(written) == 2


def test_kernels_whose_code_is_at_hand_are_linked(target: Target, tmp_path: Path) -> None:
    """Nothing is compiled; a symbol that is known already is an error."""

    def write(module: Module, symbol: str) -> None:
        with module.function(symbol, I64, returns=I64, export=True) as f:
            f.give(f.arguments[0] + 7)

    cache = DiskCache(tmp_path)
    Engine(target, cache=cache).add_kernels({"f": write}, "edition")
    content = cache.load(kernel_key("edition", "f", target))
    assert content is not None
    engine = Engine(target)
    engine.link({"f": content})
    assert _call(engine, "f", 1) == 8
    with pytest.raises(Fail, match="already"):
        engine.link({"f": content})
