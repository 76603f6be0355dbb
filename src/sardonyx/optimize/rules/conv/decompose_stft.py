"""Compute a short-time Fourier transform by a convolution.

    STFT(signal, step, window?, length?)      ->      c = Conv(signal as (N, 1, T), w) {strides = [step]}
                                                      Reshape(Transpose(c), (N, frames, bins, 2))

where w holds cosines and sines of each bin, times the window. For providers that have convolutions but no transform: a convolution
takes more operations than a fast transform, but for such frames a NumPy transform is slower. A provider that prefers STFT, as the
CPU provider does, gets it as it is, and so do files.

Left alone:
    complex signals, and such of unknown shape; types other than float
    steps, windows and lengths that are no constants
    frames of more than 512 elements, for which transforms are faster
"""

from __future__ import annotations

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Value
from sardonyx.optimize.contract import Level
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.target import standard
from sardonyx.optimize.terms import Term

__all__ = ["DECOMPOSE_STFT"]

_LONGEST = 512


@dataclasses.dataclass(frozen=True, slots=True)
class _Frames:
    """How frames are taken of a signal."""

    step: int
    """From one to the next."""
    window: Array
    """Factors of the elements of a frame, float64."""


def _pattern(op: PatternBuilder, signal: Term, step: Term) -> Term:
    return op.STFT(signal, op.constant(step), op.optional_constant("window"), op.optional_constant("length"))


def _check(match: Match) -> str | _Frames:
    signal, step = match["signal"], match.constant("step", 1)
    shape = signal.shape
    if signal.dtype is not DataType.FLOAT or shape is None or (len(shape) != 2 and (len(shape) != 3 or shape[2] != 1)):
        return f"the signal is {signal.dtype} {shape}, expected float (batch, length, 1)"
    window, length = match.constant("window", _LONGEST), match.constant("length", 1)
    if window is None and length is None:
        return f"the frames have no length that is known, or more than {_LONGEST} elements"
    size = int(length.reshape(())) if length is not None else len(window) if window is not None else 0
    factors = np.ones(size) if match.get("window") is None else window
    if step is None or int(step.reshape(())) < 1 or factors is None or factors.shape != (size,) or not 1 <= size <= _LONGEST:
        return f"frames of {size} elements have no step and no window that fit them, or more than {_LONGEST} elements"
    return _Frames(int(step.reshape(())), factors.astype(np.float64))


def _replace(op: Builder, match: Match, frames: _Frames) -> Value:
    signal, size = match["signal"], len(frames.window)
    bins = size // 2 + 1 if match.root.flag("onesided", True) else size
    angles = 2 * np.pi * (np.outer(np.arange(bins), np.arange(size)) % size) / size
    waves = np.stack([np.cos(angles), -np.sin(angles)], axis=1) * frames.window
    row = op.Transpose(signal, perm=[0, 2, 1]) if len(signal.shape or ()) == 3 else op.Unsqueeze(signal, np.array([1], np.int64))
    found = op.Conv(row, waves.reshape(2 * bins, 1, size).astype(np.float32), strides=[frames.step])
    return op.Reshape(op.Transpose(found, perm=[0, 2, 1]), np.array([0, 0, bins, 2], np.int64))


DECOMPOSE_STFT = Rule(
    "decompose_stft", _pattern, _replace, _check, Level.EXTENDED, takes_apart=standard("STFT"), aliases=("STFTDecomposition",)
)
