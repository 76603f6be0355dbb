"""What all verbs share: tables or JSON, a progress bar for what takes over a second, and errors as one readable line."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from sardonyx.errors import SardonyxError
from sardonyx.session.inference_session import InferenceSession
from sardonyx.session.options import SessionOptions
from sardonyx.trace import Event, observe

__all__ = ["fail", "json_option", "open_session", "print_json", "print_table", "progress", "provider_option", "readable_errors"]

_DELAY_S = 1.0
"""How long a task may take before its progress is shown."""
_STAGES = ("session.load", "session.check", "session.optimize", "session.compile")

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
provider_option = click.option("--provider", "provider_names", multiple=True, metavar="NAME",
                               help="Use this execution provider; repeat it in the order of priority.")  # fmt: skip


def print_json(value: Any) -> None:
    """Print `value` as JSON; what JSON lacks is printed as text."""
    click.echo(json.dumps(value, indent=2, default=str, ensure_ascii=False))


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table as wide as the terminal."""
    table = Table(title=title or None, title_justify="left", header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(str(cell) for cell in row))
    Console().print(table)


@contextlib.contextmanager
def progress(description: str, total: int) -> Iterator[Callable[..., None]]:
    """Give a function f(label, steps=1) that advances a bar and names the next step; it shows itself after a second, on stderr."""
    bar = Progress(TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"), TimeElapsedColumn(),
                   console=Console(stderr=True), transient=True)  # fmt: skip
    task = bar.add_task(description, total=total)
    timer = threading.Timer(_DELAY_S, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda label, steps=1: bar.update(task, advance=steps, description=label)
    finally:
        timer.cancel()
        timer.join()
        if bar.live.is_started:
            bar.stop()


def open_session(model: str, provider_names: Sequence[str]) -> InferenceSession:
    """Make a session, with a progress bar over its stages."""
    with progress(f"loading {model}", len(_STAGES)) as advance:

        def follow(event: Event) -> None:
            if event.name in _STAGES:
                following = _STAGES.index(event.name) + 1
                advance(_STAGES[following].split(".")[1] if following < len(_STAGES) else "ready")

        with observe(follow):
            return InferenceSession(model, SessionOptions(), providers=list(provider_names) or None)


@contextlib.contextmanager
def readable_errors() -> Iterator[None]:
    """Turn errors of the engine into a message on stderr and exit status 1."""
    try:
        yield
    except SardonyxError as error:
        fail(f"{type(error).__name__}: {error}")
    except OSError as error:
        fail(f"{error.strerror or error}: {error.filename or ''}".rstrip(": "))


def fail(message: str) -> NoReturn:
    """Print `message` on stderr and end with exit status 1."""
    click.secho(message, fg="red", err=True)
    raise SystemExit(1)
