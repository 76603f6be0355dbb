"""Convolutions over planes: borders, phases of strides, tiles, vectors, tasks."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.expr import argument
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, F64
from sardonyx.codegen.emit.window import WindowAxis
from sardonyx.codegen.kernels.images.plane_conv import (
    PlaneConvCode,
    PlaneConvParams,
    makes_at_once,
    pack_plane_filters,
    write_plane_conv,
)
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

_RNG = np.random.default_rng(0)


def _engine(target: Target, makes: int, stride: int, kind: str = "float32", *, has_bias: bool = False) -> Engine:
    engine, module, scalar = Engine(target), Module(target), F32 if kind == "float32" else F64
    write_plane_conv(module, "conv", PlaneConvCode(scalar, stride, makes_at_once(makes), has_bias, argument(0, scalar)))
    engine.add(module)
    return engine


def _axis(size: int, taps: int, stride: int, dilation: int, begin: int, end: int) -> WindowAxis:
    return WindowAxis(size, (size + begin + end - (taps - 1) * dilation - 1) // stride + 1, stride, dilation, begin, taps, 1, 1)


def _conv(
    engine: Engine, x: Array, w: Array, axes: list[WindowAxis], groups: int = 1, bias: Array | None = None, threads: int = 1
) -> Array:
    makes = len(w) // groups
    params = PlaneConvParams.tiled(len(x), groups, w.shape[1], makes, axes, threads=threads)
    size = len(x) * len(w) * axes[0].places * axes[1].places
    guarded = np.full(size + 64, 7, x.dtype)
    buffers = [np.ascontiguousarray(x), pack_plane_filters(w, groups), guarded, *([] if bias is None else [bias])]
    call(engine, "conv", buffers, params.words(), 0, params.tasks())
    assert (guarded[size:] == 7).all()
    return guarded[:size].reshape(len(x), len(w), axes[0].places, axes[1].places)


def _exact(x: Array, w: Array, axes: list[WindowAxis], groups: int = 1) -> Array:
    """The same in float64, tap by tap."""
    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *((max(axis.begin, 0), 99) for axis in axes)])
    members, makes = w.shape[1], len(w) // groups
    result = np.zeros((len(x), len(w), axes[0].places, axes[1].places))
    for m in range(len(w)):
        for c in range(members):
            for i in range(axes[0].taps):
                for j in range(axes[1].taps):
                    starts = [tap * axis.dilation + max(-axis.begin, 0) for tap, axis in zip((i, j), axes, strict=True)]
                    rows, columns = (
                        slice(start, start + axis.stride * (axis.places - 1) + 1, axis.stride)
                        for start, axis in zip(starts, axes, strict=True)
                    )
                    result[:, m] += padded[:, m // makes * members + c, rows, columns] * np.float64(w[m, c, i, j])
    return result


@pytest.mark.parametrize("width", [1, 2, 7, 15, 16, 17, 31, 33, 128, 255, 256, 257, 600])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_widths_and_strides(target: Target, width: int, stride: int) -> None:
    """Vectors, their tails, several tiles in a row."""
    x, w = _RNG.standard_normal((2, 3, 5, width)).astype(np.float32), _RNG.standard_normal((3, 1, 3, 3)).astype(np.float32)
    axes = [_axis(5, 3, 2, 1, 1, 1), _axis(width, 3, stride, 1, 1, 1)]
    found = _conv(_engine(target, 1, stride), x, w, axes, groups=3)
    np.testing.assert_allclose(found, _exact(x, w, axes, 3), rtol=0, atol=1e-5)


@pytest.mark.parametrize("makes", [1, 2, 3, 4, 5, 6, 8])
@pytest.mark.parametrize("members", [1, 3, 8])
def test_groups_of_planes(target: Target, makes: int, members: int) -> None:
    """Several are made at once where their number divides by it; each gets its own bias."""
    x = _RNG.standard_normal((2, 2 * members, 20, 19)).astype(np.float32)
    w, bias = (
        _RNG.standard_normal((2 * makes, members, 3, 2)).astype(np.float32),
        _RNG.standard_normal(2 * makes).astype(np.float32),
    )
    axes = [_axis(20, 3, 1, 2, 2, 0), _axis(19, 2, 1, 3, 1, 2)]
    found = _conv(_engine(target, makes, 1, has_bias=True), x, w, axes, 2, bias)
    np.testing.assert_allclose(found, _exact(x, w, axes, 2) + bias[:, None, None], rtol=0, atol=3e-5)


@pytest.mark.parametrize(("taps", "dilation", "stride"), [(31, 1, 1), (1, 1, 1), (5, 7, 2), (3, 20, 4), (2, 3, 3), (11, 2, 2)])
def test_long_windows(target: Target, taps: int, dilation: int, stride: int) -> None:
    """Windows that reach beyond a tile, or over the whole input."""
    x, w = _RNG.standard_normal((1, 2, 50, 70)).astype(np.float32), _RNG.standard_normal((2, 1, taps, taps)).astype(np.float32)
    axes = [_axis(size, taps, stride, dilation, 15, 14) for size in (50, 70)]
    found = _conv(_engine(target, 1, stride), x, w, axes, groups=2)
    np.testing.assert_allclose(found, _exact(x, w, axes, 2), rtol=0, atol=3e-4)


def test_padding_that_cuts_away(target: Target) -> None:
    """Negative padding skips elements."""
    x, w = _RNG.standard_normal((1, 1, 9, 30)).astype(np.float32), _RNG.standard_normal((1, 1, 2, 2)).astype(np.float32)
    axes = [_axis(9, 2, 1, 1, -2, 0), _axis(30, 2, 1, 1, -1, -3)]
    np.testing.assert_allclose(_conv(_engine(target, 1, 1), x, w, axes), _exact(x, w, axes), rtol=0, atol=1e-5)


def test_float64(target: Target) -> None:
    """Stays what it is."""
    x, w = _RNG.standard_normal((1, 4, 11, 23)), _RNG.standard_normal((4, 2, 3, 3))
    axes = [_axis(11, 3, 1, 1, 1, 1), _axis(23, 3, 2, 1, 1, 1)]
    found = _conv(_engine(target, 2, 2, "float64"), x, w, axes, groups=2)
    np.testing.assert_allclose(found, _exact(x, w, axes, 2), rtol=0, atol=1e-13)


def test_tasks_and_images_change_no_bits(target: Target) -> None:
    """More threads make smaller tiles."""
    engine = _engine(target, 1, 1)
    x, w = _RNG.standard_normal((3, 2, 90, 300)).astype(np.float32), _RNG.standard_normal((2, 1, 3, 3)).astype(np.float32)
    axes = [_axis(90, 3, 1, 1, 1, 1), _axis(300, 3, 1, 1, 1, 1)]
    whole = _conv(engine, x, w, axes, groups=2)
    np.testing.assert_array_equal(_conv(engine, x, w, axes, groups=2, threads=16), whole)
    np.testing.assert_array_equal(_conv(engine, x[1:2], w, axes, groups=2), whole[1:2])


def test_special_values_stay_where_windows_see_them(target: Target) -> None:
    """NaN and infinity of one place reach the places whose windows see it, and no others."""
    x, w = np.zeros((1, 1, 9, 40), np.float32), np.ones((1, 1, 3, 3), np.float32)
    x[0, 0, 4, 20] = np.nan
    axes = [_axis(9, 3, 1, 1, 1, 1), _axis(40, 3, 1, 1, 1, 1)]
    found = np.isnan(_conv(_engine(target, 1, 1), x, w, axes)[0, 0])
    assert found.sum() == 9
    assert found[3:6, 19:22].all()


def test_layers_of_a_volume(target: Target) -> None:
    """Those beyond the first and the last one are zeros."""
    x, w = _RNG.standard_normal((2, 2, 7, 6, 20)).astype(np.float32), _RNG.standard_normal((4, 1, 3, 2, 3)).astype(np.float32)
    axes = [_axis(7, 3, 2, 2, 3, 1), _axis(6, 2, 1, 1, 0, 0), _axis(20, 3, 2, 1, 1, 1)]
    params = PlaneConvParams.tiled(2, 2, 1, 2, axes)
    layers, rows, columns = (axis.places for axis in axes)
    found = np.zeros((2, 4, layers, rows, columns), np.float32)
    call(_engine(target, 2, 2), "conv", [x, pack_plane_filters(w, 2), found], params.words(), 0, params.tasks())
    padded = np.pad(x, [(0, 0), (0, 0), (3, 3), (0, 0), (0, 0)])
    for layer in range(layers):
        seen = [padded[:, :, 2 * layer + 2 * tap] for tap in range(3)]
        exact = sum(_exact(part, w[:, :, tap], axes[1:], 2) for tap, part in enumerate(seen))
        np.testing.assert_allclose(found[:, :, layer], exact, rtol=0, atol=1e-5)


def test_no_places_are_no_tasks() -> None:
    """An axis without elements."""
    axes = [_axis(5, 3, 1, 1, 1, 1), WindowAxis(0, 0, 1, 1, 0, 1, 1, 1)]
    assert PlaneConvParams.tiled(1, 2, 1, 1, axes).tasks() == 0


@pytest.mark.parametrize(("groups", "chain"), [(1, 1), (2, 3)])
def test_sums_over_few_channels_are_made_of_chains(target: Target, groups: int, chain: int) -> None:
    """What is lost beside a large number is lost in its own chain only; a group of several has one chain."""
    axes = [_axis(5, 5, 1, 1, 0, 0), _axis(20, 5, 1, 1, 0, 0)]
    x, w = np.ones((1, 3 * groups, 5, 20), np.float32), np.full((groups, 3, 5, 5), 2, np.float32)
    x[0, 0, 0] = 1e8
    assert PlaneConvParams.tiled(1, groups, 3, 1, axes).chain == chain
    found = _conv(_engine(target, 1, 1), x, w, axes, groups=groups)[0, 0]
    lost = 2 * 20 if chain == 1 else 2 * 70
    np.testing.assert_allclose(found, 1e9 + 2 * 70 - lost, rtol=0, atol=64)
