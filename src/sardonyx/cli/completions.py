"""What the shell offers when a word is begun: models, providers, rules and passes, operators."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from sardonyx.forks import without_fork

__all__ = ["ModelPath", "complete_operators", "complete_providers", "complete_rules"]

_SUFFIXES = (".onnx", ".ort", ".tflite", ".circle")


class ModelPath(click.Path):
    """The path of a model: the shell offers folders, and files of models."""

    name = "model"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the models and folders whose paths begin with `incomplete`; hidden ones only where it asks for them."""
        folder, _, begun = incomplete.rpartition("/")
        root = Path(f"{folder}/" if "/" in incomplete else ".").expanduser()
        prefix = f"{folder}/" if "/" in incomplete else ""
        try:
            entries = sorted(root.iterdir())
        except OSError:
            return []
        found = []
        for entry in entries:
            if not entry.name.startswith(begun) or (entry.name.startswith(".") and not begun):
                continue
            if entry.is_dir():
                found.append(CompletionItem(f"{prefix}{entry.name}/"))
            elif entry.suffix in _SUFFIXES:
                found.append(CompletionItem(f"{prefix}{entry.name}"))
        return found


def complete_providers(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the available providers that begin so, in any case."""
    with without_fork():
        from sardonyx.session.providers import get_available_providers  # other completions need not wait for it

    return _beginning(get_available_providers(), incomplete)


def complete_rules(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the rules and passes that begin so."""
    with without_fork():
        from sardonyx.optimize.pipeline import known_items  # which imports them all

    return _beginning(sorted(item.name for item in known_items()), incomplete)


def complete_operators(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the operators that begin so, in any case."""
    with without_fork():
        from sardonyx.ops.families import FAMILIES  # other completions need not wait for it

    return _beginning(sorted(name for names in FAMILIES.values() for name in names.split()), incomplete)


def _beginning(names: Iterable[str], begun: str) -> list[str]:
    return [name for name in names if name.lower().startswith(begun.lower())]
