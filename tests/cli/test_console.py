"""What all verbs share."""

from __future__ import annotations

import errno
import io
import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from sardonyx.cli.console import (
    chosen_providers,
    decimals,
    open_session,
    print_on_stderr,
    print_pairs,
    print_table,
    progress,
    readable_errors,
    refuse_existing,
)
from sardonyx.errors import InvalidArgument, InvalidGraph


def test_errors_of_the_engine_become_one_line_and_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    """No traceback."""
    with pytest.raises(SystemExit) as ended, readable_errors():
        raise InvalidGraph("a cycle")
    assert ended.value.code == 1
    assert capsys.readouterr().err == "InvalidGraph: a cycle\n"


def test_other_errors_pass(capsys: pytest.CaptureFixture[str]) -> None:
    """A bug of ours keeps its traceback."""
    with pytest.raises(ZeroDivisionError), readable_errors():
        raise ZeroDivisionError


def test_progress_of_a_short_task_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """The bar waits for a second."""
    with progress("short", 2) as advance:
        advance("one")
    assert capsys.readouterr() == ("", "")


def test_a_missing_model_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """With its path."""
    with pytest.raises(SystemExit), readable_errors():
        open_session("no-such.onnx", ())
    assert "no-such.onnx" in capsys.readouterr().err


def test_errors_are_json_where_that_is_asked_for(invoke: Callable[..., Result], tmp_path: Path) -> None:
    """Those of the engine, and those of the command line."""
    done = invoke("explain", tmp_path / "none.onnx", "--json")
    assert (done.exit_code, json.loads(done.stdout)["error"]["type"]) == (1, "NoSuchFile")
    done = invoke("explain", "--json", "--nope")
    assert (done.exit_code, json.loads(done.stdout)["error"]["type"]) == (2, "UsageError")
    assert json.loads(invoke("where", "Convv", "--json").stdout)["error"]["message"].endswith("did you mean Conv?")


def test_tables_fit_the_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Long cells are folded, numbers are not."""
    monkeypatch.setenv("COLUMNS", "60")
    print_table("title", ("ms", "name"), [("12345.678", "/a/long/name" * 9)], ("ms",))
    print_pairs([("folder", "/a/long/name" * 9), ("folder", "x")])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 60
    assert lines[0] == "title"
    assert "12345.678  /a/long/name" in lines[3]
    assert lines[-1] == "        x"


def test_without_a_folder_for_temporary_files_commands_say_which_variable_names_one(
    invoke: Callable[..., Result], model_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container whose root cannot be written."""

    def none(*_: object, **__: object) -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(tempfile, "mkdtemp", none)
    for command in (("bench", model_file), ("profile", model_file), ("exec", "true")):
        done = invoke(*command)
        assert done.exit_code == 1
        assert "No usable temporary directory found in ['/tmp']; set TMPDIR to a folder that can be written" in done.stderr


@pytest.mark.parametrize(("least", "expected"), [(142.0, 3), (1.0, 3), (0.5, 3), (0.05, 4), (0.0049, 5), (1e-9, 6), (0.0, 3)])
def test_small_numbers_have_three_digits(least: float, expected: int) -> None:
    """Up to six decimals; others have three decimals."""
    assert decimals(least) == expected


@pytest.mark.parametrize("name", ["cpu", "CPU", "CPUExecutionProvider", "cpuexecutionprovider"])
def test_a_provider_has_its_name_in_any_case(name: str) -> None:
    """With its ending or without."""
    assert chosen_providers([name]) == ["CPUExecutionProvider"]


def test_a_name_of_no_provider_is_an_error() -> None:
    """With the nearest, or with all that there are."""
    with pytest.raises(InvalidArgument, match="did you mean 'CPUExecutionProvider'"):
        chosen_providers(["CPUExecutionProvidr"])
    with pytest.raises(InvalidArgument, match="there is no provider 'tpu'; available are CPUExecutionProvider"):
        chosen_providers(["tpu"])


def test_too_little_memory_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """With what NumPy says of it, where it says something."""
    for error, line in (
        (MemoryError("Unable to allocate 2 PiB"), "enough memory: Unable to allocate 2 PiB"),
        (MemoryError(), "memory"),
    ):
        with pytest.raises(SystemExit), readable_errors():
            raise error
        assert capsys.readouterr().err.endswith(f"{line}\n")


def test_many_files_that_exist_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first three have names."""
    paths = [tmp_path / f"{number}.npy" for number in range(9)]
    for path in paths:
        path.touch()
    with pytest.raises(SystemExit):
        refuse_existing(paths, force=False)
    said = " ".join(capsys.readouterr().err.split())
    assert said.endswith("2.npy and 6 more files exist already; give --force to overwrite")
    refuse_existing(paths, force=True)
    with pytest.raises(SystemExit):
        refuse_existing(paths[:1], force=False)
    assert "0.npy exists already" in " ".join(capsys.readouterr().err.split())


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "lines"), [(_Terminal(), 3), (io.StringIO(), 1)])
def test_errors_fold_between_words_on_a_terminal(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, lines: int) -> None:
    """Elsewhere they are one line each, for who searches them."""
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("COLUMNS", "40")
    print_on_stderr('model thing.onnx: node "/a/long/name" has a shape of which something is wrong', "red")
    shown = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue()).splitlines()
    assert len(shown) == lines
    assert max(map(len, shown)) <= 40 or lines == 1
    assert " ".join(" ".join(shown).split()).endswith("has a shape of which something is wrong")
