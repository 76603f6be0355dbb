"""Parts of every network beside the repository, computed between unmapped pages, which `SARDONYX_GUARD=1` puts around tensors."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fuzz.harness import finding_of, kind_of
from fuzz.mutants import Mutant
from fuzz.seeds import windows

from sardonyx.config import guards_memory

ZOO = Path(__file__).resolve().parents[2].parent / "shared" / "zoo" / "light"

pytestmark = [
    pytest.mark.skipif(not guards_memory(), reason="run with SARDONYX_GUARD=1, as .ci/run does"),
    pytest.mark.skipif(not ZOO.is_dir(), reason="there are no networks beside the repository"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="cases run in forks"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
_PARTS = 16
_EACH = 4
"""One window in so many is run."""


@pytest.mark.parametrize("part", range(_PARTS))
def test_windows_of_networks_stay_in_their_buffers(part: int) -> None:
    """And both providers compute the same."""
    findings = {
        seed.name: finding_of(Mutant(seed.name, seed.content, dict(seed.feeds))) for seed in windows(ZOO)[part :: _EACH * _PARTS]
    }
    assert {
        name: finding for name, finding in findings.items() if kind_of(finding) in ("crash", "hang", "untyped", "differs")
    } == {}
