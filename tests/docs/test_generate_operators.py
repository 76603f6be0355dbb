"""The page of operators."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import onnx
import pytest

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_up_to_date() -> None:
    """docs/operators.md is what docs/generate_operators.py writes with the onnx that it was last written with."""
    text = (DOCS / "operators.md").read_text(encoding="utf-8")
    (version,) = re.findall(r"onnx (\d+\.\d+\.\d+)", text)
    if version != onnx.__version__:
        pytest.skip(f"the page is written with onnx {version}")
    assert runpy.run_path(str(DOCS / "generate_operators.py"))["page"]() == text, "run python docs/generate_operators.py"


def test_every_operator_of_the_standard_runs() -> None:
    """Each has a reference kernel, a function body, or is replaced by other operators."""
    rows = runpy.run_path(str(DOCS / "generate_operators.py"))["rows"]()
    assert [cells[0] for domain, cells in rows if domain != "com.microsoft" and not cells[3]] == []
