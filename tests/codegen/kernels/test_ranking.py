"""Keys in the order of elements, and their sort."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, F64, I8, I32, I64, U8, U32, U64, Type, of_dtype
from sardonyx.codegen.kernels.ranking import INSERTION, Keys, each_lane, key_type, sort_key, write_sort
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

TYPES = {"float32": F32, "float64": F64, "int8": I8, "int64": I64, "uint8": U8, "uint64": U64}


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """Keys of each type, both ways, and sorts of both kinds of keys."""
    module = Module(target)
    for name, kind in TYPES.items():
        for descending in (False, True):
            with module.kernel(f"keys_{name}_{descending}") as b:
                x, y = b.buffer(0, kind), b.buffer(1, key_type(kind))
                with b.loop(b.begin, b.end) as i:
                    y.store(sort_key(b, x.load(i), descending=descending), i)
    for key in (U32, U64):
        _write_sort_kernel(module, key)
    with module.kernel("lanes") as b:
        lanes = b.lanes(I32)
        found, count = b.buffer(1, I32), b.variable(b.const(I64, 0))
        for i, span in b.vectors(b.begin, b.end, I32):
            mask = b.buffer(0, I32).load(i, span) > 0
            with each_lane(b, mask) as lane:
                found.store((i + lane).to(I32), count.value)
                count.add(1)
        assert lanes > 0
    engine = Engine(target)
    engine.add(module)
    return engine


def _write_sort_kernel(module: Module, key: Type) -> None:
    sort = write_sort(module, f"sort_{key.bits}", key)
    with module.kernel(f"run_sort_{key.bits}") as b:
        keys = Keys(b, b.buffer(0, I32), b.end, key)
        source, result, places = b.buffer(1, key), b.buffer(2, key), b.buffer(3, I32)
        with b.loop(0, b.end) as i:
            keys.store(source.load(i), i, i)
        keys.sort(sort, b.end)
        with b.loop(0, b.end) as i:
            result.store(keys.keys.load(i), i)
            places.store(keys.places.load(i), i)


def _numbers(name: str) -> Array:
    random = np.random.default_rng(0)
    if name.startswith("float"):
        edges = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45, -1e-45, 1.0, -1.0]
        return np.array([*edges, *random.standard_normal(50)], name)
    info = np.iinfo(name)
    return np.concatenate([random.integers(info.min, info.max, 50, name, endpoint=True), np.array([info.min, info.max, 0], name)])


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("descending", [False, True])
def test_keys_are_in_the_order_of_elements(engine: Engine, name: str, descending: bool) -> None:
    """NaN last either way, and both zeros the same."""
    x = _numbers(name)
    keys = np.zeros(x.size, "uint64" if x.itemsize == 8 else "uint32")
    call(engine, f"keys_{name}_{descending}", [x, keys], (), 0, x.size)
    wanted = np.argsort((-x if name.startswith("float") else ~x) if descending else x, kind="stable")
    np.testing.assert_array_equal(np.argsort(keys, kind="stable"), wanted)


@pytest.mark.parametrize("count", [0, 1, 2, INSERTION, INSERTION + 1, 1000])
@pytest.mark.parametrize("bits", [32, 64])
def test_the_sort_is_stable(engine: Engine, count: int, bits: int) -> None:
    """Equal keys keep the order of their places, whether few differ or all."""
    for most in (1, 7, 1 << 31):
        keys = np.random.default_rng(1).integers(0, most, count).astype(f"uint{bits}")
        keys = keys << np.uint64(20) if bits == 64 else keys
        memory = np.zeros(max(count, 1) * 2 * (bits // 8 + 4), np.uint8)
        result, places = np.zeros(count, keys.dtype), np.zeros(count, np.int32)
        call(engine, f"run_sort_{bits}", [memory, keys, result, places], (), 0, count)
        np.testing.assert_array_equal(places, np.argsort(keys, kind="stable"))
        np.testing.assert_array_equal(result, np.sort(keys))


@pytest.mark.parametrize("count", [0, 1, 7, 16, 37])
def test_each_lane_that_holds_is_visited_once(engine: Engine, count: int) -> None:
    """In order, and none behind the end."""
    x = np.random.default_rng(2).integers(-1, 2, count).astype(np.int32)
    found = np.full(count + 1, -1, np.int32)
    call(engine, "lanes", [x, found], (), 0, count)
    wanted = np.flatnonzero(x > 0)
    np.testing.assert_array_equal(found[: wanted.size], wanted)
    assert (found[wanted.size :] == -1).all()


def test_keys_are_as_wide_as_elements_need(target: Target) -> None:
    """Types below 32 bits have keys of 32."""
    assert [key_type(of_dtype(np.dtype(name))) for name in ("int8", "float16", "float32", "int64")] == [U32, U32, U32, U64]
