"""`sardonyx run MODEL`: run a model on files or random inputs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np

from sardonyx.cli.completions import ModelPath
from sardonyx.cli.console import (
    force_option,
    json_option,
    open_session,
    placement_options,
    print_json,
    print_table,
    progress,
    provider_option,
    readable_errors,
    refuse_existing,
)
from sardonyx.cli.feeds import input_options, make_feed
from sardonyx.cli.output_files import file_names, write_outputs
from sardonyx.dtypes import DataType
from sardonyx.session.options import SessionOptions


@click.command()
@click.argument("model", type=ModelPath())
@input_options
@click.option("--random", is_flag=True, help="Draw the inputs that no file feeds.")
@click.option("--repeat", default=1, show_default=True, type=click.IntRange(min=1), help="Runs to time.")
@click.option(
    "--output-dir",
    type=click.Path(path_type=Path),
    help="Write each output to a file in this folder: tensors as .npy, sequences as .npz, maps as .json.",
)
@force_option
@provider_option
@placement_options
@json_option
def run(
    model: str,
    inputs: Sequence[str],
    random: bool,
    seed: int,
    dims: Sequence[str],
    ranges: Sequence[str],
    repeat: int,
    output_dir: Path | None,
    force: bool,
    provider_names: Sequence[str],
    options: SessionOptions,
    as_json: bool,
) -> None:
    """Run MODEL once, or more often with --repeat, and show its outputs."""
    with readable_errors():
        session = open_session(model, provider_names, options)
        feed = make_feed(session, inputs, dims, ranges, seed if random else None)
        times_ms = []
        with progress(f"running {model}", repeat) as advance:
            for _ in range(repeat):
                start = time.perf_counter()
                results = session.run(None, feed)
                times_ms.append(1e3 * (time.perf_counter() - start))
                advance("running")
        names = [output.name for output in session.get_outputs()]
        files = file_names(names, results) if output_dir is not None else {}
        if output_dir is not None:
            refuse_existing((output_dir / file for file in files.values()), force=force)
            write_outputs(output_dir, names, results)
    facts = [{"name": name, **_describe(value)} for name, value in zip(names, results, strict=True)]
    for fact in facts:
        fact |= {"file": files[str(fact["name"])]} if files else {}
    if as_json:
        print_json({"outputs": facts, "runs": repeat, "median_ms": statistics.median(times_ms), "first_ms": times_ms[0]})
        return
    columns = ("output", "type", "shape", "values", *(("file",) if files else ()))
    print_table("", columns, [tuple(fact.values()) for fact in facts])
    click.echo(f"{repeat} run{'s' if repeat > 1 else ''}, median {statistics.median(times_ms):.3f} ms, first {times_ms[0]:.3f} ms")


def _describe(value: object) -> dict[str, object]:
    if isinstance(value, np.ndarray):
        text = np.array2string(value, threshold=8, edgeitems=3, precision=5).replace("\n", " ")
        return {"type": str(DataType.from_numpy(value.dtype)), "shape": list(value.shape), "values": text[:200]}
    shape = [len(value)] if isinstance(value, (list, dict)) else []
    return {"type": type(value).__name__, "shape": shape, "values": str(value)[:200]}
