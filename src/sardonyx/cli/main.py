"""The command `sardonyx` and its verbs."""

from __future__ import annotations

import warnings

import click

from sardonyx.cli.bench import bench
from sardonyx.cli.cache import cache
from sardonyx.cli.compile import compile_ahead
from sardonyx.cli.console import print_json
from sardonyx.cli.demo import demo
from sardonyx.cli.doctor import doctor
from sardonyx.cli.exec import execute
from sardonyx.cli.explain import explain
from sardonyx.cli.inspect import inspect
from sardonyx.cli.optimize import optimize
from sardonyx.cli.profile import profile
from sardonyx.cli.providers import providers
from sardonyx.cli.run import run
from sardonyx.cli.where import where
from sardonyx.version import __version__

__all__ = ["cli", "main"]

_JSON = "sardonyx.json"


class Verbs(click.Group):
    """The verbs; what is wrong with their options is JSON too where that is asked for."""

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
            print_json({"error": {"type": "UsageError", "message": error.format_message()}})
            raise SystemExit(error.exit_code) from error


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="sardonyx")
def cli() -> None:
    """Run, inspect and explain ONNX models."""


for _verb in (run, bench, inspect, explain, optimize, compile_ahead, profile, providers, where, doctor, cache, demo, execute):
    cli.add_command(_verb)


def main() -> None:
    """Run the command line of this process; warnings are lines on stderr."""
    warnings.showwarning = _show_warning
    cli()


def _show_warning(message: Warning | str, category: type[Warning], *place: object, **more: object) -> None:
    click.secho(f"warning: {message}", fg="yellow", err=True)
