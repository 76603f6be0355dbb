"""What all verbs share: tables or JSON, a progress bar for what takes over a second, and errors as one readable line."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import click
from rich.console import Console

from sardonyx.cli.completions import complete_providers
from sardonyx.cli.fold import column_widths, fold
from sardonyx.cli.load import add_operators, load_option
from sardonyx.cli.progress import following, progress
from sardonyx.errors import InvalidArgument, SardonyxError
from sardonyx.provider import Provider
from sardonyx.session.inference_session import InferenceSession
from sardonyx.session.options import SessionOptions
from sardonyx.session.providers import get_available_providers
from sardonyx.session.settings.keys import MEMORY_LIMITS
from sardonyx.spelling import nearest

__all__ = [
    "chosen_providers",
    "counted",
    "decimals",
    "fail",
    "following",
    "force_option",
    "json_option",
    "loaded_providers",
    "open_session",
    "print_json",
    "print_on_stderr",
    "print_pairs",
    "print_table",
    "print_text",
    "progress",
    "provider_option",
    "readable_errors",
    "refuse_existing",
    "session_options",
    "terminal_width",
]

_LEAST_COLUMNS, _GAP = 20, "  "
_MOST_FILES = 3
_MOST_DECIMALS = 6
_LOADED = "sardonyx.cli.loaded_providers"
"""The key of a command's context under which the providers of its files are."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text, errors too.")
force_option = click.option("--force", is_flag=True, help="Overwrite files that exist.")
provider_option = click.option(
    "--provider",
    "provider_names",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_providers,
    help="Use this execution provider; repeat it in the order of priority.",
)


def session_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a session: placement, threads, config entries, files to load; the command gets them as `options`."""

    @click.option(
        "--place",
        "placed",
        multiple=True,
        metavar="WHAT=PROVIDER",
        help="Run an operator (Conv), node:NAME, the node of an index, or annotation:TEXT on this provider; repeat it.",
    )
    @click.option("--placement-file", default="", metavar="FILE.toml", help="Read from a file where nodes run.")
    @click.option(
        "--placement-profile",
        default="",
        metavar="FILE.json",
        help="Run nodes where `sardonyx profile --placement` found it fastest.",
    )
    @click.option("--fall-through", is_flag=True, help="Let another provider run a placed node that its provider declines.")
    @click.option(
        "--memory-limit",
        "limits",
        multiple=True,
        metavar="PROVIDER=KIB[,FILE.csv]",
        help="Give a provider no more nodes than so much memory holds; repeat it.",
    )
    @click.option("--threads", default=0, type=click.IntRange(min=0), help="Threads of a run; all processors by default.")
    @click.option("--skip-failing", is_flag=True, help="Go on without a provider that fails.")
    @click.option(
        "--config",
        "entries",
        multiple=True,
        metavar="KEY=TEXT",
        help="Set a session config entry, such as session.executor=parallel; repeat it.",
    )
    @load_option
    @functools.wraps(command)
    def with_options(
        *arguments: object,
        placed: Sequence[str],
        placement_file: str,
        placement_profile: str,
        fall_through: bool,
        limits: Sequence[str],
        threads: int,
        skip_failing: bool,
        entries: Sequence[str],
        loaded: Sequence[str],
        **others: object,
    ) -> None:
        options = SessionOptions()
        options.intra_op_num_threads = threads
        for text in placed:
            what, _, provider = text.rpartition("=")
            options.place(what, provider)
        options.placement_file, options.placement_fall_through = placement_file, fall_through
        options.placement_profile, options.placement = placement_profile, "measured" if placement_profile else ""
        options.provider_failure = "skip" if skip_failing else ""
        options.add_session_config_entry(MEMORY_LIMITS.name, ";".join(limits))
        for text in entries:
            key, separator, value = text.partition("=")
            if not separator or not key:
                fail(f"--config takes KEY=TEXT, got {text!r}")
            options.add_session_config_entry(key, value)
        with readable_errors():
            click.get_current_context().meta[_LOADED] = add_operators(options, loaded)
        command(*arguments, options=options, **others)

    return with_options


def loaded_providers() -> list[Provider]:
    """Return the execution providers of the files that `--load` names, for the command that runs."""
    context = click.get_current_context(silent=True)
    found: list[Provider] = [] if context is None else context.meta.get(_LOADED, [])
    return found


def print_json(value: object) -> None:
    """Print `value` as JSON; what JSON lacks is printed as text."""
    click.echo(json.dumps(value, indent=2, default=str, ensure_ascii=False))


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], numbers: Sequence[str] = ()) -> None:
    """Print a table that fits the terminal; the columns `numbers` are aligned to the right and stay whole."""
    texts = [[str(cell) for cell in row] for row in rows]
    fixed = [column in numbers for column in columns]
    natural = [max(map(_width, cells)) for cells in zip(columns, *texts, strict=True)]
    widths = column_widths(natural, fixed, terminal_width() - len(_GAP) * (len(columns) - 1))
    if title:
        click.secho(title, italic=True)
    click.secho(_row(columns, widths, fixed)[0], bold=True)
    click.secho(_GAP.join("-" * width for width in widths), dim=True)
    for row in texts:
        for line in _row(row, widths, fixed):
            click.echo(line)
    click.echo()


def _row(cells: Sequence[str], widths: Sequence[int], fixed: Sequence[bool]) -> list[str]:
    """Return the lines of one row, each cell folded to the width of its column."""
    folded = [fold(cell, width) for cell, width in zip(cells, widths, strict=True)]
    height = max(map(len, folded))
    lines = zip(*(lines + [""] * (height - len(lines)) for lines in folded), strict=True)
    aligned = (
        [text.rjust(width) if is_number else text.ljust(width) for text, width, is_number in zip(line, widths, fixed, strict=True)]
        for line in lines
    )
    return [_GAP.join(line).rstrip() for line in aligned]


def _width(text: str) -> int:
    return max(map(len, text.split("\n")))


def terminal_width() -> int:
    """Return how many columns the terminal has; COLUMNS says so, too, and without either it is 80."""
    return Console().width


def print_text(text: str) -> None:
    """Print a sentence, folded to the width of the terminal."""
    for line in fold(text, terminal_width()):
        click.echo(line)


def print_pairs(rows: Iterable[tuple[str, object]]) -> None:
    """Print names with what they are, folded to the width of the terminal; equal names in a row are said once."""
    listed, last = list(rows), ""
    width = max((len(name) for name, _ in listed), default=0)
    for name, value in listed:
        label = "" if name == last and name.strip("- ") else name
        first, *others = fold(str(value), max(terminal_width() - width - len(_GAP), _LEAST_COLUMNS))
        click.echo(f"{label:{width}}{_GAP}{first}".rstrip())
        for line in others:
            click.echo(f"{'':{width}}{_GAP}{line}")
        last = name


def open_session(model: str | bytes, provider_names: Sequence[str], options: SessionOptions | None = None) -> InferenceSession:
    """Make a session of a file, or of its bytes, with a progress bar over its stages.

    Raises:
        InvalidArgument: a provider is not available.
    """
    providers = chosen_providers(provider_names)
    with following(model if isinstance(model, str) else "the model"):
        return InferenceSession(model, options, providers=providers or None)


def chosen_providers(names: Sequence[str]) -> list[str | Provider]:
    """Return the providers of these names: objects of the files that `--load` names, or the names of those that are installed.

    Args:
        names: in any case, with or without "ExecutionProvider".

    Raises:
        InvalidArgument: a provider is not available.
    """
    made = {provider.name: provider for provider in loaded_providers()}
    known = [*made, *get_available_providers()]
    by_short_name = {_short_name(name): name for name in reversed(known)}
    full_names = [name if name in known else by_short_name.get(_short_name(name), "") for name in names]
    for name, full_name in zip(names, full_names, strict=True):
        if not full_name:
            close = nearest(name, known)
            advice = f"did you mean {close!r}?" if close else f"available are {', '.join(known)}"
            raise InvalidArgument(f"there is no provider {name!r}; {advice}")
    return [made.get(name, name) for name in full_names]


def _short_name(provider: str) -> str:
    return provider.lower().removesuffix("executionprovider")


def decimals(least: float) -> int:
    """Return how many decimals show three digits of `least`, the smallest number that counts: 3 to 6."""
    return max(3, min(2 - math.floor(math.log10(least)), _MOST_DECIMALS)) if least > 0 else 3


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def refuse_existing(paths: Iterable[Path], *, force: bool) -> None:
    """End the command where a file that it would write is there already, unless that is asked for."""
    present = [str(path) for path in paths if path.exists()]
    if present and not force:
        more = f" and {len(present) - _MOST_FILES} more files" if len(present) > _MOST_FILES else ""
        exist = "exists" if len(present) == 1 else "exist"
        fail(f"{', '.join(present[:_MOST_FILES])}{more} {exist} already; give --force to overwrite")


@contextlib.contextmanager
def readable_errors() -> Iterator[None]:
    """Turn errors of the engine into a message and exit status 1."""
    try:
        yield
    except SardonyxError as error:
        fail(str(error), type(error).__name__)
    except MemoryError as error:
        fail(f"there is not enough memory: {error}".rstrip(": "), "MemoryError")
    except OSError as error:
        advice = "; set TMPDIR to a folder that can be written" if "temporary directory" in str(error.strerror) else ""
        fail(f"{error.strerror or error}: {error.filename or ''}".rstrip(": ") + advice, type(error).__name__)


def fail(message: str, kind: str = "") -> NoReturn:
    """Print a message on stderr, or with --json an object on stdout, and end with exit status 1.

    Args:
        message: what is wrong, and what to do.
        kind: the name of the error's class, where it has one.
    """
    context = click.get_current_context(silent=True)
    if context is not None and context.params.get("as_json"):
        print_json({"error": {"type": kind or "UsageError", "message": message}})
    else:
        print_on_stderr(f"{kind}: {message}" if kind else message, "red")
    raise SystemExit(1)


def print_on_stderr(text: str, color: str) -> None:
    """Print an error or a warning: on a terminal in colour and folded between words, elsewhere as one line."""
    lines = fold(text, Console(stderr=True).width) if sys.stderr.isatty() else [text]
    click.secho("\n".join(lines), fg=color, err=True)
