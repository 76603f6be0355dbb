"""The how-to pages and the README say what works."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.models import model

from sardonyx.formats.onnx import save

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs" / "how-to").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All Python on the page, in order, on a model of two Relus; its last session, where it has one, still computes them."""
    for name in ("model", "prefill", "decode"):
        save(model("graph(x: float[2]) -> (y: float[2]) {\na = Relu(x)\ny = Relu(a)\n}"), tmp_path / f"{name}.onnx")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(code, page.name, "exec"), names)
    session = names.get("session")
    assert session is None or session.run(None, {"x": np.float32([-1, 2])})[0].tolist() == [0, 2]


def test_the_page_of_operators_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    """Each `print` with the comment behind it."""
    text = (ROOT / "docs" / "how-to" / "write-an-operator.md").read_text(encoding="utf-8")
    code = "".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    exec(compile(code, "write-an-operator.md", "exec"), {"__name__": "page"})
    said = re.findall(r"^print\(.*\)  # (.*)$", code, re.MULTILINE)
    assert len(said) == code.count("print(")
    assert capsys.readouterr().out.splitlines() == said


def test_links_between_pages_lead_somewhere() -> None:
    """Relative links of every page name files that exist."""
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_readme_has_two_commands_that_set_up_everything() -> None:
    """One for the demo, one for the tests, each a line."""
    commands = re.findall(r"^    (python3 -m venv .*)$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert commands == [
        "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/sardonyx demo",
        "python3 -m venv .venv && .venv/bin/pip install '.[test]' && .venv/bin/python -m pytest",
    ]
