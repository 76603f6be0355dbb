"""`sardonyx run MODEL`: run a model on files or random inputs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from sardonyx.cli.console import (
    fail,
    json_option,
    open_session,
    print_json,
    print_table,
    progress,
    provider_option,
    readable_errors,
)
from sardonyx.dtypes import Array, DataType, is_float
from sardonyx.session.inference_session import InferenceSession
from sardonyx.session.values import NodeArg


@click.command()
@click.argument("model", type=click.Path())
@click.option("--input", "inputs", multiple=True, metavar="NAME=FILE.npy", help="Feed an input from a file of NumPy's .npy format.")
@click.option("--random", is_flag=True, help="Draw the inputs that no file feeds.")
@click.option("--seed", default=0, show_default=True, help="Seed of the random inputs.")
@click.option("--dim", "dims", multiple=True, metavar="NAME=SIZE", help="Size of a symbolic dimension for --random (default 1).")
@click.option("--repeat", default=1, show_default=True, type=click.IntRange(min=1), help="Runs to time.")
@click.option("--output-dir", type=click.Path(path_type=Path), help="Write each output to NAME.npy in this folder.")
@provider_option
@json_option
def run(model: str, inputs: Sequence[str], random: bool, seed: int, dims: Sequence[str], repeat: int,
        output_dir: Path | None, provider_names: Sequence[str], as_json: bool) -> None:  # fmt: skip
    """Run MODEL once, or more often with --repeat, and show its outputs."""
    with readable_errors():
        session = open_session(model, provider_names)
        feed = _feed(session, _pairs(inputs), random, np.random.default_rng(seed), _sizes(_pairs(dims)))
        times_ms = []
        with progress(f"running {model}", repeat) as advance:
            for _ in range(repeat):
                start = time.perf_counter()
                results = session.run(None, feed)
                times_ms.append(1e3 * (time.perf_counter() - start))
                advance("running")
        names = [output.name for output in session.get_outputs()]
        if output_dir is not None:
            _write(output_dir, names, results)
    facts = [{"name": name, **_describe(value)} for name, value in zip(names, results, strict=True)]
    if as_json:
        print_json({"outputs": facts, "runs": repeat, "median_ms": statistics.median(times_ms), "first_ms": times_ms[0]})
        return
    print_table("", ("output", "type", "shape", "values"), [tuple(fact.values()) for fact in facts])
    click.echo(f"{repeat} run{'s' if repeat > 1 else ''}, median {statistics.median(times_ms):.3f} ms, first {times_ms[0]:.3f} ms")


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    for text in texts:
        if "=" not in text:
            fail(f"expected NAME=VALUE, got {text!r}")
    return dict(text.split("=", 1) for text in texts)


def _sizes(pairs: dict[str, str]) -> dict[str, int]:
    for name, text in pairs.items():
        if not text.isdigit():
            fail(f"the size of dimension {name!r} must be a number, got {text!r}")
    return {name: int(text) for name, text in pairs.items()}


def _feed(session: InferenceSession, files: dict[str, str], random: bool, rng: np.random.Generator,
          sizes: dict[str, int]) -> dict[str, Any]:  # fmt: skip
    feed: dict[str, Any] = {name: _read(path) for name, path in files.items()}
    for argument in session.get_inputs():
        if argument.name in feed:
            continue
        if not random:
            fail(f"input {argument.name!r} ({argument.type}, shape {argument.shape}) is not fed: "
                 f"give --input {argument.name}=FILE.npy, or --random")  # fmt: skip
        feed[argument.name] = _draw(argument, rng, sizes)
    return feed


def _read(path: str) -> Array:
    try:
        array: Array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        fail(f"{path} is no .npy file that can be read safely: {error}")
    return array


def _draw(argument: NodeArg, rng: np.random.Generator, sizes: dict[str, int]) -> Array:
    if not argument.type.startswith("tensor("):
        fail(f"input {argument.name!r} is a {argument.type}; --random draws tensors only")
    dtype = DataType.parse(argument.type.removeprefix("tensor(").removesuffix(")"))
    shape = [dim if isinstance(dim, int) else sizes.get(dim or "", 1) for dim in argument.shape]
    if dtype is DataType.STRING:
        return np.full(shape, "text", dtype=object)
    if is_float(dtype) or dtype in (DataType.COMPLEX64, DataType.COMPLEX128):
        return np.asarray(rng.standard_normal(shape)).astype(dtype.numpy)
    return np.asarray(rng.integers(0, 2, shape)).astype(dtype.numpy)


def _describe(value: Any) -> dict[str, Any]:
    if isinstance(value, np.ndarray):
        text = np.array2string(value, threshold=8, edgeitems=3, precision=5).replace("\n", " ")
        return {"type": str(DataType.from_numpy(value.dtype)), "shape": list(value.shape), "values": text[:200]}
    shape = [len(value)] if isinstance(value, (list, dict)) else []
    return {"type": type(value).__name__, "shape": shape, "values": str(value)[:200]}


def _write(folder: Path, names: Sequence[str], results: Sequence[Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in zip(names, results, strict=True):
        if isinstance(value, np.ndarray) and value.dtype != object:
            np.save(folder / f"{name.replace('/', '_')}.npy", value)
