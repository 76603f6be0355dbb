"""What a search says of its findings."""

from __future__ import annotations

import os
import pickle
import signal
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from fuzz.draw import Draw
from fuzz.findings import Findings
from fuzz.model import Case
from fuzz.server import run_seeds

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="cases run in forks"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
_CRASH = "crash: signal 11 at program.py:288"


class _EndsChildren:
    """A case that crashes where it is judged, which is in a child."""

    feeds: ClassVar[dict[str, Any]] = {}

    def __init__(self, number: int) -> None:
        self._number = number

    def __str__(self) -> str:
        return f"case {self._number}"

    def content(self) -> bytes:
        os.kill(os.getpid(), signal.SIGSEGV)
        return b""


def _made(draw: Draw) -> Case:
    """A case of one choice, in which nothing is wrong."""
    return Case("graph(x: float[1]) -> (y) {\ny = Relu(x)\n}", 21, {"x": np.full(1, draw.below(9), np.float32)})


def _ends_itself(draw: Draw) -> Case:
    os.kill(os.getpid(), signal.SIGSEGV)
    return _made(draw)


def _said(findings: Findings, finding: str, seeds: range) -> list[str]:
    said: list[str] = []
    for seed in seeds:
        findings.add(seed, finding, said.append)
    return said


def test_each_crash_is_said_with_its_model() -> None:
    """Others like it may have another cause."""
    said = _said(Findings(_made, ("crash",)), _CRASH, range(3))
    assert sum(_CRASH in text and "Relu" in text for text in said) == 3


def test_a_finding_is_made_small() -> None:
    """After it was said as it was found."""
    said = _said(Findings(lambda draw: _EndsChildren(draw.below(9)), ("crash",)), _CRASH, range(1))
    assert [text.partition(":")[0] for text in said] == ["seed 0", "seed 0, made small"]
    assert said[1].splitlines()[1] == "case 0"


def test_a_crash_of_the_peer_is_said_each_time() -> None:
    """It is one too."""
    assert len(_said(Findings(_made, ("peer",)), f"peer: {_CRASH}", range(2))) == 2


def test_other_results_of_the_peer_are_said_once_for_a_model() -> None:
    """Whatever they are."""
    assert len(_said(Findings(_made, ("peer",)), "peer: [1] and [2]", range(3))) == 1


def test_other_findings_that_are_alike_are_said_once() -> None:
    """Numbers do not count."""
    said = _said(Findings(_made, ("differs",)), "differs: float32[1] [1.0] and float32[1] [2.0]", range(3))
    assert [text.partition(":")[0] for text in said] == ["seed 0", "seed 0"]


def test_what_happens_only_after_other_cases_is_said_so() -> None:
    """The case alone is judged once more."""
    said: list[str] = []
    Findings(_made, ("crash",)).add(0, _CRASH, said.append)
    assert said[1] == "seed 0: only after the cases before it; alone: nothing\n"


def test_models_and_feeds_are_kept(tmp_path: Path) -> None:
    """In files named after the seed."""
    findings = Findings(_made, ("crash",), tmp_path / "kept")
    _said(findings, _CRASH, range(7, 8))
    assert (tmp_path / "kept" / "7-crash.onnx").read_bytes() == _made(Draw([])).content()
    feeds = pickle.loads((tmp_path / "kept" / "7-crash.pickle").read_bytes())
    assert feeds["x"].shape == (1,)
    assert _CRASH in (tmp_path / "kept" / "7-crash.txt").read_text()


def test_a_crash_says_where_python_was() -> None:
    """The innermost lines, of which findings of one cause have most in common."""
    (found,) = run_seeds(0, 1, _ends_itself)
    assert found.finding.startswith("crash: signal 11 at test_findings.py:")
