"""Bars that say what is being done and how much is left, on a terminal only, for what takes longer than a second.

The trace's events are their source: nothing in the library knows of a bar.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from sardonyx.trace import Event, observe

__all__ = ["following", "progress"]

_DELAY_S = 1.0
"""How long a task may take before its progress is shown."""
_LABEL_COLUMNS = 36


@contextlib.contextmanager
def progress(description: str, total: int) -> Iterator[Callable[..., None]]:
    """Give a function f(label, steps=1) that advances a bar and names the next step; it shows itself after a second, on stderr."""
    with _shown() as bar:
        task = bar.add_task(_short(description), total=total)
        yield lambda label, steps=1: bar.update(task, advance=steps, description=_short(label))


@contextlib.contextmanager
def following(description: str) -> Iterator[None]:
    """Show how far the making of a session, or an optimization, is, while the block runs."""
    with _shown() as bar, observe(_Stages(bar, description).follow):
        yield


@contextlib.contextmanager
def _shown() -> Iterator[Progress]:
    """Give bars that are drawn after a second, where stderr is a terminal, and are gone in the end."""
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.completed:g} of {task.total:g}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    timer = threading.Timer(_DELAY_S, bar.start)
    timer.daemon = True
    if console.is_terminal:
        timer.start()
    try:
        yield bar
    finally:
        timer.cancel()
        if timer.ident is not None:
            timer.join()
        if bar.live.is_started:
            bar.stop()


class _Stages:
    """Bars for the stages of a session, as events come; any thread may bring one."""

    def __init__(self, bar: Progress, description: str) -> None:
        """Begin with loading."""
        self._bar = bar
        self._rewrites = 0
        self._task = bar.add_task(_short(f"load {description}"), total=1)

    def follow(self, event: Event) -> None:
        """Show what an event says of the work."""
        details = event.details
        if event.name == "session.load":
            self._begin("check", 1)
        elif event.name == "session.check":
            self._begin("optimize", 1)
        elif event.name == "optimize.round":
            self._begin(f"optimize, round {details['round']}", details["passes"])
        elif event.name == "optimize.pass":
            self._advance(f"optimize: {details['optimization']}{self._rewritten()}")
        elif event.name == "rewrite.fire":
            self._rewrites += 1
        elif event.name == "optimize.compare":
            self._say(f"verify: {details['optimization']}{self._rewritten()}")
        elif event.name == "session.optimize":
            self._begin("compile: partitions", 1)
        elif event.name == "codegen.begin":
            self._begin("compile: kernels", 2 * details["objects"])
        elif event.name == "codegen.write":
            self._advance(f"compile: {details['kernel']}")
        elif event.name == "codegen.object":
            self._advance("compile: machine code")
        elif event.name == "codegen.compile":
            self._begin("compile: partitions", 1)

    def _begin(self, label: str, total: int) -> None:
        self._bar.reset(self._task, total=total, description=_short(label))

    def _advance(self, label: str) -> None:
        self._bar.update(self._task, advance=1, description=_short(label))

    def _say(self, label: str) -> None:
        self._bar.update(self._task, description=_short(label))

    def _rewritten(self) -> str:
        return f" ({self._rewrites} rewrites)" if self._rewrites else ""


def _short(label: str) -> str:
    """Return a label in as many columns as there are for it: its end is what tells names apart."""
    if len(label) > _LABEL_COLUMNS:
        label = f"{label[: _LABEL_COLUMNS // 3]}…{label[1 - _LABEL_COLUMNS + _LABEL_COLUMNS // 3 :]}"
    return label.replace("[", r"\[").ljust(_LABEL_COLUMNS)
