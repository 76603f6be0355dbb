"""Depthwise convolution, and that of small groups: every window, every tail of channels and places."""

import dataclasses
from collections.abc import Sequence
from math import prod

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.emit.values import Register, Span
from sardonyx.codegen.emit.window import WindowAxis
from sardonyx.codegen.kernels.depthwise import DepthwiseParams, pack_depthwise, write_depthwise
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

_RNG = np.random.default_rng(0)


def _random(*shape: int) -> Array:
    return _RNG.standard_normal(shape).astype(np.float32)


@dataclasses.dataclass
class _Case:
    """An input (N, H, W, C), filters (C, channels of a group, kH, kW) and where the window lies."""

    x: Array
    w: Array
    strides: Sequence[int] = (1, 1)
    dilations: Sequence[int] = (1, 1)
    pads: Sequence[int] = (1, 1, 1, 1)

    @property
    def groups(self) -> tuple[int, int]:
        """How many channels a group reads, and makes."""
        return self.w.shape[1], self.w.shape[1] * len(self.w) // self.x.shape[-1]

    def places(self) -> tuple[int, int]:
        """The output's spatial sizes."""
        reach = [(taps - 1) * dilation + 1 for taps, dilation in zip(self.w.shape[2:], self.dilations, strict=True)]
        high, wide = ((self.x.shape[1 + i] + self.pads[i] + self.pads[2 + i] - reach[i]) // self.strides[i] + 1 for i in range(2))
        return high, wide

    def params(self, target: Target, threads: int = 1) -> DepthwiseParams:
        """The kernel's parameters."""
        (N, H, W, C), (high, wide) = self.x.shape, self.places()
        M, _, kh, kw = self.w.shape
        outer = WindowAxis(H, high, self.strides[0], self.dilations[0], self.pads[0], kh, W * C, wide * M)
        inner = WindowAxis(W, wide, self.strides[1], self.dilations[1], self.pads[1], kw, C, M)
        return DepthwiseParams.blocked(target, N, M, (outer, inner), threads=threads)

    def exact(self) -> tuple[Array, Array]:
        """The result in float64, and the sum of magnitudes that bounds its error."""
        top, left, bottom, right = self.pads
        x = np.pad(self.x.astype(np.float64), [(0, 0), (top, bottom), (left, right), (0, 0)])
        shape = (len(x), *self.places(), len(self.w))
        result, bound = np.zeros(shape), np.zeros(shape)
        members, makes = self.groups
        firsts = np.arange(len(self.w)) // makes * members
        for member, *tap in np.ndindex(*self.w.shape[1:]):
            spans = [
                slice(t * d, t * d + (p - 1) * s + 1, s)
                for t, d, p, s in zip(tap, self.dilations, self.places(), self.strides, strict=True)
            ]
            part = x[(slice(None), *spans)][..., firsts + member]
            factor = self.w[(slice(None), member, *tap)].astype(np.float64)
            result += part * factor
            bound += np.abs(part * factor)
        return result, bound

    def run(self, engine: Engine, threads: int = 1) -> Array:
        """The result of the kernel "depthwise", with guard elements after it that must stay."""
        params = self.params(engine.target, threads)
        shape = (len(self.x), *self.places(), len(self.w))
        guarded = np.full(prod(shape) + 64, 7, np.float32)
        arrays = [self.x, pack_depthwise(self.w, engine.target.lanes(32)), guarded]
        call(engine, "depthwise", arrays, params.words(), 0, params.tasks())
        assert (guarded[prod(shape) :] == 7).all()
        return guarded[: prod(shape)].reshape(shape)


def _engine(target: Target, case: _Case) -> Engine:
    module, engine = Module(target), Engine(target)
    taps, stride, dilation = case.w.shape[-1], case.strides[1], case.dilations[1]
    write_depthwise(module, "depthwise", taps=taps, stride=stride, dilation=dilation, groups=case.groups)
    engine.add(module)
    return engine


def _close(result: Array, case: _Case) -> bool:
    exact, bound = case.exact()
    return bool((np.abs(result - exact) <= 1e-6 * bound + 1e-30).all())


@pytest.mark.parametrize("C", [1, 3, 4, 5, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 97])
def test_tails_of_channels(target: Target, C: int) -> None:
    """Whole vectors, several at a time, and what is left."""
    case = _Case(_random(2, 4, 15, C), _random(C, 1, 3, 3))
    assert _close(case.run(_engine(target, case)), case)


def test_tails_of_places(target: Target) -> None:
    """Rows shorter and longer than what goes at a time."""
    cases = [_Case(_random(1, 3, W, 20), _random(20, 1, 3, 3)) for W in (1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 19)]
    engine = _engine(target, cases[0])
    assert all(_close(case.run(engine), case) for case in cases)


@pytest.mark.parametrize(
    ("kernel", "strides", "dilations", "pads"),
    [
        ((3, 3), (2, 2), (1, 1), (1, 1, 1, 1)),
        ((5, 5), (1, 1), (1, 1), (2, 2, 2, 2)),
        ((7, 7), (1, 1), (1, 1), (3, 3, 3, 3)),
        ((3, 4), (2, 1), (2, 3), (0, 5, 4, 1)),
        ((1, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
        ((2, 15), (1, 1), (1, 1), (0, 7, 1, 7)),
        ((3, 3), (1, 40), (1, 1), (1, 1, 1, 1)),
        ((3, 3), (1, 1), (1, 1), (9, 9, 9, 9)),
    ],
)
def test_windows(
    target: Target, kernel: tuple[int, int], strides: tuple[int, int], dilations: tuple[int, int], pads: tuple[int, ...]
) -> None:
    """Strides, dilations, long lines, and places that see nothing but padding."""
    case = _Case(_random(1, 12, 41, 18), _random(18, 1, *kernel), strides, dilations, pads)
    assert _close(case.run(_engine(target, case)), case)


@pytest.mark.parametrize("groups", [(2, 2), (4, 4), (8, 8), (16, 16), (1, 2), (1, 4), (1, 16), (2, 8), (2, 4)], ids=str)
@pytest.mark.parametrize(
    ("kernel", "strides", "dilations", "pads"),
    [
        ((3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
        ((3, 3), (2, 2), (1, 1), (1, 0, 1, 1)),
        ((1, 5), (1, 1), (1, 3), (0, 6, 0, 6)),
        ((3, 2), (2, 1), (2, 3), (9, 5, 4, 1)),
    ],
)
def test_small_groups(
    target: Target,
    groups: tuple[int, int],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
    pads: tuple[int, ...],
) -> None:
    """Each filter reads all channels of its group, also in the last vector of channels and at the ends of rows."""
    members, makes = groups
    if target.lanes(32) % makes:
        pytest.skip("a group does not lie in one vector")
    case = _Case(_random(2, 7, 21, 5 * members), _random(5 * makes, members, *kernel), strides, dilations, pads)
    assert case.groups == groups
    assert _close(case.run(_engine(target, case)), case)


def test_threads_do_not_change_bits(target: Target) -> None:
    """However rows and places are cut into tasks."""
    case = _Case(_random(2, 3, 21, 19), _random(19, 1, 3, 3))
    engine = _engine(target, case)
    assert case.run(engine).tobytes() == case.run(engine, 2).tobytes() == case.run(engine, 7).tobytes()


def test_long_rows_are_cut(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a run can be ended within them; the bits are the same."""
    case = _Case(_random(1, 1, 300, 19), _random(19, 1, 1, 3), pads=(0, 1, 0, 1))
    engine = _engine(target, case)
    whole = case.run(engine)
    assert case.params(target).tasks() == 1
    monkeypatch.setattr("sardonyx.codegen.kernels.depthwise._TASK_PRODUCTS", 1 << 10)
    assert case.params(target).tasks() >= 16
    assert case.run(engine).tobytes() == whole.tobytes()


def test_many_rows_are_cut(target: Target) -> None:
    """A task counts the products of all its rows, of lanes that are not filled too."""
    for channels, size, taps in ((1, 4000, 3), (64, 4000, 3), (1, 400_000, 20_000)):
        axis = WindowAxis(size, size, 1, 1, taps // 2, taps, channels, channels)
        outer = WindowAxis(1, 1, 1, 1, 0, 1, 0, 0) if taps > 3 else axis
        params = DepthwiseParams.blocked(target, 1, channels, (outer, axis))
        own = params.block_rows * params.block_places * taps * outer.taps * -(-channels // target.lanes(32)) * target.lanes(32)
        assert own <= 1 << 28


def test_nan_stays_where_windows_see_it(target: Target) -> None:
    """A NaN reaches the places of its channel whose window holds it, and no other."""
    case = _Case(np.ones((1, 5, 11, 5), np.float32), _random(5, 1, 3, 3))
    case.x[0, 2, 9, 3] = np.nan
    found = np.isnan(case.run(_engine(target, case)))
    expected = np.zeros(found.shape, np.bool_)
    expected[0, 1:4, 8:11, 3] = True
    assert (found == expected).all()


def test_nan_stays_in_its_group(target: Target) -> None:
    """The filters of other groups do not see it, though it lies in one vector with theirs."""
    case = _Case(np.ones((1, 3, 9, 12), np.float32), _random(12, 4, 3, 3))
    case.x[0, 1, 4, 6] = np.nan
    found = np.isnan(case.run(_engine(target, case)))
    expected = np.zeros(found.shape, np.bool_)
    expected[0, :, 3:6, 4:8] = True
    assert (found == expected).all()


@pytest.mark.parametrize("rounds", [1, 30])
def test_an_epilogue_sees_each_element_once(target: Target, rounds: int) -> None:
    """Bias and residual, by short and by long epilogues."""

    def finish(b: Kernel, sums: Register, place: Register, column: Register, span: Span) -> Register:
        total = sums + b.buffer(3, F32).load(column, span)
        for _ in range(rounds):
            total = total + b.buffer(4, F32).load(place, span)
        return total

    case = _Case(_random(2, 6, 14, 70), _random(70, 1, 3, 3))
    module, engine = Module(target), Engine(target)
    write_depthwise(module, "finished", taps=3, stride=1, dilation=1, epilogue=finish)
    engine.add(module)
    bias, residual = _random(70), _random(2, 6, 14, 70)
    result = np.zeros((2, 6, 14, 70), np.float32)
    params = case.params(target)
    arrays = [case.x, pack_depthwise(case.w, target.lanes(32)), result, bias, residual]
    call(engine, "finished", arrays, params.words(), 0, params.tasks())
    np.testing.assert_allclose(result, case.exact()[0] + bias + rounds * residual, atol=2e-4)
