"""`sardonyx optimize MODEL -o OUT`: save an optimized model, and show which rule changed what."""

from __future__ import annotations

import collections
import dataclasses
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from sardonyx.cli.completions import ModelPath, complete_rules
from sardonyx.cli.console import (
    counted,
    fail,
    following,
    force_option,
    json_option,
    print_json,
    print_on_stderr,
    print_text,
    readable_errors,
    refuse_existing,
    terminal_width,
)
from sardonyx.cli.fold import fold
from sardonyx.cli.load import add_operators, load_option
from sardonyx.errors import InvalidArgument
from sardonyx.formats.onnx import save
from sardonyx.ir import Model
from sardonyx.ir.shape import symbols_in
from sardonyx.optimize.report import Change, Report
from sardonyx.session.optimization import optimize_file
from sardonyx.session.options import SessionOptions
from sardonyx.session.settings.settings import LoadSettings, Settings, read_settings
from sardonyx.session.stages.source import Source
from sardonyx.spelling import nearest

_LEVELS = {"none": "0", "basic": "1", "extended": "2", "layout": "3", "all": "99"}
_PLACES = 3
_OPERATORS = 8
_MANY = 30


@click.command(short_help="Optimize MODEL, save it, or show what changes.")
@click.argument("model", type=ModelPath())
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Save the optimized model here.")
@click.option("--level", type=click.Choice(list(_LEVELS)), default="all", show_default=True, help="How far to go.")
@click.option(
    "--disable",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_rules,
    help="Leave out this rule or pass; repeat it for others.",
)
@click.option("--dim", "dims", multiple=True, metavar="NAME=SIZE", help="Fix a symbolic dimension of the inputs.")
@click.option(
    "--opset",
    type=click.IntRange(min=1),
    default=None,
    metavar="VERSION",
    help="Raise the model to this operator set first, so that newer operators can be used.",
)
@click.option("--verify", is_flag=True, help="Compare each rewrite on random inputs with what it replaces; leave out what differs.")
@click.option("--skip-failing", is_flag=True, help="Go on without a rule or pass that fails.")
@click.option("--external-data", metavar="NAME", default="", help="Put the weights in this file beside OUT; else by their size.")
@click.option("--diff", is_flag=True, help="Show which rule or pass changed which nodes.")
@force_option
@load_option
@json_option
def optimize(
    model: str,
    output: Path | None,
    level: str,
    disable: Sequence[str],
    dims: Sequence[str],
    opset: int | None,
    verify: bool,
    skip_failing: bool,
    external_data: str,
    diff: bool,
    force: bool,
    loaded: Sequence[str],
    as_json: bool,
) -> None:
    """Optimize MODEL, without the steps that only fit one machine, and save it or show what changes.

    What is saved keeps to the operator sets that the model imports, and to operators that onnxruntime has; a session goes further.
    """
    options = SessionOptions()
    options.verify, options.optimizer_failure = verify, "skip" if skip_failing else "error"
    options.optimized_model_filepath = str(output or "")
    options.add_session_config_entry("session.graph_optimization_level", _LEVELS[level])
    if output is not None:
        refuse_existing([output, *((output.parent / external_data,) if external_data else ())], force=force)
    for text in dims:
        name, _, size = text.rpartition("=")
        if not (size.isascii() and size.isdigit()):
            fail(f"expected NAME=SIZE, got {text!r}")
        options.add_free_dimension_override_by_name(name, int(size))
    with readable_errors():
        add_operators(options, loaded)
        settings = read_settings(options, disable)
        if dims:
            _check_dimensions(model, settings.load)
        optimized, report = _optimized(model, settings, output, external_data, records=diff, opset=opset or 0)
    if as_json:
        print_json({"saved": None if output is None else str(output), **_facts(optimized, report, diff)})
        return
    if diff:
        for line in describe_changes(report.changes):
            click.echo(line)
    _print(model, output, optimized, report)
    if opset is not None and optimized.opset_imports.get("", opset) > opset:
        newer = f"{model} imports operator set {optimized.opset_imports['']}, which is newer than {opset}"
        print_on_stderr(f"warning: {newer}: --opset only raises it", "yellow")


def _optimized(
    model: str, settings: Settings, output: Path | None, external_data: str, *, records: bool, opset: int
) -> tuple[Model, Report]:
    with following(model), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the report lists the same problems
        optimized, report = optimize_file(model, settings, records=records, opset=opset)
        if output is not None:
            save(optimized, output, data_name=external_data)
    return optimized, report


def _check_dimensions(model: str, settings: LoadSettings) -> None:
    """Raise InvalidArgument where a dimension that is to be fixed is none of the inputs'."""
    inputs = Source.of(model).read(settings).graph.inputs
    known = sorted({name for value in inputs for dim in value.shape or () for name in symbols_in(dim) if not name.startswith("?")})
    for name in settings.dimensions:
        if name not in known:
            close = nearest(name, known)
            advice = f"did you mean {close!r}?" if close else f"there are {', '.join(known) or 'none'}"
            raise InvalidArgument(f"the inputs of {model} have no symbolic dimension {name!r}; {advice}")


def _facts(model: Model, report: Report, diff: bool) -> dict[str, object]:
    """Return the report."""
    facts: dict[str, object] = {
        "level": report.level.name,
        "nodes_before": report.nodes_before,
        "nodes_after": report.nodes_after,
        "operators": dict(collections.Counter(node.op_type for node in model.graph).most_common()),
        "fired": dict(report.fired.most_common()),
        "passes": {record.name: {"runs": record.runs, "changes": record.changes} for record in report.passes.values()},
        "verified": dict(report.verified),
        "unverified": report.unverified,
        "problems": [{"optimization": problem.optimization, "message": problem.message} for problem in report.problems],
        "seconds": report.seconds,
    }
    return facts | {"changes": [dataclasses.asdict(change) for change in report.changes]} if diff else facts


def _print(source: str, output: Path | None, model: Model, report: Report) -> None:
    saved = f", saved as {output}" if output is not None else ""
    print_text(f"{source}: {report.nodes_before} -> {counted(report.nodes_after, 'node')} in {report.seconds:.2f} s{saved}")
    if report.fired:
        print_text("rules: " + ", ".join(f"{name} {count}" for name, count in report.fired.most_common()))
    changed = [record.name for record in report.passes.values() if record.changes and record.name not in ("apply_rules",)]
    if changed:
        print_text("passes: " + ", ".join(changed))
    if report.verified or report.unverified:
        click.echo(f"verified: {report.verified.total()} changes keep results")
        for name, reason in report.unverified.items():
            click.echo(f"not verified: {name} in part, as {reason}")
    if output is None:
        click.echo("nothing was saved; -o OUT.onnx saves the optimized model")
    for problem in report.problems:
        click.secho(f"left out: {problem}", fg="red")


def describe_changes(changes: Iterable[Change]) -> list[str]:
    """Return lines that say which rule or pass replaced what by what, and where; equal changes are listed once."""
    groups: dict[tuple[str, str], list[Change]] = {}
    for change in changes:
        groups.setdefault((change.optimization, _exchange(change)), []).append(change)
    lines = []
    for (name, exchange), members in groups.items():
        times = f", {len(members)} times" if len(members) > 1 else ""
        lines.append(click.style(f"{name}{times}", bold=True))
        lines += fold(f"    {exchange}", terminal_width())
        places = [place for member in members if (place := _place(member))]
        if places:
            more = f", and {len(places) - _PLACES} more" if len(places) > _PLACES else ""
            places_text = f"    at {', '.join(places[:_PLACES])}{more}"
            lines += [click.style(line, dim=True) for line in fold(places_text, terminal_width())]
    return lines


def _exchange(change: Change) -> str:
    """Return `2 Mul, Add, Tanh -> Gelu`; of many nodes without what goes and comes again."""
    removed = collections.Counter(label.operator for label in change.removed)
    added = collections.Counter(label.operator for label in change.added)
    if removed.total() > _MANY:
        removed, added = removed - added, added - removed
    if not added:
        return f"removes {_counted(removed)}"
    return f"{_counted(removed)} -> {_counted(added)}" if removed else f"adds {_counted(added)}"


def _counted(operators: collections.Counter[str]) -> str:
    names = [f"{count} {name}" if count > 1 else name for name, count in sorted(operators.items())]
    if len(names) > _OPERATORS:
        names = [f"{count} {name}" if count > 1 else name for name, count in operators.most_common(_OPERATORS)]
        names.append(f"{operators.total() - sum(count for _, count in operators.most_common(_OPERATORS))} others")
    return ", ".join(names)


def _place(change: Change) -> str:
    """Return where it happened: what came, else what went, if either has a name; "" for what happened in many places."""
    if len(change.removed) > _MANY:
        return ""
    return next((label.name for label in (*reversed(change.added), *change.removed) if label.name), "")
