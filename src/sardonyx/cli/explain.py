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
from sardonyx.session.options import SessionOptions


@click.command()
@click.argument("model", type=click.Path())
@provider_option
@placement_options
@json_option
def explain(model: str, provider_names: Sequence[str], options: SessionOptions, as_json: bool) -> None:
    """Show for each node of MODEL, as optimized, who runs it and why those asked before do not."""
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
