"""`sardonyx completion`, in a real shell where there is one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

BASH = shutil.which("bash")
ASK = """
eval "$(sardonyx completion bash)"
compopt() { :; }
COMP_WORDS=(sardonyx "$@"); COMP_CWORD=$#
_sardonyx_completion sardonyx
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def complete(tmp_path: Path) -> Callable[..., list[str]]:
    """What bash offers for the last of some words, in a folder with a model, another file and a folder."""
    commands, work = tmp_path / "bin", tmp_path / "work"
    commands.mkdir()
    (work / "folder").mkdir(parents=True)
    for name in ("model.onnx", "other.txt", ".hidden.onnx", "folder/inner.onnx", "folder/in two parts.onnx"):
        (work / name).touch()
    script = commands / "sardonyx"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m sardonyx "$@"\n')
    script.chmod(0o755)
    environment = {**os.environ, "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(sys.path)}

    def ask(*words: str) -> list[str]:
        done = subprocess.run(
            [str(BASH), "-c", ASK, "bash", *words], cwd=work, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.splitlines()

    return ask


needs_bash = pytest.mark.skipif(BASH is None, reason="there is no bash")


@needs_bash
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("ex",), {"exec", "explain"}),
        (("run", ""), {"folder/", "model.onnx"}),
        (("run", "folder/inn"), {"folder/inner.onnx"}),
        (("run", "folder/"), {"folder/inner.onnx", r"folder/in\ two\ parts.onnx"}),
        (("run", r"folder/in\ tw"), {r"folder/in\ two\ parts.onnx"}),
        (("run", "."), {".hidden.onnx"}),
        (("run", "model.onnx", "--provider", "ref"), {"ReferenceExecutionProvider"}),
        (("optimize", "model.onnx", "--disable", "fuse_conv_b"), {"fuse_conv_batchnorm"}),
        (("where", "softm"), {"Softmax", "SoftmaxCrossEntropyLoss"}),
        (("explain", "model.onnx", "--operator", "TopK"), {"TopK"}),
        (("explain", "--summ"), {"--summary"}),
        (("completion", ""), {"bash", "zsh", "fish"}),
    ],
)
def test_words_are_completed(complete: Callable[..., list[str]], words: tuple[str, ...], offered: set[str]) -> None:
    """Verbs, options, models and folders, providers, rules, operators and choices."""
    assert set(complete(*words)) == offered


@pytest.mark.parametrize(
    ("shell", "word"), [("bash", "complete -o nosort"), ("zsh", "#compdef sardonyx"), ("fish", "complete --no-files")]
)
def test_each_shell_has_a_script(invoke: Callable[..., Result], shell: str, word: str) -> None:
    """It says where to put it."""
    script = invoke("completion", shell).output
    assert word in script
    assert "put this into" in script


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_valid(invoke: Callable[..., Result], shell: str, tmp_path: Path) -> None:
    """The shell reads them without an error, where it is installed."""
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"there is no {shell}")
    (tmp_path / "script").write_text(invoke("completion", shell).output)
    assert subprocess.run([program, "-n", str(tmp_path / "script")], check=False).returncode == 0
