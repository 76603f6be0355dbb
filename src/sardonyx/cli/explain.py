"""`sardonyx explain MODEL`: who runs each node, and why others do not."""

from __future__ import annotations

import collections
import dataclasses
import fnmatch
from collections.abc import Collection, Sequence

import click

from sardonyx.cli.completions import ModelPath, complete_operators, complete_providers
from sardonyx.cli.console import (
    chosen_providers,
    counted,
    fail,
    json_option,
    open_session,
    print_json,
    print_pairs,
    print_table,
    print_text,
    provider_option,
    readable_errors,
    session_options,
)
from sardonyx.optimize.fusion_report import Outcome
from sardonyx.partition.explain import Placement, shown_reasons
from sardonyx.session.fusions import explain_fusions
from sardonyx.session.options import SessionOptions
from sardonyx.session.provider_choice import choose_providers
from sardonyx.session.settings.settings import read_settings
from sardonyx.session.stages.source import Source
from sardonyx.spelling import nearest

_FEW = 12
_ALWAYS = 4
"""Columns that are there in any case."""


@click.command(short_help="Show who runs each node of MODEL, and why others do not.")
@click.argument("model", type=ModelPath())
@provider_option
@click.option(
    "--fusions", "node", metavar="NODE", help="Show why this node, or the one that makes this value, was fused or was not."
)
@click.option(
    "--operator",
    "operators",
    multiple=True,
    metavar="OP",
    shell_complete=complete_operators,
    help="List nodes of this operator only; repeat it.",
)
@click.option(
    "--on",
    "runners",
    multiple=True,
    metavar="PROVIDER",
    shell_complete=complete_providers,
    help="List nodes that this provider runs only; repeat it.",
)
@click.option("--name", "names", multiple=True, metavar="PATTERN", help="List nodes with this in their names, or '*/attn/*'.")
@click.option("--summary", "is_short", is_flag=True, help="List no nodes.")
@session_options
@json_option
def explain(
    model: str,
    provider_names: Sequence[str],
    node: str | None,
    operators: Sequence[str],
    runners: Sequence[str],
    names: Sequence[str],
    is_short: bool,
    options: SessionOptions,
    as_json: bool,
) -> None:
    """Show who runs the nodes of MODEL, as optimized, in which precision products are computed, and why others do not run them.

    With --fusions show for one node, as given, how far each rewrite rule matched around it and why it stopped.
    """
    if node is not None:
        _print_fusions(model, provider_names, options, node, as_json)
        return
    with readable_errors():
        placements = open_session(model, provider_names, options).explain()
    kept = [
        item
        for item in placements
        if _is_one_of(item.op_type, operators) and _runs_on(item.provider, runners) and _is_named(item.node, names)
    ]
    if as_json:
        print_json([dataclasses.asdict(placement) for placement in kept])
        return
    _print_summary(model, placements)
    if is_short:
        return
    if not kept:
        fail(f"no node of {model} is left by these filters; {_choices(placements, operators, runners)}")
    _print_nodes(kept)
    if len(kept) < len(placements):
        click.echo(f"{len(kept)} of {len(placements)} nodes listed")


def _is_one_of(op_type: str, operators: Sequence[str]) -> bool:
    """Return whether an operator is among those wanted, which may lack the domain and be in any case; true for none wanted."""
    own = {op_type.lower(), op_type.rpartition(".")[2].lower(), f"ai.onnx.{op_type}".lower()}
    return not operators or any(name.lower() in own for name in operators)


def _runs_on(provider: str, wanted: Sequence[str]) -> bool:
    return not wanted or any(name.lower() in (provider.lower(), _short(provider).lower()) for name in wanted)


def _is_named(node: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(pattern in node or fnmatch.fnmatchcase(node, pattern) for pattern in patterns)


def _choices(placements: Sequence[Placement], operators: Sequence[str], runners: Sequence[str]) -> str:
    """Return which filter of operators or providers no node has, with the nearest, and what there is to choose from."""
    kinds, providers = ({item.op_type.rpartition(".")[2] for item in placements}, {_short(item.provider) for item in placements})
    said = [
        *(_missing("operator", name, kinds) for name in operators if not any(_is_one_of(kind, [name]) for kind in kinds)),
        *(_missing("provider", name, providers) for name in runners if not any(_runs_on(known, [name]) for known in providers)),
    ]
    few = f"{', '.join(sorted(kinds)[:_FEW])}{' …' if len(kinds) > _FEW else ''}"
    return "; ".join([*said, f"its operators are {few}, run by {', '.join(sorted(providers))}"])


def _missing(what: str, name: str, known: Collection[str]) -> str:
    spelt = {item.lower(): item for item in known}
    close = nearest(name.lower(), spelt, likeness=0.6)
    return f"it has no {what} {name!r}{f', did you mean {spelt[close]}?' if close else ''}"


def _short(provider: str) -> str:
    return provider.removesuffix("ExecutionProvider")


def _print_summary(model: str, placements: Sequence[Placement]) -> None:
    """Print how many nodes each provider runs, their operators, the precision of products, and why others declined which nodes."""
    counts = collections.Counter(placement.provider for placement in placements)
    partitions = len({placement.partition for placement in placements})
    print_text(f"{model}: {counted(len(placements), 'node')} in {counted(partitions, 'partition')}")
    rows = []
    for name, count in counts.most_common():
        operators = collections.Counter(item.op_type for item in placements if item.provider == name)
        listed = ", ".join(f"{number} {operator}" if number > 1 else operator for operator, number in operators.most_common())
        rows.append((f"{count} on {name}", listed))
    for precision, count in collections.Counter(item.precision for item in placements if item.precision).most_common():
        rows.append((counted(count, "product"), precision))
    reasons: dict[tuple[str, str], collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for item in placements:
        for name, reason in shown_reasons(item.declined).items():
            reasons[name, reason][item.op_type] += 1
    for (name, reason), operators in sorted(reasons.items(), key=lambda entry: -entry[1].total()):
        rows.append((f"{operators.total()} not on {_short(name)}", f"{reason} ({', '.join(operators)})"))
    print_pairs(rows)


def _partition_labels(placements: Sequence[Placement]) -> dict[str, str]:
    """Return for each partition its number, after its graph where there are several."""
    names = {item.partition: item.partition.removeprefix(f"{item.provider}_") for item in placements}
    graphs = {name.rpartition("_")[0] for name in names.values()}
    return {partition: name.rpartition("_")[2] if len(graphs) == 1 else name for partition, name in names.items()}


def _print_nodes(placements: Sequence[Placement]) -> None:
    """Print a row for each node, without the columns in which there is nothing."""
    labels = _partition_labels(placements)
    rows = [
        (
            placement.node,
            f"{placement.op_type}-{placement.version}",
            _short(placement.provider),
            labels[placement.partition] + (f" ({placement.unit})" if placement.unit else ""),
            placement.precision,
            "; ".join(f"{_short(name)}: {reason}" for name, reason in shown_reasons(placement.declined).items()),
        )
        for placement in placements
    ]
    click.echo()
    columns = ("node", "operator", "provider", "partition", "precision", "declined by")
    shown = [place for place in range(len(columns)) if place < _ALWAYS or any(row[place] for row in rows)]
    print_table("", [columns[place] for place in shown], [[row[place] for place in shown] for row in rows])


def _print_fusions(model: str, provider_names: Sequence[str], options: SessionOptions, node: str, as_json: bool) -> None:
    with readable_errors():
        settings = read_settings(options)
        chosen = choose_providers(chosen_providers(provider_names) or None, None, options.providers, settings)
        report = explain_fusions(Source.of(model), settings, chosen.providers, node)
    if as_json:
        print_json(dataclasses.asdict(report))
        return
    click.echo(str(report))
    if not any(attempt.outcome is Outcome.FIRED for attempt in report.attempts):
        click.echo()
        print_text("Rules aside, providers fuse what they compile: `sardonyx profile MODEL` shows which nodes are one kernel.")
