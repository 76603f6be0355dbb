"""`sardonyx inspect MODEL`: what a file holds, as text or as a page."""

from __future__ import annotations

import collections
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from sardonyx.cli.completions import ModelPath
from sardonyx.cli.console import (
    chosen_providers,
    counted,
    fail,
    force_option,
    json_option,
    print_json,
    print_table,
    print_text,
    progress,
    provider_option,
    readable_errors,
    refuse_existing,
    session_options,
)
from sardonyx.cli.feeds import draw_feed, input_options
from sardonyx.dtypes import OnnxValue
from sardonyx.formats.models import load
from sardonyx.inspection import inspect_model, render_page
from sardonyx.ir import AttributeKind, Model, Node, Value
from sardonyx.ir.text import print_model
from sardonyx.ir.walk import all_graphs, all_nodes
from sardonyx.session.options import SessionOptions

_STEPS = ("loading", "optimizing", "assigning", "compiling")


@click.command(short_help="Show what MODEL holds; --html writes a page about it.")
@click.argument("model", type=ModelPath())
@click.option("--text", is_flag=True, help="Print the whole model, one node per line.")
@click.option(
    "--html",
    "page",
    type=click.Path(path_type=Path),
    metavar="OUT.html",
    help="Write a page: the graph before and after optimization, who runs what, memory and a profile.",
)
@click.option(
    "--profile", "profile", type=click.Path(path_type=Path), help="Show this profile, of Chrome's trace events, on the page."
)
@input_options
@force_option
@provider_option
@session_options
@json_option
def inspect(
    model: str,
    text: bool,
    page: Path | None,
    profile: Path | None,
    inputs: Sequence[str],
    seed: int,
    dims: Sequence[str],
    ranges: Sequence[str],
    force: bool,
    provider_names: Sequence[str],
    options: SessionOptions,
    as_json: bool,
) -> None:
    """Show what MODEL holds: versions, inputs, outputs, weights and operators.

    With --html a session is built as `run` does it, and all that it shows goes into one file that any browser opens, without a
    network. --provider, --place and --config are those of the session; inputs, for the memory plan, are drawn where none are given.
    """
    if profile is not None and page is None:
        fail("--profile is shown on a page; give --html OUT.html")
    if page is not None:
        with readable_errors():
            refuse_existing([page], force=force)
            _write_page(model, page, profile, draw_feed(model, inputs, dims, ranges, seed), provider_names, options)
        return
    with readable_errors(), progress(f"loading {model}", 1):
        loaded = load(model)
    if text:
        click.echo(print_model(loaded))
        return
    facts = describe(loaded)
    if as_json:
        print_json(facts)
        return
    _print(facts)


def _write_page(
    model: str,
    page: Path,
    profile: Path | None,
    feed: Callable[[], Mapping[str, OnnxValue]],
    provider_names: Sequence[str],
    options: SessionOptions,
) -> None:
    """Write the page, with a progress bar over its stages."""
    if not page.absolute().parent.is_dir():
        fail(f"there is no folder {str(page.parent)!r} to write {page.name} into")
    providers = chosen_providers(provider_names)
    with progress(f"inspecting {model}", len(_STEPS)) as advance:
        found = inspect_model(
            model, describe, providers=providers, options=options, feed=feed, profile=profile, on_step=lambda label: advance(label)
        )
    page.write_text(render_page(found), encoding="utf-8")
    for note in found.notes:
        click.secho(note, fg="yellow", err=True)
    print_text(
        f"{page}: {counted(len(found.before['nodes']), 'node')}, {page.stat().st_size / 2**20:.1f} MiB; open it in a browser"
    )


def describe(model: Model) -> dict[str, object]:
    """Return what `inspect` shows of a model, as JSON has it."""
    initializers = [value for graph in all_graphs(model) for value in graph.initializers.values()]
    constants = [value.constant for value in initializers if value.constant is not None]
    operators = collections.Counter(f"{node.domain}.{node.op_type}" if node.domain else node.op_type for node in all_nodes(model))
    return {
        "model": model.label,
        "producer": f"{model.producer_name} {model.producer_version}".strip(),
        "ir_version": model.ir_version,
        "opset_imports": {domain or "ai.onnx": version for domain, version in model.opset_imports.items()},
        "inputs": [_describe_value(value) for value in model.graph.inputs],
        "outputs": [_describe_value(value) for value in model.graph.outputs],
        "nodes": sum(operators.values()),
        "functions": [f"{domain}.{name}" for domain, name, _ in model.functions],
        "parameters": sum(constant.size for constant in constants),
        "weight_bytes": sum(constant.size_bytes for constant in constants),
        "attribute_numbers": sum(map(_numbers_in, all_nodes(model))),
        "operators": dict(operators.most_common()),
        "metadata": model.metadata,
    }


def _numbers_in(node: Node) -> int:
    """Return how many elements the lists of a node's attributes have: the trees of a forest, for one."""
    kinds = (AttributeKind.INTS, AttributeKind.FLOATS, AttributeKind.STRINGS)
    return sum(len(item.value) for item in node.attributes.values() if item.kind in kinds and item.reference is None)


def _describe_value(value: Value) -> dict[str, object]:
    shape = None if value.shape is None else [dim if isinstance(dim, int) else str(dim) for dim in value.shape]
    return {"name": value.name, "type": str(value.type or "unknown"), "shape": shape}


def _shape_text(shape: Sequence[int | str] | None) -> str:
    """Return a shape with ? for sizes without a name; "" where there is none."""
    return "" if shape is None else f"[{', '.join('?' if str(dim).startswith('?') else str(dim) for dim in shape)}]"


def _print(facts: dict[str, Any]) -> None:
    opsets = ", ".join(f"{domain} {version}" for domain, version in facts["opset_imports"].items())
    print_text(f"{facts['model']}: IR version {facts['ir_version']}, opset {opsets}, written by {facts['producer'] or 'unknown'}")
    in_attributes = facts["attribute_numbers"]
    click.echo(
        f"{facts['nodes']} node{'s' * (facts['nodes'] != 1)}, {facts['parameters']:,} parameters, "
        f"{facts['weight_bytes'] / 2**20:.1f} MiB of weights"
        + (f", {in_attributes:,} elements in attributes" if in_attributes > facts["parameters"] else "")
    )
    for kind in ("inputs", "outputs"):
        rows = [(item["name"], item["type"], _shape_text(item["shape"])) for item in facts[kind]]
        print_table(kind, ("name", "type", "shape"), rows)
    print_table("operators", ("operator", "nodes"), list(facts["operators"].items()))
    for key, text in facts["metadata"].items():
        print_text(f"{key}: {text}")
