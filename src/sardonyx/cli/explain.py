"""`sardonyx explain MODEL`: who runs each node, and why others do not."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Sequence

import click

from sardonyx.cli.console import (
    json_option,
    open_session,
    placement_options,
    print_json,
    print_table,
    provider_option,
    readable_errors,
)
from sardonyx.session.fusions import explain_fusions
from sardonyx.session.options import SessionOptions
from sardonyx.session.provider_choice import choose_providers
from sardonyx.session.settings.settings import read_settings
from sardonyx.session.stages.source import Source


@click.command()
@click.argument("model", type=click.Path())
@provider_option
@click.option(
    "--fusions", "node", metavar="NODE", help="Show why this node, or the one that makes this value, was fused or was not."
)
@placement_options
@json_option
def explain(model: str, provider_names: Sequence[str], node: str | None, options: SessionOptions, as_json: bool) -> None:
    """Show for each node of MODEL, as optimized, who runs it and why those asked before do not.

    With --fusions show for one node, as given, how far each rewrite rule matched around it and why it stopped.
    """
    if node is not None:
        _print_fusions(model, provider_names, options, node, as_json)
        return
    with readable_errors():
        placements = open_session(model, provider_names, options).explain()
    if as_json:
        print_json([dataclasses.asdict(placement) for placement in placements])
        return
    rows = [
        (
            placement.node,
            f"{placement.op_type}-{placement.version}",
            placement.provider.removesuffix("ExecutionProvider"),
            placement.partition.removeprefix(f"{placement.provider}_") + (f" ({placement.unit})" if placement.unit else ""),
            "; ".join(f"{name.removesuffix('ExecutionProvider')}: {reason}" for name, reason in placement.declined.items()),
        )
        for placement in placements
    ]
    print_table("", ("node", "operator", "provider", "partition", "declined by"), rows)
    counts = collections.Counter(placement.provider for placement in placements)
    partitions = len({placement.partition for placement in placements})
    click.echo(f"{len(placements)} nodes in {partitions} partitions: " + ", ".join(f"{n} on {name}" for name, n in counts.items()))


def _print_fusions(model: str, provider_names: Sequence[str], options: SessionOptions, node: str, as_json: bool) -> None:
    with readable_errors():
        settings = read_settings(options)
        chosen = choose_providers(provider_names or None, None, options.providers, settings)
        report = explain_fusions(Source.of(model), settings, chosen.providers, node)
    if as_json:
        print_json(dataclasses.asdict(report))
    else:
        click.echo(str(report))
