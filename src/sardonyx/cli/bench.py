"""`sardonyx bench MODEL`: how fast a model runs, here and in other engines, each in a process of its own, in turns."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from sardonyx import config
from sardonyx.cli.bench_engines import Engine, Job, Measured, start_engine
from sardonyx.cli.bench_tables import describe_engines, print_engines
from sardonyx.cli.bench_worker import ENGINES
from sardonyx.cli.completions import ModelPath
from sardonyx.cli.console import (
    chosen_providers,
    fail,
    json_option,
    open_session,
    print_json,
    progress,
    provider_option,
    readable_errors,
    session_options,
)
from sardonyx.cli.feeds import input_options, make_feed
from sardonyx.codegen.run.processors import available_processors
from sardonyx.errors import SardonyxError
from sardonyx.session.options import SessionOptions

__all__ = ["bench"]

OWN = "sardonyx"


@click.command(short_help="Measure latency, throughput, start and memory of MODEL.")
@click.argument("model", type=ModelPath())
@click.option("--duration", default=3.0, show_default=True, type=click.FloatRange(min=0), help="Seconds that each engine runs.")
@click.option("--count", default=0, type=click.IntRange(min=0), help="Runs of each engine, instead of a duration.")
@click.option("--warmup", default=0.5, show_default=True, type=click.FloatRange(min=0), help="Seconds that it runs before.")
@click.option("--streams", default=1, show_default=True, type=click.IntRange(min=1), help="Runs that are under way at a time.")
@click.option("--turns", default=5, show_default=True, type=click.IntRange(min=1), help="Turns in which engines run.")
@click.option("--against", default="", metavar="ENGINE,…", help=f"Compare with {' and '.join(list(ENGINES)[1:])}, where installed.")
@click.option("--starts", default=2, show_default=True, type=click.IntRange(min=1), help="Processes of each engine to start.")
@click.option("--cold", is_flag=True, help="Start one more with an empty cache of kernels.")
@input_options
@provider_option
@session_options
@json_option
def bench(
    model: str,
    duration: float,
    count: int,
    warmup: float,
    streams: int,
    turns: int,
    against: str,
    starts: int,
    cold: bool,
    inputs: Sequence[str],
    seed: int,
    dims: Sequence[str],
    ranges: Sequence[str],
    provider_names: Sequence[str],
    options: SessionOptions,
    as_json: bool,
) -> None:
    """Measure how long runs of MODEL take, how many end in a second, how long a process needs to its first result, and memory.

    Inputs not given are drawn. With --against other engines run the same inputs, in turns with this one, and ratios are shown.
    """
    names = [OWN, *_engines(against)]
    with readable_errors():
        session = open_session(model, provider_names, options)
        feed = make_feed(session, inputs, dims, ranges, seed)
        del session
    threads = options.intra_op_num_threads or config.num_threads() or available_processors()
    loaded = click.get_current_context().params["loaded"]
    providers = [item if isinstance(item, str) else item.name for item in chosen_providers(provider_names)]
    job = Job(str(Path(model).resolve()), feed, options, providers, loaded, threads, streams)
    found = [Measured(name) for name in names]
    with readable_errors(), tempfile.TemporaryDirectory(prefix="sardonyx-bench-") as folder:
        _measure(found, job, Path(folder), (duration, count, warmup), turns, starts, cold=cold)
    if found[0].error:
        fail(found[0].error)
    if as_json:
        print_json(describe_engines(model, job, found))
    else:
        print_engines(model, job, found)


def _engines(text: str) -> list[str]:
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in ENGINES or name == OWN:
            fail(f"--against takes {' and '.join(list(ENGINES)[1:])}, separated by commas; got {name!r}")
    return list(dict.fromkeys(names))


def _measure(
    found: Sequence[Measured],
    job: Job,
    folder: Path,
    lengths: tuple[float, int, float],
    turns: int,
    starts: int,
    *,
    cold: bool,
) -> None:
    """Start all engines, warm them up, and let them run in turns; an engine that fails is left out with its error."""
    seconds, count, warmup = lengths
    with contextlib.ExitStack() as stack, progress("starting", len(found) * (starts + 1 + turns)) as advance:
        engines: dict[str, Engine] = {}
        for item in found:
            with _noting(item):
                if cold and item.engine == OWN:
                    advance(f"{item.engine}: starting with an empty cache", 0)
                    with start_engine(item, job, folder, cold=True):
                        pass
                for number in range(starts):
                    advance(f"{item.engine}: start {number + 1} of {starts}")
                    engine = start_engine(item, job, folder)
                    if number + 1 < starts:
                        engine.__exit__(None, None, None)
                engines[item.engine] = stack.enter_context(engine)
                advance(f"{item.engine}: warming up")
                engine.run(warmup, 0)
        for turn in range(turns):
            share = count // turns + (turn < count % turns)
            for item in found:
                if item.error or (count and not share):
                    continue
                advance(f"{item.engine}: turn {turn + 1} of {turns}")
                with _noting(item):
                    made, reply = engines[item.engine].run(seconds / turns, share)
                    item.turns.append(made)
                    item.peak_bytes = reply["peak_bytes"]


@contextlib.contextmanager
def _noting(item: Measured) -> Iterator[None]:
    """Note an error of an engine, and go on with the others."""
    try:
        yield
    except SardonyxError as error:
        item.error = str(error)
