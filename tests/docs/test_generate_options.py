"""The page of options."""

from __future__ import annotations

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_what_the_generator_writes() -> None:
    """docs/options.md is up to date with the tables."""
    text = (DOCS / "options.md").read_text(encoding="utf-8")
    assert runpy.run_path(str(DOCS / "generate_options.py"))["page"]() == text, "run python docs/generate_options.py"
