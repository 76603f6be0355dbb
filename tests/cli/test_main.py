"""The command and its verbs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.models import model

from sardonyx.cli.main import VERBS, cli
from sardonyx.formats.onnx import save
from sardonyx.version import __version__


def test_every_verb_has_help_and_json(invoke: Callable[..., Result]) -> None:
    """`--json` is on each that prints something of its own; `exec` runs another command."""
    verbs = {
        "run",
        "diff",
        "inspect",
        "explain",
        "optimize",
        "quantize",
        "compile",
        "convert",
        "profile",
        "providers",
        "where",
        "demo",
        "bench",
        "doctor",
        "generate",
    }
    assert set(VERBS) == {*verbs, "exec", "cache", "completion"}
    for verb in verbs:
        assert "--json" in invoke(verb, "--help").output


def test_the_version_is_printed(invoke: Callable[..., Result]) -> None:
    """As `sardonyx --version`."""
    assert __version__ in invoke("--version").output


def test_the_module_can_be_run() -> None:
    """`python -m sardonyx` is the command."""
    done = subprocess.run([sys.executable, "-m", "sardonyx", "--version"], capture_output=True, text=True, check=True)
    assert __version__ in done.stdout


@pytest.mark.parametrize("module", ["onnx", "llvmlite", "rich", "click"])
def test_importing_sardonyx_loads_none_of_the_slow_packages(module: str) -> None:
    """They are imported where first needed."""
    code = f"import sys, sardonyx; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "kind", "message", "status"),
    [
        (("run", "no-such.onnx", "--json"), "NoSuchFile", "no-such.onnx", 1),
        (("run", "no-such.onnx", "--json", "--provider", "CPUExecutionProvidr"), "InvalidArgument", "'CPUExecutionProvider'", 1),
        (("run", "no-such.onnx", "--json", "--no-such-option"), "UsageError", "--no-such-option", 2),
        (("optimize", "m.onnx", "--json", "--dim", "n"), "UsageError", "expected NAME=SIZE", 1),
    ],
)
def test_errors_are_json_where_that_is_asked_for(
    arguments: tuple[str, ...], kind: str, message: str, status: int, invoke: Callable[..., Result]
) -> None:
    """On stdout, and nothing on stderr."""
    result = invoke(*arguments)
    error = json.loads(result.stdout)["error"]
    assert (error["type"], result.exit_code, result.stderr) == (kind, status, "")
    assert message in error["message"]


def test_warnings_are_lines_on_stderr(tmp_path: Path) -> None:
    """Without the line of source that Python adds."""
    arguments = ["run", str(tmp_path / "none.onnx"), "--random", "--config", "session.exector=parallel"]
    done = subprocess.run([sys.executable, "-m", "sardonyx", *arguments], capture_output=True, text=True, check=False)
    assert done.stderr.startswith("warning: there is no session config entry 'session.exector', so it has no effect; did you mean")
    assert ".py:" not in done.stderr


def test_a_misspelt_verb_is_an_error_with_the_nearest(invoke: Callable[..., Result]) -> None:
    """One that is like none is an error alone."""
    assert "No such command 'optimise'. Did you mean 'optimize'?" in invoke("optimise").stderr
    assert "Did you mean" not in invoke("zzz").stderr


def test_the_list_of_verbs_is_not_cut(invoke: Callable[..., Result]) -> None:
    """Each has a line of 80 columns that ends."""
    listed = invoke("--help").output.partition("Commands:")[2].strip().splitlines()
    assert len(listed) == len(VERBS)
    assert all(line.endswith(".") and not line.endswith("...") for line in listed)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no signals of this kind")
def test_an_interrupted_verb_ends_with_130(model_file: Path) -> None:
    """Not with 1, by which `diff` says that something differs."""
    code = "import signal, threading, _thread; threading.Timer(1.5, _thread.interrupt_main).start()\n"
    code += "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a parent in the background has it ignored
    code += f"import sys; sys.argv = ['sardonyx', 'run', {str(model_file)!r}, '--random', '--repeat', '100000000']\n"
    code += "from sardonyx.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "--random", "--outputs", "all"),
        ("inspect",),
        ("inspect", "--html", "page.html"),
        ("explain",),
        ("profile", "--runs", "2"),
        ("profile", "--runs", "2", "--placement", "-o", "measured.json"),
        ("diff",),
        ("optimize", "--diff", "-o", "optimized.onnx"),
        ("compile", "-o", "compiled.onnx"),
        ("convert",),
        ("quantize", "-o", "small.onnx"),
    ],
    ids=" ".join,
)
def test_long_names_fit_80_columns(arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file, a scope, a node and a value."""
    scope = "/model/encoder/layers.0/attention_with_a_very_long_name_for_a_scope/projection_of_queries_and_keys"
    made = model("graph(x: float[n, 2]) -> (y: float[n, 2]) {\nk: float[2] = [1, 2]\na = Relu(x) @first\ny = Add(a, k) @second\n}")
    for node in made.graph:
        node.name = f"{scope}/{node.name}"
        node.output.name = f"{scope}/{node.output.name}_output_0"
    monkeypatch.chdir(tmp_path)
    name = f"{'long_name_of_a_model_' * 5}.onnx"
    save(made, tmp_path / name)
    more = (f"{'long_name_of_a_model_' * 5}.ort",) if arguments == ("convert",) else ()
    found = CliRunner().invoke(cli, [arguments[0], name, *arguments[1:], *more], env={"COLUMNS": "80"})
    assert found.exit_code == 0
    assert max(map(len, found.stdout.splitlines())) <= 80
