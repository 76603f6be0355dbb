"""The README and every page of the documentation say what works: a user who goes through one line by line meets no error."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from support import pages
from support.pages import Block, blocks_of

ROOT = Path(__file__).parent.parent
INDEX = ROOT / "docs" / "README.md"
PAGES = [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "decisions")]
SET_UP = ("python3 -m venv", "pip install")
"""Commands that install something: `.ci/run` runs them."""
SCRIPT = re.compile(r"python (benchmarks/\w+\.py)")
SERVER = "import onnxruntime\n\nprint(onnxruntime.__version__)\n"
"""serve.py, a program of somebody's who uses onnxruntime."""


def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def _can_run(block: Block) -> bool:
    """Return whether a block is for a user's folder, and what it needs is installed."""
    needs = block.needs or ("openvino" if "OpenVINO" in block.text else "")
    is_elsewhere = block.kind == "shell" and (block.text.startswith(SET_UP) or SCRIPT.search(block.text) is not None)
    return not is_elsewhere and (not needs or find_spec(needs) is not None)


def _folder_of_a_user(folder: Path, blocks: list[Block]) -> dict[str, str]:
    """Put the model of the pages, and commands of an installation, into an empty folder; return the user's environment."""
    (folder / "bin").mkdir()
    (folder / "home").mkdir()
    for name, arguments in (("python", ""), ("sardonyx", " -m sardonyx")):
        command = folder / "bin" / name
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}"{arguments} "$@"\n')
        command.chmod(0o755)
    shutil.copy(pages.__file__, folder / "pages.py")
    (folder / "serve.py").write_text(SERVER)
    (folder / "blocks.json").write_text(json.dumps([dataclasses.asdict(block) for block in blocks]))
    kept = {
        name: value for name, value in os.environ.items() if name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "LANG", "TMPDIR")
    }
    path = os.pathsep.join([str(folder / "bin"), "/usr/bin", "/bin"])
    return {**kept, "PATH": path, "HOME": str(folder / "home"), "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "80"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_line_of_a_page_works(page: Path, tmp_path: Path) -> None:
    """Python and commands in order, in an empty folder with a fresh home, beside the model that the index makes."""
    makes_models = [block for block in blocks_of(_text(INDEX)) if block.kind == "python"]
    blocks = ([] if page == INDEX else makes_models) + [block for block in blocks_of(_text(page)) if _can_run(block)]
    if blocks == makes_models and page != INDEX:
        return
    environment = _folder_of_a_user(tmp_path, blocks)
    command = [sys.executable, "pages.py", "blocks.json"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{page.relative_to(ROOT)}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"


def test_pages_are_taken_apart_into_what_a_user_runs() -> None:
    """Blocks of Python, lines after a `$` with their remarks cut off, indented commands with their words filled in."""
    text = (
        "# Page\n\n```python\na = 1\n```\n\n```console\n$ sardonyx providers\noutput\n```\n\n"
        "    sardonyx run MODEL --random      it runs\n    sardonyx run m.onnx \\\n        --random\n    plain text\n\n"
        "<!-- needs nothing -->\n```python\nimport nothing\n```\n"
    )
    found = [(block.kind, block.text, block.needs) for block in blocks_of(text)]
    assert found == [
        ("python", "a = 1", ""),
        ("shell", "sardonyx providers", ""),
        ("shell", "sardonyx run model.onnx --random", ""),
        ("shell", "sardonyx run m.onnx --random", ""),
        ("python", "import nothing", "nothing"),
    ]


def test_scripts_that_pages_name_are_there() -> None:
    """Under the name that they have."""
    named = {match[1] for page in PAGES for match in SCRIPT.finditer(_text(page))}
    assert named
    for script in sorted(named):
        assert (ROOT / script).is_file(), script


def test_every_page_is_in_the_index() -> None:
    """Nobody has to search a folder."""
    for page in PAGES:
        if page.parent != ROOT and page != INDEX:
            assert f"({page.relative_to(INDEX.parent)})" in _text(INDEX), page.name


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
