"""The command `sardonyx` and its verbs."""

from __future__ import annotations

import click

from sardonyx.cli.compile import compile_ahead
from sardonyx.cli.demo import demo
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


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="sardonyx")
def cli() -> None:
    """Run, inspect and explain ONNX models."""


for _verb in (run, inspect, explain, optimize, compile_ahead, profile, providers, where, demo, execute):
    cli.add_command(_verb)


def main() -> None:
    """Run the command line of this process."""
    cli()
