"""`sardonyx diff MODEL --a … --b …`: the first node that two configurations compute differently."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from click.core import ParameterSource

from sardonyx.cli.completions import ModelPath
from sardonyx.cli.console import (
    counted,
    json_option,
    loaded_providers,
    print_json,
    print_table,
    print_text,
    progress,
    readable_errors,
    session_options,
)
from sardonyx.cli.feeds import draw_feed, input_options, read_feed
from sardonyx.cli.input_files import read_archive
from sardonyx.cli.load import add_operators
from sardonyx.diff import Difference, Finding, NotFinite, TensorError, diff_model, diff_recorded, values_of_model
from sardonyx.diff.configuration import ENGINES
from sardonyx.diff.report import FoundValue
from sardonyx.diff.reproducer import free_path, save_reproducer
from sardonyx.errors import NoSuchFile
from sardonyx.session.options import SessionOptions

__all__ = ["diff"]

_DIFFERS, _TROUBLE = 1, 2
_FILES = (".npz", ".onnx", ".ort", ".tflite", ".circle")
"""Endings of what can be compared with; a configuration has none."""
_LOADING = {"loaded": "--load", "loaded_b": "--load-b"}
_MOST_ROWS = 40
_MOST_PLACES = 5


@click.command(short_help="Find the first node that differs between two runs of MODEL.")
@click.argument("model", type=ModelPath())
@click.argument("changed", type=ModelPath(), required=False)
@click.option(
    "--a", "a", default="level=none,provider=Reference", show_default=True, metavar="CONFIGURATION|FILE", help="What is right."
)
@click.option("--b", "b", default="default", show_default=True, metavar="CONFIGURATION", help="What is compared with it.")
@input_options
@click.option(
    "--outputs",
    "asked",
    multiple=True,
    metavar="all|NAME[,NAME]",
    help="Compare these values in whole runs too; repeat it. all: every value of the model.",
)
@click.option("--rtol", type=float, help="Relative tolerance, in the place of automatic limits.")
@click.option("--atol", type=float, help="Absolute tolerance, in the place of automatic limits.")
@click.option(
    "--window", default=16, show_default=True, type=click.IntRange(min=1), help="Nodes tried together where outputs agree."
)
@click.option("--outputs-only", is_flag=True, help="Compare outputs, and search for no node.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the small model here; by default MODEL.diff.onnx.")
@click.option(
    "--load-b", "loaded_b", multiple=True, metavar="FILE.py", help="Know the operators and providers of this file on side b only."
)
@session_options
@json_option
def diff(
    model: str,
    changed: str | None,
    a: str,
    b: str,
    inputs: Sequence[str],
    seed: int,
    dims: Sequence[str],
    ranges: Sequence[str],
    asked: Sequence[str],
    rtol: float | None,
    atol: float | None,
    window: int,
    outputs_only: bool,
    output: Path | None,
    loaded_b: Sequence[str],
    options: SessionOptions,
    as_json: bool,
) -> None:
    """Run MODEL under two configurations and find the first node that differs, by how much and who is wrong.

    A CONFIGURATION is a list of level=none|basic|extended|layout|all, provider=NAME[+NAME], precision=TYPE, threads=N, isa=NAME,
    disable=RULE[+RULE] and KEY=TEXT of config entries, or begins with another engine: onnxruntime, openvino. For --a also a file:
    NAMES.npz with values that were computed elsewhere, or another model, whose values of the same names are compared. The status
    is 0 where nothing differs, 1 where something does, and 2 where the comparison fails.

    With CHANGED, what was made of MODEL, such as an optimized or quantized model, it is `sardonyx diff CHANGED --a MODEL`.
    """
    if changed is not None:
        if click.get_current_context().get_parameter_source("a") is not ParameterSource.DEFAULT:
            raise click.UsageError("give --a or two models, not both")
        model, a = changed, model
    with _trouble():
        if Path(a).suffix in _FILES and not Path(a).is_file():
            raise NoSuchFile(f"there is no file {a!r} to compare with")
        if Path(a).is_file():
            found = _against_file(Path(a), model, b, (inputs, dims, ranges, seed), options, loaded_b, rtol, atol)
        else:
            feed = draw_feed(model, inputs, dims, ranges, seed)()
            b_options = options.copy()
            more = add_operators(b_options, loaded_b)
            with progress(f"comparing {model}", 1) as advance:
                found = diff_model(
                    model,
                    a,
                    b,
                    feed,
                    providers=[*loaded_providers(), *more],
                    options=options,
                    b_options=b_options,
                    rtol=rtol,
                    atol=atol,
                    tensors=[name for text in asked for name in text.split(",")],
                    searches=not outputs_only,
                    window=window,
                    on_step=lambda label: advance(f"comparing {label}", 0),
                )
        files = _save(found, model, output)
    if as_json:
        print_json({**found.facts(), "small_model": [str(file) for file in files]})
    else:
        _print(found, files, a, b, searches=not outputs_only and not Path(a).is_file())
    raise SystemExit(0 if found.agrees else _DIFFERS)


def _against_file(
    path: Path,
    model: str,
    b: str,
    feeding: tuple[Sequence[str], Sequence[str], Sequence[str], int],
    options: SessionOptions,
    loaded_b: Sequence[str],
    rtol: float | None,
    atol: float | None,
) -> Difference:
    """Compare a model with values of a file, or with those of another model of the same names, on the same inputs.

    Inputs that an archive of values has are fed.
    """
    limits: dict[str, float | None] = {"rtol": rtol, "atol": atol}
    b_options = options.copy()
    providers = [*loaded_providers(), *add_operators(b_options, loaded_b)]
    if path.suffix != ".npz":
        feed = draw_feed(model, *feeding)()
        right = values_of_model(str(path), feed, options)
        return diff_recorded(model, right, b, feed, label=str(path), providers=providers, options=b_options, **limits)
    values = read_archive(path)
    feed = read_feed(model, *feeding[:3], values, str(path))
    return diff_recorded(model, values, b, feed, label=str(path), providers=providers, options=b_options, **limits)


@contextlib.contextmanager
def _trouble() -> Iterator[None]:
    """End with status 2 where the comparison itself fails, after the message."""
    try:
        with readable_errors():
            yield
    except SystemExit as end:
        raise SystemExit(_TROUBLE) from end


def _save(found: Difference, model: str, output: Path | None) -> list[Path]:
    if found.found is None:
        return []
    path = output or free_path(Path(model), Path.cwd())
    return [path, save_reproducer(found.found, path)]


def _print(found: Difference, files: Sequence[Path], a: str, b: str, *, searches: bool) -> None:
    print_text(f"{found.model}: {counted(found.nodes, 'node')}, {counted(found.compared, 'part')} compared")
    click.echo(f"a: {found.a}\nb: {found.b}")
    if found.failure:
        click.secho(f"b fails: {found.failure}", fg="red")
    _print_errors("outputs", found.outputs)
    _print_errors("values in whole runs", found.tensors)
    for odd in found.not_finite:
        _print_not_finite(odd)
    if not found.not_finite and searches and any(error.not_finite for error in found.outputs):
        click.echo("no node makes the NaN and infinities of a: they are in its inputs or weights")
    if found.unknown:
        more = " …" if len(found.unknown) > _MOST_PLACES else ""
        print_text(f"names of {found.a} that the model does not have: {', '.join(found.unknown[:_MOST_PLACES])}{more}")
    if found.first is not None:
        _print_first(found.first)
        return
    if found.found is None:
        click.echo("nothing differs" if found.agrees else "no part of the model differs alone, on the values that a computes")
        if found.agrees and click.get_current_context().params.get("loaded") and not found.a.startswith(ENGINES[1:]):
            print_text("a and b both know the files of --load; --load-b lets b alone know one")
        return
    _print_finding(found.found)
    path, data = files
    files_of = click.get_current_context().params
    loaded = [item for key in ("loaded", "loaded_b") for file in files_of.get(key, ()) for item in (_LOADING[key], file)]
    again = ["sardonyx", "diff", str(path), "--input", str(data), "--a", a, "--b", b, *loaded]
    click.echo(f"small model: {shlex.join(again)}")


def _print_first(first: FoundValue) -> None:
    """Print the first value that differs from a recorded one, and what is known of its node's inputs."""
    node = first.node
    click.secho(f"first value that differs: {first.value}, of {node.name!r} ({node.op_type}, number {node.index})", bold=True)
    if first.agreeing:
        print_text(f"    of its inputs agree: {', '.join(first.agreeing)}")
    if first.unrecorded:
        print_text(f"    not recorded, so that the difference may begin before: {', '.join(first.unrecorded)}")


def _print_not_finite(odd: NotFinite) -> None:
    """Print where NaN or infinities come from, after the infinities that NaN were made of."""
    if odd.before is not None:
        _print_not_finite(odd.before)
    inputs = "made of infinities" if odd.of_infinities else f"made of finite inputs, the largest {_number(odd.largest)}"
    click.secho(f"a: {odd.kind} first at {odd.node.name!r} ({odd.node.op_type}, number {odd.node.index})", bold=True)
    print_text(f"    {odd.value}: {odd.count} of {odd.elements} elements, {inputs}{_overflow(odd)}")


def _overflow(odd: NotFinite) -> str:
    return f"; the largest number of its type is {_number(odd.greatest)}" if odd.kind == "infinities" else ""


def _print_finding(found: Finding) -> None:
    first = found.nodes[0]
    click.secho(
        f"first node that differs: {first.name!r} ({first.op_type}, number {first.index})"
        if len(found.nodes) == 1
        else f"first nodes that differ: {len(found.nodes)} of them, only together",
        bold=True,
    )
    if len(found.nodes) > 1:
        for node in found.nodes[:_MOST_ROWS]:
            click.echo(f"    {node.name!r} ({node.op_type}, number {node.index})")
    if found.suspect is not None:
        click.secho(
            f"the first value that differs among them is made by {found.suspect.name!r} ({found.suspect.op_type})", bold=True
        )
    if found.failure:
        click.secho(f"b fails: {found.failure}", fg="red")
    _print_errors("", found.tensors)
    if found.steps:
        click.echo("b runs: " + ", ".join(f"{operator} on {provider}" for operator, provider in found.steps))
    if found.rules:
        click.echo("rules that fire in b: " + ", ".join(found.rules))
    for name, (one, other) in found.exact.items():
        click.echo(f"against float64, {name}: a is off by {_number(one)}, b by {_number(other)}")
    if found.inexact:
        click.echo(f"there is no result in float64: {found.inexact}")
    if found.wrong:
        click.secho(f"{found.wrong} is wrong", bold=True)


def _print_errors(title: str, errors: Sequence[TensorError]) -> None:
    if not errors:
        return
    shown = sorted(errors, key=lambda error: error.agrees)[:_MOST_ROWS] if len(errors) > _MOST_ROWS else errors
    rows = [
        (
            error.name,
            _number(error.max_abs),
            _number(error.max_rel),
            "" if error.max_ulp is None else f"{error.max_ulp:.3g}",
            _number(error.limit),
            ("agrees" if error.agrees else "differs") + (f", {error.not_finite} NaN or infinite in a" if error.not_finite else ""),
        )
        for error in shown
    ]
    print_table(title, ("value", "max abs", "max rel", "ulp", "limit", ""), rows)
    for error in [error for error in shown if not error.agrees][:_MOST_PLACES]:
        click.echo(f"    {error.name}: {error.type}{list(error.shape)}, {error.unequal} of {error.elements} elements are not equal")
        place = f"at {list(error.at)}: a {_element(error.a)}, b {_element(error.b)}"
        click.echo(f"        {error.problem or place}")
    if len(errors) > len(shown):
        click.echo(f"and {len(errors) - len(shown)} more; --json has all")


def _element(item: object) -> str:
    return f"{item:.9g}" if isinstance(item, float) else repr(item)


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.3g}"
