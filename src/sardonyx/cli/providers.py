"""`sardonyx providers`: which execution providers there are."""

from __future__ import annotations

import click

from sardonyx.cli.console import json_option, print_json, print_table, readable_errors
from sardonyx.session.providers import describe_providers


@click.command(short_help="List execution providers, and where they come from.")
@json_option
def providers(as_json: bool) -> None:
    """List the execution providers in the order of priority, and where each comes from."""
    with readable_errors():
        rows = describe_providers()
    if as_json:
        print_json([{"name": name, "source": source} for name, source in rows])
    else:
        print_table("", ("provider", "comes from"), rows)
