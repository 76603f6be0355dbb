"""`sardonyx inspect MODEL`: what a file holds."""

from __future__ import annotations

import collections
from typing import Any

import click

from sardonyx.cli.completions import ModelPath
from sardonyx.cli.console import json_option, print_json, print_table, progress, readable_errors
from sardonyx.formats.onnx import load
from sardonyx.ir import Model, Value
from sardonyx.ir.text import print_model
from sardonyx.ir.walk import all_graphs, all_nodes


@click.command()
@click.argument("model", type=ModelPath())
@click.option("--text", is_flag=True, help="Print the whole model, one node per line.")
@json_option
def inspect(model: str, text: bool, as_json: bool) -> None:
    """Show what MODEL holds: versions, inputs, outputs, weights and operators."""
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
        "operators": dict(operators.most_common()),
        "metadata": model.metadata,
    }


def _describe_value(value: Value) -> dict[str, object]:
    shape = None if value.shape is None else [dim if isinstance(dim, int) else str(dim) for dim in value.shape]
    return {"name": value.name, "type": str(value.type or "unknown"), "shape": shape}


def _print(facts: dict[str, Any]) -> None:
    opsets = ", ".join(f"{domain} {version}" for domain, version in facts["opset_imports"].items())
    click.echo(f"{facts['model']}: IR version {facts['ir_version']}, opset {opsets}, written by {facts['producer'] or 'unknown'}")
    click.echo(f"{facts['nodes']} nodes, {facts['parameters']:,} parameters, {facts['weight_bytes'] / 2**20:.1f} MiB of weights")
    for kind in ("inputs", "outputs"):
        rows = [(item["name"], item["type"], item["shape"]) for item in facts[kind]]
        print_table(kind, ("name", "type", "shape"), rows)
    print_table("operators", ("operator", "nodes"), list(facts["operators"].items()))
    for key, text in facts["metadata"].items():
        click.echo(f"{key}: {text}")
