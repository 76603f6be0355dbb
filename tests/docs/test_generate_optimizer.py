"""The page of optimizations."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

from sardonyx.optimize.names import ELSEWHERE, NAMES
from sardonyx.optimize.pipeline import ALWAYS, known_names

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_names_what_there_is() -> None:
    """Every name in its tables is that of a rule or pass, or of an optimization of ONNX Runtime's."""
    text = (DOCS / "optimizer.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| (\w+) \|", text, re.MULTILINE)) - {"name"}
    assert named - {*known_names(), *NAMES, *ELSEWHERE} == {item.name for item in ALWAYS}


def test_the_page_has_every_name_of_onnxruntime() -> None:
    """Those that stand for something, and those that do not."""
    text = (DOCS / "optimizer.md").read_text(encoding="utf-8")
    assert [name for name in (*NAMES, *ELSEWHERE) if f"| {name} |" not in text] == []


def test_the_generator_writes_every_rule() -> None:
    """With the first line of its file."""
    text = runpy.run_path(str(DOCS / "generate_optimizer.py"))["page"]()
    assert [name for name in known_names() if f"| {name} |" not in text] == []
    assert "| fuse_conv_batchnorm | rule | " in text


def test_every_rule_has_a_sentence_of_its_own() -> None:
    """One that is a whole sentence, and that no other rule or pass has."""
    module = runpy.run_path(str(DOCS / "generate_optimizer.py"))
    sentences = [module["sentence"](item) for items in module["tables"]().values() for item in items]
    assert [text for text in sentences if sentences.count(text) > 1] == []
    assert [text for text in sentences if not re.fullmatch(r"[A-Z][a-z]+ .+\.", text)] == []


def test_the_page_is_what_the_generator_writes() -> None:
    """It was written again after the last change of a rule."""
    text = runpy.run_path(str(DOCS / "generate_optimizer.py"))["page"]()
    assert (DOCS / "optimizer.md").read_text(encoding="utf-8") == text
