"""Windows as rows of a matrix: the padded input laid out by phase, and the columns gathered from it.

Laid out by phase, any stride reads contiguous elements (stride 2 along one axis, tap k reads phase k % 2 from element k // 2):

    x0 x1 x2 x3 x4 x5  ->  phase 0: x0 x2 x4
                           phase 1: x1 x3 x5

A gathered row may keep the few elements between the end of one output row and the start of the next (`width` > the last axis'
output): a tap of a whole channel is then one contiguous run. The surplus columns hold other outputs' elements or zeros.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided

from sardonyx.dtypes import Array
from sardonyx.providers.reference.algorithms.window import PlacedWindow

__all__ = ["ColumnGatherer", "SlidingAxis", "sliding_axes"]

_BLOCK_AXES = (slice(None),) * 3
"""All images, groups and channels of a block."""


@dataclasses.dataclass(frozen=True, slots=True)
class SlidingAxis:
    """One spatial axis and the window on it."""

    size: int
    """Length of the input."""
    output: int
    """Length of the output."""
    kernel: int
    """Taps."""
    stride: int
    """Input elements between outputs."""
    dilation: int
    """Input elements between taps."""
    begin: int
    """Padding before the first element."""

    @property
    def phases(self) -> int:
        """Phases that are laid out: those after the last tap's are never read."""
        return min(self.stride, (self.kernel - 1) * self.dilation + 1)

    @property
    def length(self) -> int:
        """Elements of one phase."""
        return self.output + (self.kernel - 1) * self.dilation // self.stride


def sliding_axes(spatial: Sequence[int], window: PlacedWindow) -> tuple[SlidingAxis, ...]:
    """Return the axes of `window` over `spatial`, without those of length 1 on which nothing slides; never empty."""
    axes = tuple(
        SlidingAxis(*values)
        for values in zip(spatial, window.output, window.kernel, window.strides, window.dilations, window.begins, strict=True)
    )
    moving = tuple(axis for axis in axes if not axis.size == axis.output == axis.kernel == 1 or axis.begin)
    return moving or axes[-1:]


class ColumnGatherer:
    """Gathers the windows of one block of images and groups after another in the same scratch memory.

    gatherer.load(block)            block (n, g, C, *sizes); n, g no larger than in the first block
    gatherer.columns(slice(0, 8))   (n, g, C * taps, 8, ..., width), valid until the next call
    """

    def __init__(self, axes: Sequence[SlidingAxis], width: int) -> None:
        """Prepare for windows on `axes`, `width` elements per gathered row (no meaning on one axis only)."""
        self._axes = axes
        self._width = width
        self._phases: Array = np.empty(0)
        self._padded: Array = np.empty(0)
        self._columns: Array = np.empty(0)
        self._reads_input = width == axes[-1].output and all(
            axis.stride == 1 and not axis.begin and axis.length <= axis.size for axis in axes
        )
        self._runs = [_tap_runs(axis) for axis in axes]
        self._phase_slices = [_phase_slices(axis) for axis in axes]

    def load(self, x: Array) -> None:
        """Lay out x, padded with zeros, as (n, g, C, *phases, *lengths); x itself where nothing would change."""
        axes = self._axes
        if self._reads_input:
            self._phases = x.reshape(*x.shape[:3], *(1,) * len(axes), *x.shape[3:])
            return
        shape = (*x.shape[:3], *(axis.phases for axis in axes), *(axis.length for axis in axes))
        count = math.prod(shape)
        if self._padded.size < count:
            self._padded = np.zeros(count + axes[-1].length, x.dtype)
        self._phases = self._padded[:count].reshape(shape)
        for choice in itertools.product(*self._phase_slices):
            phase = (number for number, _, _ in choice)
            inside: list[int | slice] = [*_BLOCK_AXES, *phase, *(target for _, target, _ in choice)]
            self._phases[tuple(inside)] = x[(*_BLOCK_AXES, *(source for _, _, source in choice))]

    def columns(self, rows: slice) -> Array:
        """Return the windows of outputs `rows` of the first axis as columns; a view of the input for a single tap."""
        axes, phases = self._axes, self._phases
        leading, element_strides = phases.shape[:3], phases.strides[3 + len(axes) :]
        inner = (*(axis.output for axis in axes[1:-1]), self._width) if len(axes) > 1 else ()
        shape = (rows.stop - rows.start, *inner)
        gathered = self._scratch((*leading, *(axis.kernel for axis in axes), *shape))
        for runs in itertools.product(*self._runs):
            corner = (runs[0].start + rows.start, *(run.start for run in runs[1:]))
            first: list[int | slice] = [*_BLOCK_AXES, *(run.phase for run in runs)]
            origin = phases[(*first, *(slice(start, None) for start in corner))]
            between = (run.step * stride for run, stride in zip(runs, element_strides, strict=True))
            source = as_strided(
                origin,
                (*leading, *(run.count for run in runs), *shape),
                (*phases.strides[:3], *between, *element_strides),
                writeable=False,
            )
            if gathered is None:
                return source.reshape(*leading, *shape)
            gathered[(*_BLOCK_AXES, *(run.taps for run in runs))] = source
        assert gathered is not None, "every axis has a tap"
        return gathered.reshape(*leading[:2], -1, *shape)

    def _scratch(self, shape: tuple[int, ...]) -> Array | None:
        if all(axis.kernel == 1 for axis in self._axes):
            return None
        count = math.prod(shape)
        if self._columns.size < count:
            self._columns = np.empty(count, self._phases.dtype)
        return self._columns[:count].reshape(shape)


@dataclasses.dataclass(frozen=True, slots=True)
class _TapRun:
    """Taps of one axis that read one phase, at equal distances."""

    phase: int
    """The phase that they read."""
    taps: slice
    """Their numbers."""
    count: int
    """How many they are."""
    start: int
    """Element of the phase that the first of them reads for output 0."""
    step: int
    """Elements of the phase between them."""


def _tap_runs(axis: SlidingAxis) -> list[_TapRun]:
    period = axis.stride // math.gcd(axis.stride, axis.dilation)
    runs = []
    for tap in range(min(period, axis.kernel)):
        start, phase = divmod(tap * axis.dilation, axis.stride)
        count = len(range(tap, axis.kernel, period))
        runs.append(_TapRun(phase, slice(tap, None, period), count, start, period * axis.dilation // axis.stride))
    return runs


def _phase_slices(axis: SlidingAxis) -> list[tuple[int, slice, slice]]:
    """Return for each phase that a tap reads: its number, where the input lies in it, and which elements of the input."""
    slices = []
    for phase in sorted({tap * axis.dilation % axis.stride for tap in range(axis.kernel)}):
        first = max(0, -((phase - axis.begin) // axis.stride))
        start = first * axis.stride + phase - axis.begin
        count = max(0, min(axis.length - first, -(-(axis.size - start) // axis.stride)))
        source = slice(start, start + (count - 1) * axis.stride + 1, axis.stride) if count else slice(0, 0)
        slices.append((phase, slice(first, first + count), source))
    return slices
