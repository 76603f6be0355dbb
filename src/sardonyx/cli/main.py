"""The command `sardonyx` and its verbs, each of which is imported when it is used."""

from __future__ import annotations

import importlib
import json
import warnings

import click

from sardonyx.spelling import nearest
from sardonyx.version import __version__

__all__ = ["VERBS", "cli", "main"]

VERBS = {
    "bench": "sardonyx.cli.bench:bench",
    "cache": "sardonyx.cli.cache:cache",
    "compile": "sardonyx.cli.compile:compile_ahead",
    "completion": "sardonyx.cli.completion:completion",
    "convert": "sardonyx.cli.convert:convert",
    "demo": "sardonyx.cli.demo:demo",
    "diff": "sardonyx.cli.diff:diff",
    "doctor": "sardonyx.cli.doctor:doctor",
    "exec": "sardonyx.cli.exec:execute",
    "explain": "sardonyx.cli.explain:explain",
    "generate": "sardonyx.cli.generate:generate",
    "inspect": "sardonyx.cli.inspect:inspect",
    "optimize": "sardonyx.cli.optimize:optimize",
    "profile": "sardonyx.cli.profile:profile",
    "providers": "sardonyx.cli.providers:providers",
    "quantize": "sardonyx.cli.quantize:quantize",
    "run": "sardonyx.cli.run:run",
    "where": "sardonyx.cli.where:where",
}
"""Verb -> module and command."""
_JSON = "sardonyx.json"
_INTERRUPTED = 130
"""The status of what Ctrl-C ended, as shells have it: none that a verb gives a meaning to."""


class Verbs(click.Group):
    """The verbs; what is wrong with their options is JSON too where that is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the verbs."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a verb; None where there is none of this name."""
        if cmd_name not in VERBS:
            return None
        module, _, name = VERBS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; the message for one that there is not names the nearest."""
        close = "" if args[0] in VERBS else nearest(args[0], VERBS, likeness=0.6)
        if close:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {close!r}?")
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note whether JSON is asked for, of whichever verb."""
        ctx.meta[_JSON] = "--json" in args
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run the verb."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            if not ctx.meta[_JSON]:
                raise
            facts = {"error": {"type": "UsageError", "message": error.format_message()}}
            click.echo(json.dumps(facts, indent=2, ensure_ascii=False))
            raise SystemExit(error.exit_code) from error
        except KeyboardInterrupt as interruption:
            click.echo("interrupted", err=True)
            raise SystemExit(_INTERRUPTED) from interruption


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="sardonyx")
def cli() -> None:
    """Run, inspect, explain and convert models of ONNX and other formats."""


def main() -> None:
    """Run the command line of this process; warnings are lines on stderr."""
    warnings.showwarning = _show_warning
    cli(complete_var="_SARDONYX_COMPLETE")


def _show_warning(message: Warning | str, category: type[Warning], *place: object, **more: object) -> None:
    from sardonyx.cli.console import print_on_stderr  # which imports more than most starts need

    print_on_stderr(f"warning: {message}", "yellow")
