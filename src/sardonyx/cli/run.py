"""`sardonyx run MODEL`: run a model on files or random inputs."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import numpy as np

from sardonyx.cli.completions import ModelPath
from sardonyx.cli.console import (
    fail,
    force_option,
    json_option,
    open_session,
    print_json,
    print_table,
    progress,
    provider_option,
    readable_errors,
    refuse_existing,
    session_options,
)
from sardonyx.cli.feeds import input_options, make_feed
from sardonyx.cli.output_files import file_names, write_outputs
from sardonyx.dtypes import DataType, OnnxValue
from sardonyx.errors import InvalidArgument
from sardonyx.session.inference_session import InferenceSession
from sardonyx.session.options import SessionOptions

_MOST_LETTERS = 200
"""Of the values of one output in the table."""


@click.command(short_help="Run MODEL and show its outputs.")
@click.argument("model", type=ModelPath())
@input_options
@click.option("--random", is_flag=True, help="Draw the inputs that no file feeds.")
@click.option("--repeat", default=1, show_default=True, type=click.IntRange(min=1), help="Runs to time.")
@click.option(
    "--outputs",
    "asked",
    multiple=True,
    metavar="all|NAME[,NAME]",
    help="Compute these values, also such that are no outputs, instead of the outputs; repeat it. all: every value of the model.",
)
@click.option(
    "--output-dir",
    type=click.Path(path_type=Path),
    help="Write each output to a file in this folder: tensors as .npy, sequences as .npz, maps as .json.",
)
@click.option("--memory", is_flag=True, help="Show how much memory the session takes after the runs.")
@force_option
@provider_option
@session_options
@json_option
def run(
    model: str,
    inputs: Sequence[str],
    random: bool,
    seed: int,
    dims: Sequence[str],
    ranges: Sequence[str],
    repeat: int,
    asked: Sequence[str],
    output_dir: Path | None,
    memory: bool,
    force: bool,
    provider_names: Sequence[str],
    options: SessionOptions,
    as_json: bool,
) -> None:
    """Run MODEL once, or more often with --repeat, and show its outputs."""
    if output_dir is not None and output_dir.exists() and not output_dir.is_dir():
        fail(f"--output-dir takes a folder, and {str(output_dir)!r} is a file")
    with readable_errors():
        session = open_session(model, provider_names, options)
        feed = make_feed(session, inputs, dims, ranges, seed if random else None)
        names = _asked_names(session, asked)
        if asked:
            session.run(names, feed)  # which builds a model for them, and is not part of the times
        times_ms = []
        with progress(f"running {model}", repeat) as advance, _hint_at_sizes(feed, drawn=random):
            for _ in range(repeat):
                start = time.perf_counter()
                results = session.run(names, feed)
                times_ms.append(1e3 * (time.perf_counter() - start))
                advance("running")
        files = file_names(names, results) if output_dir is not None else {}
        if output_dir is not None:
            refuse_existing((output_dir / file for file in files.values() if file is not None), force=force)
            write_outputs(output_dir, names, results)
    facts = [{"name": name, **_describe(value)} for name, value in zip(names, results, strict=True)]
    for fact in facts:
        fact |= {"file": files[str(fact["name"])]} if files else {}
    if as_json:
        times: dict[str, object] = {"runs": repeat, "median_ms": statistics.median(times_ms), "first_ms": times_ms[0]}
        print_json({"outputs": facts, **times, **({"memory": session.memory_report().to_dict()} if memory else {})})
        return
    print_table("", ("output", "type", "shape", "values"), [tuple(fact.values())[:4] for fact in facts])
    click.echo(f"{repeat} run{'s' if repeat > 1 else ''}, median {statistics.median(times_ms):.3f} ms, first {times_ms[0]:.3f} ms")
    for name, file in files.items():
        place = "not written, as the optional is empty" if output_dir is None or file is None else f"written to {output_dir / file}"
        click.echo(f"{name}: {place}")
    if memory:
        click.echo(str(session.memory_report()))


@contextlib.contextmanager
def _hint_at_sizes(feed: dict[str, OnnxValue], *, drawn: bool) -> Iterator[None]:
    """Say with what is wrong with a feed which sizes were drawn, and how to give others."""
    try:
        yield
    except InvalidArgument as error:
        shapes = ", ".join(f"{name} {list(value.shape)}" for name, value in feed.items() if drawn and isinstance(value, np.ndarray))
        if not shapes:
            raise
        advice = "--dim NAME=SIZE, --range NAME=LOW:HIGH or --input gives others"
        raise InvalidArgument(f"{error}\nThe inputs that were drawn have the shapes {_short(shapes)}; {advice}.") from error


def _asked_names(session: InferenceSession, asked: Sequence[str]) -> list[str]:
    """Return the names of what is to be computed: the outputs, unless `--outputs` names others."""
    outputs = [output.name for output in session.get_outputs()]
    if not asked:
        return outputs
    known = [value.name for value in session.get_intermediates()]
    if "all" in asked:
        return [*known, *outputs]
    whole = {*known, *outputs}
    return [name for text in asked for name in ([text] if text in whole else filter(None, text.split(",")))]


def _describe(value: object) -> dict[str, object]:
    if isinstance(value, np.ndarray):
        text = np.array2string(value, threshold=8, edgeitems=3 if value.ndim < 2 else 1, precision=5)
        return {"type": str(DataType.from_numpy(value.dtype)), "shape": list(value.shape), "values": _short(text)}
    shape = [len(value)] if isinstance(value, (list, dict)) else []
    return {"type": type(value).__name__, "shape": shape, "values": _short(str(value))}


def _short(text: str) -> str:
    """Return a text on one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= _MOST_LETTERS else f"{line[:_MOST_LETTERS]} …"
