"""`sardonyx generate`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.decoders import write_decoder, write_folder

from sardonyx.cli.main import cli
from sardonyx.generate.loading import load

SLOW = """
import signal
import sys
import time
from sardonyx.cli.main import main
from sardonyx.generate.decoder import Decoder

signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent in the background has it ignored
step, steps = Decoder.step, []

def slow_step(*arguments):
    if not steps:
        print("step", file=sys.stderr, flush=True)
    steps.append(time.sleep(0.1))
    return step(*arguments)

Decoder.step = slow_step
sys.argv = ["sardonyx", "generate", sys.argv[1], "--ids", "1", "--max-tokens", "60", "--json"]
main()
"""
"""A program that takes six seconds, and says when it has begun."""


@pytest.fixture
def decoder(tmp_path: Path) -> Path:
    """Return the file of a decoder."""
    return write_decoder(tmp_path / "model.onnx")


def test_tokens_are_continued(invoke: Callable[..., Result], decoder: Path) -> None:
    """Those that the API makes, with times."""
    facts = json.loads(invoke("generate", decoder, "--ids", "1,2,3", "--max-tokens", 5, "--json").stdout)
    assert facts["ids"] == load(decoder).generate([1, 2, 3], max_new_tokens=5)[0].ids
    assert (facts["prompt_tokens"], facts["new_tokens"], facts["reason"], facts["text"]) == (3, 5, "length", None)
    assert facts["first_token_s"] > 0
    assert facts["tokens_per_s"] > 0


def test_tokens_without_text_fit_the_terminal(decoder: Path) -> None:
    """Their numbers are folded at 80 columns, and times follow."""
    result = CliRunner().invoke(cli, ["generate", str(decoder), "--ids", "1", "--max-tokens", "60"], env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "1 + 60 tokens, length; first after" in " ".join(result.stdout.split())


def test_text_is_continued(invoke: Callable[..., Result], tmp_path: Path) -> None:
    """From an option, a file, and as a message of a conversation."""
    pytest.importorskip("tokenizers")
    folder = write_folder(tmp_path / "folder")
    (tmp_path / "prompt.txt").write_text("Hello")
    options = ("--max-tokens", 4, "--json")
    found = [
        json.loads(invoke("generate", folder, *given, *options).stdout)
        for given in (("--prompt", "Hello"), ("--prompt-file", tmp_path / "prompt.txt"))
    ]
    assert found[0]["ids"] == found[1]["ids"]
    assert found[0]["text"] is not None
    piped = CliRunner().invoke(cli, ["generate", str(folder), "--prompt", "-", *map(str, options)], input="Hello")
    assert json.loads(piped.stdout)["ids"] == found[0]["ids"]
    pytest.importorskip("jinja2")
    assert json.loads(invoke("generate", folder, "--prompt", "A", "--chat", *options).stdout)["prompt_tokens"] == 11


def test_settings_are_options(invoke: Callable[..., Result], decoder: Path) -> None:
    """Equal seeds draw equal tokens."""
    options = ("--temperature", 2, "--top-k", 50, "--top-p", 0.9, "--min-p", 0.01, "--penalty", 1.1, "--max-tokens", 6, "--json")
    one, other = (json.loads(invoke("generate", decoder, "--ids", "1", "--seed", 7, *options).stdout)["ids"] for _ in range(2))
    assert one == other


def test_a_draft_proposes_tokens(invoke: Callable[..., Result], decoder: Path, tmp_path: Path) -> None:
    """Which the model agrees with or not."""
    draft = write_decoder(tmp_path / "draft.onnx", seed=1)
    found = [
        json.loads(invoke("generate", decoder, "--ids", "1,2", "--max-tokens", 8, "--json", *more).stdout)["ids"]
        for more in ((), ("--draft", draft))
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give the prompt with one of"),
        (("--ids", "1", "--prompt", "a"), "give the prompt with one of"),
        (("--ids", "a,b"), "whole numbers"),
        (("--prompt", "text"), "needs a tokenizer"),
        (("--ids", "1", "--stop", "word"), "need a tokenizer"),
        (("--prompt", "a", "--chat"), "chat template"),
        (("--ids", "9999"), "vocabulary"),
        (("--ids", "99999999999999999999"), "vocabulary"),
    ],
)
def test_what_cannot_be_continued_is_an_error(
    invoke: Callable[..., Result], decoder: Path, arguments: tuple[str, ...], message: str
) -> None:
    """On stderr, with status 1."""
    result = invoke("generate", decoder, *arguments)
    assert result.exit_code == 1
    assert message in " ".join(result.stderr.split())


def test_a_file_that_is_no_text_is_an_error(invoke: Callable[..., Result], decoder: Path, tmp_path: Path) -> None:
    """It is named."""
    (tmp_path / "prompt.txt").write_bytes(b"\xff\xfea")
    result = invoke("generate", decoder, "--prompt-file", tmp_path / "prompt.txt")
    assert result.exit_code == 1
    assert "prompt.txt is no text in UTF-8" in " ".join(result.stderr.split())


def test_ctrl_c_ends_it_with_what_was_made(decoder: Path) -> None:
    """Status 130, and whole JSON on stdout."""
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, str(decoder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "step\n"
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    facts = json.loads(output)
    assert (process.returncode, errors) == (130, "")
    assert facts["reason"] == "interrupted"
    assert 0 < facts["new_tokens"] < 60
