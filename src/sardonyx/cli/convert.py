"""`sardonyx convert IN OUT`: write a model in another format, and show what that could not express."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import click

from sardonyx.cli.completions import ModelPath
from sardonyx.cli.console import (
    counted,
    following,
    force_option,
    json_option,
    print_json,
    print_table,
    print_text,
    readable_errors,
    refuse_existing,
)
from sardonyx.cli.load import add_operators, load_option
from sardonyx.formats.model_format import Loss
from sardonyx.formats.registry import format_for_path
from sardonyx.ir import Model
from sardonyx.session.optimization import optimize_file
from sardonyx.session.options import SessionOptions
from sardonyx.session.saving import save_model
from sardonyx.session.settings.settings import Settings, read_settings
from sardonyx.session.stages.source import Source

__all__ = ["convert"]

_LEVELS = {"none": "0", "basic": "1", "extended": "2", "all": "99"}


@click.command(short_help="Write MODEL, of any format, as ONNX, ORT or an NN package.")
@click.argument("model", type=ModelPath())
@click.argument("output", type=click.Path(path_type=Path))
@click.option("--to", "name", default="", metavar="FORMAT", help="The format: ONNX, ORT, NNPackage …; else by the suffix.")
@click.option("--level", type=click.Choice(list(_LEVELS)), default="none", show_default=True, help="How far to optimize it first.")
@click.option("--external-data", metavar="NAME", default="", help="Put the weights in this file beside OUTPUT, in ONNX's format.")
@force_option
@load_option
@json_option
def convert(
    model: str,
    output: Path,
    name: str,
    level: str,
    external_data: str,
    force: bool,
    loaded: Sequence[str],
    as_json: bool,
) -> None:
    """Write MODEL, of any format, as OUTPUT: ONNX, ORT, or an NN package around it.

    The suffix of OUTPUT says which: .ort is ONNX Runtime's format, .nnpackage a folder and .zip an archive of an NN package, all
    else ONNX. What the format cannot express is listed.
    """
    refuse_existing([output, *((output.parent / external_data,) if external_data else ())], force=force)
    options = SessionOptions()
    options.optimized_model_filepath = str(output)
    options.add_session_config_entry("session.graph_optimization_level", _LEVELS[level])
    with readable_errors():
        add_operators(options, loaded)
        chosen = format_for_path(output, name)
        with following(model):
            converted = _read(model, read_settings(options), is_plain=level == "none")
            nodes = sum(1 for _ in converted.graph)
            losses = save_model(converted, output, chosen.name, data_name=external_data)
    if as_json:
        rows = [{"where": loss.where, "what": loss.what} for loss in losses]
        print_json({"path": str(output), "format": chosen.name, "nodes": nodes, "not_expressed": rows})
        return
    print_text(f"{output}: {chosen.name}, {counted(nodes, 'node')}, {_size(output)}")
    _print(losses)


def _read(model: str, settings: Settings, *, is_plain: bool) -> Model:
    if is_plain:
        return Source.of(model).read(settings.load)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a rule that is left out changes no result
        return optimize_file(model, settings)[0]


def _size(path: Path) -> str:
    files = [path] if path.is_file() else [item for item in path.rglob("*") if item.is_file()]
    return f"{sum(item.stat().st_size for item in files) / 2**20:.1f} MiB"


def _print(losses: Sequence[Loss]) -> None:
    if losses:
        print_table("not expressed", ("where", "what"), [(loss.where, loss.what) for loss in losses])
    else:
        click.echo("everything is expressed")
