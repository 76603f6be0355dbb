"""Today's node cases under other opsets, as onnx converts them: the numbers stay the same.

Of the opsets with which other versions of a case's operator begin, the case's name chooses one; where onnx converts it to none of
them, the newest opset is taken. `benchmarks/conformance.py --older-opsets` runs every case under every opset, which takes minutes.
"""

from __future__ import annotations

import zlib

import pytest
from support.backend_suite import SuiteCase
from support.conformance import LEVELS, failure_of
from support.older_opsets import conversions, convertible, meanings_of

from sardonyx.session.providers import REFERENCE

GROUPS = 32
"""Cases are spread over so many tests."""


NEWEST = 28


def other_version(case: SuiteCase) -> SuiteCase | None:
    """The case under an opset with which some other version of its operator begins, or the newest, where onnx converts it."""
    versions = meanings_of(case)
    start = zlib.crc32(case.name.encode())
    turned = [versions[(start + index) % len(versions)] for index in range(len(versions))]
    return next(conversions(case, [*turned, NEWEST]), None)


@pytest.mark.parametrize("group", range(GROUPS))
def test_converted_cases_give_what_they_expect(group: int) -> None:
    """What onnx.version_converter makes of a case passes as the case does."""
    wrong = []
    for case in convertible()[group::GROUPS]:
        converted = other_version(case)
        text = None if converted is None else failure_of(converted, [REFERENCE], LEVELS["off"])
        wrong += [] if converted is None or text is None else [f"{converted.name}: {text}"]
    assert not wrong, "\n".join(wrong)


def test_many_cases_convert() -> None:
    """The sample is not empty: of the cases of Add and Clip some are read under an older opset."""
    cases = [case for case in convertible() if case.name.startswith(("test_add_", "test_clip"))]
    assert sum(other_version(case) is not None for case in cases) > len(cases) // 2
