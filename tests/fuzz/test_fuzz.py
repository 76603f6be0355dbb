"""The search for models that break the CPU provider: it finds what is broken, and nothing in what is not."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from fuzz.draw import Draw, shrink
from fuzz.harness import finding_of, run_case
from fuzz.model import Case
from fuzz.operators import OPERATORS, make_case

from sardonyx.codegen.kernels.pad import PadDim

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="cases run in forks"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
_PAD = Case("graph(x: float[4]) -> (y) {\np: int64[2] = [9, -7]\ny = Pad(x, p)\n}", 21, {"x": np.ones(4, np.float32)})


def test_a_short_search_finds_nothing() -> None:
    """Longer ones are run by hand: `PYTHONPATH=src:tests python -m fuzz 10000`."""
    command = [sys.executable, "-m", "fuzz", "40", "--only", "moving"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "40 cases, nothing found" in done.stdout


def test_a_write_beyond_a_buffer_is_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one row already: behind it is an unmapped page."""
    monkeypatch.setenv("SARDONYX_GUARD", "1")
    assert finding_of(_PAD) == ""
    monkeypatch.setattr(PadDim, "of", lambda size, before, after: PadDim(size + before + after, before, 0, 0, size))
    assert finding_of(_PAD).startswith("crash: signal")


def test_other_results_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two providers are compared."""
    monkeypatch.setattr(PadDim, "of", lambda size, before, after: PadDim(size + before + after, 0, 1, 0, size))
    assert run_case(_PAD) == "differs: float32[6] [1.0, 0.0, 0.0, 0.0, 0.0, 0.0] and float32[6] [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]"


def test_what_is_refused_by_both_is_no_finding() -> None:
    """Cropping more than there is."""
    assert run_case(Case(_PAD.text.replace("-7", "-14"), 21, _PAD.feeds)) == ""


def test_a_draw_can_be_repeated() -> None:
    """All that is drawn follows from the choices."""
    for seed in range(20):
        draw = Draw.seeded(seed)
        assert str(make_case(draw)) == str(make_case(Draw(draw.choices)))


def test_every_operator_makes_cases() -> None:
    """Also of the simplest choices, and of any."""
    for place in range(len(OPERATORS)):
        assert "= " in make_case(Draw([place])).text
    for seed in range(300):
        assert make_case(Draw.seeded(seed)).feeds is not None


def test_shrinking_keeps_what_fails() -> None:
    """Choices that do not matter go, and the others become small."""
    found = shrink([5, 9, 30, 7, 2, 8], lambda choices: any(number >= 7 for number in choices))
    assert found == [7]


def test_maps_of_nan_are_alike() -> None:
    """As ZipMap gives them: Python's floats, of which NaN is not equal to itself."""
    text = "graph(x: float[2, 2]) -> (y) {\ny = ai.onnx.ml.ZipMap(x) {classlabels_int64s = [0, 1]}\n}"
    assert run_case(Case(text, 21, {"x": np.full((2, 2), np.nan, np.float32)})) == ""
