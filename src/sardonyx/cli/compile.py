"""`sardonyx compile MODEL`: write a model whose partitions are compiled already."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from pathlib import Path

import click

from sardonyx.cli.completions import ModelPath
from sardonyx.cli.console import (
    chosen_providers,
    force_option,
    json_option,
    open_session,
    print_json,
    print_text,
    provider_option,
    readable_errors,
    refuse_existing,
    session_options,
)
from sardonyx.session.context.model_compiler import ModelCompiler
from sardonyx.session.options import SessionOptions

__all__ = ["compile_ahead"]


@click.command("compile", short_help="Write MODEL compiled, so that loading compiles nothing.")
@click.argument("model", type=ModelPath())
@click.option("-o", "--output", type=click.Path(), help="Where the compiled model goes; NAME_ctx.onnx beside MODEL by default.")
@click.option("--embed", is_flag=True, help="Put the programs into the model itself, not into files beside it.")
@click.option("--weightless", is_flag=True, help="Leave weights in MODEL, which is then needed beside the compiled model.")
@provider_option
@force_option
@session_options
@json_option
def compile_ahead(
    model: str,
    output: str | None,
    embed: bool,
    weightless: bool,
    provider_names: Sequence[str],
    force: bool,
    options: SessionOptions,
    as_json: bool,
) -> None:
    """Write a model whose partitions are compiled already; loading it compiles nothing, on this kind of processor."""
    path = Path(output) if output else Path(model).parent / f"{Path(model).stem}_ctx.onnx"
    refuse_existing([path], force=force)
    chosen = options.copy()
    chosen.add_session_config_entry("ep.enable_weightless", str(int(weightless)))
    options.add_session_config_entry("ep.context_source_model_path", model)
    with readable_errors():
        providers = chosen_providers(provider_names) or None
        ModelCompiler(chosen, model, embed_compiled_data_into_model=embed, providers=providers).compile_to_file(path)
        placements = open_session(str(path), provider_names, options).explain()
    programs = collections.Counter(item.provider for item in placements if item.op_type == "com.microsoft.EPContext")
    rest = len(placements) - programs.total()
    if as_json:
        print_json({"path": str(path), "programs": dict(programs), "other_nodes": rest})
        return
    told = ", ".join(f"{count} of {name}" for name, count in programs.items()) or "none"
    print_text(f"{path}: {programs.total()} compiled partition{'s' * (programs.total() != 1)} ({told}), {rest} other nodes")
