"""Numbers looked up among keys, for every level of instructions."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I32, I64, of_dtype
from sardonyx.codegen.kernels.lookup import LookupParams, write_encoder, write_lookup
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import available_levels, host_target

TARGETS = [host_target(level) for level in available_levels()]


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.isa)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32])
@pytest.mark.parametrize("element", [I32, I64])
@pytest.mark.parametrize("count", [1, 2, 3, 17, 1000])
def test_each_number_gets_the_value_of_its_key(target, dtype, element, count):
    """Others get the one behind the last, NaN the one behind that."""
    module = Module(target)
    write_lookup(module, "lookup", of_dtype(np.dtype(dtype)), element)
    engine = Engine(target)
    engine.add(module)
    rng = np.random.default_rng(count)
    keys = np.unique((rng.standard_normal(count) * 50).astype(dtype))
    x = np.concatenate([keys, keys + 1, (rng.standard_normal(4200) * 60).astype(dtype), keys[:1] - 7])
    if np.dtype(dtype).kind == "f":
        x = np.concatenate([x, [np.nan, np.inf, -np.inf, -0.0]]).astype(dtype)
    values = rng.integers(-9, 9, len(keys) + 2).astype(np.int32 if element is I32 else np.int64)
    result = np.full(x.shape, 99, values.dtype)
    params = LookupParams(len(x), len(keys))
    assert params.tasks() == 2
    call(engine, "lookup", [x, keys, values, result], params.words(), 0, params.tasks())
    place = np.searchsorted(keys, x).clip(max=len(keys) - 1)
    expected = np.where(keys[place] == x, values[place], np.where(np.isnan(x), values[-1], values[-2]))
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.isa)
@pytest.mark.parametrize("width", [1, 5, 33])
def test_a_category_is_a_one_in_its_column(target, width):
    """A number that is none leaves zeros, and is reported."""
    module = Module(target)
    write_encoder(module, "encoder", I64)
    engine = Engine(target)
    engine.add(module)
    rng = np.random.default_rng(width)
    keys, columns = np.arange(width) * 3 - 4, rng.permutation(width)
    x = rng.choice(keys, 50)
    for unknown in (None, 31):
        if unknown is not None:
            x[unknown] = 0
        result, status = np.full((50, width), 9, np.float32), np.zeros(1, np.int64)
        params = LookupParams(50, width, width)
        call(engine, "encoder", [x, keys, columns, result, status], params.words(), 0, params.tasks())
        expected = np.zeros((50, width), np.float32)
        expected[np.arange(50), columns[(x + 4) // 3 % width]] = 1
        if unknown is not None:
            expected[unknown] = 0
        np.testing.assert_array_equal(result, expected)
        assert status[0] == (0 if unknown is None else unknown + 1)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.isa)
@pytest.mark.parametrize("dtype", [np.int64, np.int32])
@pytest.mark.parametrize("count", [1, 2, 50])
def test_keys_that_follow_one_another_are_counted(target, dtype, count):
    """Also at both ends of their type, where the distance of a number wraps around."""
    module, info = Module(target), np.iinfo(dtype)
    write_lookup(module, "lookup", of_dtype(np.dtype(dtype)), I64)
    engine = Engine(target)
    engine.add(module)
    values = np.arange(100, 102 + count)
    for first in (info.min, -3, 0, info.max - count + 1):
        keys = np.array([first + place for place in range(count)], dtype)
        x = np.array([info.min, info.min + 1, -4, -3, -1, 0, 1, 49, 50, info.max - 1, info.max, *keys.tolist()], dtype)
        result = np.full(x.shape, 99)
        params = LookupParams(len(x), count)
        call(engine, "lookup", [x, keys, values, result], params.words(), 0, params.tasks())
        places = {int(key): place for place, key in enumerate(keys)}
        np.testing.assert_array_equal(result, [values[places.get(int(number), count)] for number in x])
