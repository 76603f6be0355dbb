"""Functions of 16-bit activations from tables; LiteRT judges them in `test_cases.py`."""

from __future__ import annotations

import numpy as np
from formats.tflite.running import run
from support.flat_models import Sketch

from sardonyx.dtypes import Array


def _exp(numbers: Array, scale: float, out_scale: float) -> Array:
    sketch = Sketch()
    x = sketch.input(numbers.shape, "INT16", scale=(scale, 0))
    y = sketch.tensor(numbers.shape, "INT16", scale=(out_scale, 0))
    sketch.operator("EXP", [x], [y])
    return run(sketch.model([y]), numbers)[0]


def test_results_lie_on_lines_between_places() -> None:
    """Every 128th integer has a place of its own; in between all differences are those of a line, to a step."""
    numbers = np.arange(-256, 257).astype(np.int16)
    found = _exp(numbers, 1 / 4096, 4 / 32768).astype(np.int64)
    for first in range(0, 512, 128):
        line = np.interp(np.arange(129), [0, 128], found[[first, first + 128]])
        assert np.abs(found[first : first + 129] - line).max() <= 1


def test_smooth_functions_are_those_of_real_numbers() -> None:
    """To two steps, where lines follow the function closely."""
    numbers = np.arange(-32768, 32768, 7).astype(np.int16)
    found = _exp(numbers, 1 / 32768, 4 / 32768)
    assert np.abs(found - np.rint(np.exp(numbers / 32768) / (4 / 32768))).max() <= 2


def test_results_beyond_the_type_are_its_greatest() -> None:
    """Here all from exp(2) on."""
    found = _exp(np.array([0, 20000, 32767], np.int16), 4 / 32768, 4 / 32768)
    assert found.tolist() == [8192, 32767, 32767]
