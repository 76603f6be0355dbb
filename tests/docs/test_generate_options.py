"""The page of options."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(("page", "function"), [("options.md", "page"), ("environment.md", "environment_page")])
def test_the_pages_are_what_the_generator_writes(page: str, function: str) -> None:
    """docs/options.md and docs/environment.md are up to date with the tables."""
    text = (DOCS / page).read_text(encoding="utf-8")
    assert runpy.run_path(str(DOCS / "generate_options.py"))[function]() == text, "run python docs/generate_options.py"
