"""Every case of onnx.backend.test on every set of providers, with optimization off and at its highest level.

A test takes the cases of one kind whose names begin alike. Cases without an operator that a set of providers runs in its own way
are sampled: there they only show that the reference provider takes over.
"""

from __future__ import annotations

import functools
import tomllib
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from support.backend_suite import KINDS, SuiteCase, cases_of
from support.conformance import LEVELS, failure_of, run_case
from support.provider_sets import SETS, ProviderSet

from sardonyx.session.providers import REFERENCE

SETTINGS = tomllib.loads(Path(__file__).with_name("known_failures.toml").read_text(encoding="utf-8"))
DRAWN = frozenset(SETTINGS["drawn"])
AT_ONCE = 40
"""Most cases of one test."""
EVERY = 8
"""One in so many of the less likely combinations is run."""


@functools.cache
def groups() -> dict[str, tuple[SuiteCase, ...]]:
    """Cases by kind and the first word of their names, many cases in parts."""
    found: dict[str, list[SuiteCase]] = {}
    for kind in KINDS:
        for case in cases_of(kind):
            found.setdefault(f"{kind}-{case.name.removeprefix('test_').split('_')[0]}", []).append(case)
    parts: dict[str, tuple[SuiteCase, ...]] = {}
    for name, cases in found.items():
        for part, start in enumerate(range(0, len(cases), AT_ONCE)):
            parts[f"{name}-{part}" if part else name] = tuple(cases[start : start + AT_ONCE])
    return parts


def chosen(cases: Sequence[SuiteCase], providers: ProviderSet) -> list[SuiteCase]:
    """Those of `cases` that are run on a set; the name decides, so that each run takes the same."""
    return [
        case
        for case in cases
        if any(map(providers.claims, case.operators)) or zlib.crc32(f"{case.kind}/{case.name}".encode()) % EVERY == 0
    ]


def must_fail(providers: ProviderSet) -> set[tuple[str, str]]:
    """The cases that are listed as failing on a set, each with a level."""
    entries = SETTINGS["failures"].get(providers.name, ())
    return {(entry["case"], level) for entry in entries for level in entry.get("levels", LEVELS)}


@pytest.mark.parametrize("group", groups())
@pytest.mark.parametrize("providers", SETS, ids=lambda item: item.name)
def test_cases_give_what_they_expect(providers: ProviderSet, group: str) -> None:
    """Types and shapes are equal, numbers within the case's tolerance; listed failures fail."""
    listed, wrong = must_fail(providers), []
    for case in chosen(groups()[group], providers):
        if case.name in DRAWN:
            continue
        for level in LEVELS:
            text = failure_of(case, providers.make(), LEVELS[level])
            name = f"{case.kind}/{case.name}"
            if (name, level) in listed:
                wrong += [] if text else [f"{name}, level {level}: passes, so take it off known_failures.toml"]
            elif text:
                wrong.append(f"{name}, level {level}: {text}")
    assert not wrong, f"on {providers.name}:\n" + "\n".join(wrong)


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_drawn_cases_give_the_expected_types_and_shapes(name: str) -> None:
    """What is drawn has the type and shape of the case's output, and nothing but zeros and ones."""
    (case,) = (item for item in cases_of("node") if item.name == name)
    ((found,),) = run_case(case, [REFERENCE], LEVELS["all"])
    (expected,) = case.data_sets[0][1]
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert set(np.unique(found).tolist()) <= {0, 1}


def test_no_listed_case_is_unknown() -> None:
    """Every case that known_failures.toml names is a case of the suite."""
    known = {f"{case.kind}/{case.name}" for cases in groups().values() for case in cases}
    listed = {entry["case"] for entries in SETTINGS["failures"].values() for entry in entries}
    assert listed | {f"node/{name}" for name in DRAWN} <= known
