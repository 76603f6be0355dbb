"""Bars."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console
from rich.progress import Progress, TextColumn
from support.models import model

from sardonyx.cli import progress as module
from sardonyx.cli.progress import following, progress
from sardonyx.formats.onnx import save
from sardonyx.session.inference_session import InferenceSession
from sardonyx.trace import event, observe, span

SCRIPT = """
import sys
from sardonyx.cli import progress
progress._DELAY_S = 0.0
from sardonyx.cli.main import main
main()
"""


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Progress:
    """What would be drawn, as an object."""
    bar = Progress(TextColumn("{task.description}"), console=Console(file=io.StringIO()))

    class Shown:
        def __enter__(self) -> Progress:
            return bar

        def __exit__(self, *error: object) -> None:
            return None

    monkeypatch.setattr(module, "_shown", Shown)
    return bar


def _state(bar: Progress) -> tuple[str, float, float | None]:
    (task,) = bar.tasks
    return task.description.strip(), task.completed, task.total


def test_events_move_the_bar(drawn: Progress) -> None:
    """From loading over optimizing to kernels; each says what is done, and how much there is."""
    with following("m.onnx"):
        assert _state(drawn) == ("load m.onnx", 0, 1)
        with span("session.load"):
            pass
        assert _state(drawn)[0] == "check"
        event("optimize.round", round=2, passes=5)
        assert _state(drawn) == ("optimize, round 2", 0, 5)
        event("rewrite.fire", rule="r")
        event("optimize.compare", optimization="fuse_r")
        assert _state(drawn) == ("verify: fuse_r (1 rewrites)", 0, 5)
        event("optimize.pass", optimization="apply_rules")
        assert _state(drawn) == ("optimize: apply_rules (1 rewrites)", 1, 5)
        event("codegen.begin", objects=3)
        event("codegen.write", kernel="gemm")
        event("codegen.object", number=0)
        assert _state(drawn) == ("compile: machine code", 2, 6)


def test_a_build_sends_the_events(tmp_path: Path) -> None:
    """Those that bars are made of, each before what it announces is done."""
    path, names = tmp_path / "m.onnx", list[str]()
    save(model("graph(x: float[3, 7]) -> (y: float[3, 7]) {\ny = Softmax(x)\n}"), path)
    with observe(lambda what: names.append(what.name)):
        InferenceSession(path)
    wanted = ["session.load", "session.check", "optimize.round", "session.optimize", "session.compile"]
    assert [name for name in dict.fromkeys(names) if name in wanted] == wanted


def test_nothing_is_drawn_into_a_pipe(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes."""
    monkeypatch.setattr(module, "_DELAY_S", 0.0)
    with progress("long", 2) as advance:
        advance("one")
        time.sleep(0.1)
    assert capsys.readouterr() == ("", "")


@pytest.mark.skipif(sys.platform != "linux", reason="terminals are made otherwise there")
def test_a_terminal_shows_bars(tmp_path: Path) -> None:
    """On stderr; they are gone in the end, and the output of the command is whole."""
    path = tmp_path / "m.onnx"
    save(model("graph(x: float[3, 7]) -> (y: float[3, 7]) {\ny = Softmax(x)\n}"), path)
    environment = {**os.environ, "SARDONYX_CACHE_DIR": str(tmp_path / "c"), "COLUMNS": "80", "TERM": "xterm"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    controller, terminal = pty.openpty()
    with open(tmp_path / "shown", "wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, "explain", str(path)], stdout=file, stderr=terminal, env=environment
        )
        os.close(terminal)
        drawn = b""
        while True:
            try:
                piece = os.read(controller, 65536)
            except OSError:
                break
            if not piece:
                break
            drawn += piece
        process.wait()
    os.close(controller)
    text = re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", drawn).decode()
    assert "compile: " in text
    assert max(map(len, re.split(r"[\r\n]+", text))) <= 80
    assert "1 node in 1 partition" in " ".join((tmp_path / "shown").read_text().split())
