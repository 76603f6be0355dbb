"""The version of the package."""

from __future__ import annotations

import re

from sardonyx import version


def test_the_version_is_one_that_package_tools_read() -> None:
    """Three numbers, and perhaps a pre-release."""
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc|\.dev)\d+)?", version.__version__)
