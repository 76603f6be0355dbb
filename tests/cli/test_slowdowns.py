"""What slows a machine down."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from sardonyx.cli.slowdowns import slowdowns

HEALTHY: dict[str, Any] = {
    "machine": {
        "isa": "avx512",
        "isa_levels": ["portable", "avx2", "avx512"],
        "has_refused_tiles": False,
        "architecture": "x86_64",
        "memory_bytes": 64 << 30,
        "available_bytes": 32 << 30,
        "swap_used_bytes": 0,
    },
    "threads": {
        "processors": 8,
        "affinity": list(range(8)),
        "cores": 8,
        "quota": None,
        "available": 8,
        "threads": 8,
        "load": 0.2,
        "governors": ["performance"],
        "is_turbo_off": False,
    },
    "cache": {"folder": "/c", "problem": "", "size_bytes": 10, "limit_bytes": 100, "damaged": None},
    "compiler": {"is_able": True, "is_apart": True, "problem": ""},
    "numpy": {"blas": "openblas", "threads": 1},
    "settings": {},
}


def test_a_healthy_machine_has_none() -> None:
    """No advice without a reason."""
    assert slowdowns(HEALTHY) == []


@pytest.mark.parametrize(
    ("part", "changes", "said"),
    [
        ("machine", {"isa": "avx2"}, "holds kernels down to avx2"),
        ("machine", {"isa": "portable", "isa_levels": ["portable"]}, "has no AVX2"),
        ("machine", {"isa_levels": ["portable", "avx2", "avx512", "amx"]}, "holds kernels down to avx512"),
        ("machine", {"has_refused_tiles": True}, "does not let this process use it"),
        ("machine", {"available_bytes": 1 << 30}, "only 1.0 of 64.0 GiB"),
        ("machine", {"swap_used_bytes": 2 << 30}, "2.0 GiB are swapped out"),
        ("threads", {"affinity": [0, 1], "cores": 2, "available": 2, "threads": 2}, "may use 2 of 8 processors"),
        ("threads", {"quota": 1.5}, "grants 1.5 processors of 8"),
        ("threads", {"available": 4}, "takes 8 threads and 4 processors"),
        ("threads", {"cores": 4}, "intra_op_num_threads=4"),
        ("threads", {"governors": ["powersave"]}, "governor is powersave"),
        ("threads", {"is_turbo_off": True}, "turbo frequencies are off"),
        ("threads", {"load": 6.0}, "load of the last minute is 6.0"),
        ("cache", {"folder": None}, "there is no cache"),
        ("cache", {"problem": "it is read-only"}, "it is read-only"),
        ("cache", {"size_bytes": 99}, "is full"),
        ("cache", {"damaged": 3}, "3 objects"),
        ("compiler", {"is_able": False, "problem": "no memory"}, "cannot be compiled: no memory"),
        ("compiler", {"is_apart": False}, "in this process"),
        ("settings", {"SARDONYX_GUARD": "1"}, "SARDONYX_GUARD=1"),
        ("settings", {"SARDONYX_TRACE": "t.json"}, "each event to t.json"),
        ("numpy", {"threads": 8}, "OPENBLAS_NUM_THREADS=1"),
    ],
)
def test_each_finding_is_a_sentence(part: str, changes: dict[str, Any], said: str) -> None:
    """One, that says what to do."""
    facts = copy.deepcopy(HEALTHY)
    facts[part].update(changes)
    (sentence,) = slowdowns(facts)
    assert said in sentence
