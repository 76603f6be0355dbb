"""`sardonyx quantize MODEL -o OUT`: fewer bits, and what they cost."""

from __future__ import annotations

import dataclasses
import math
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from sardonyx.cli.calibration_data import labelled_feeds, read_feeds
from sardonyx.cli.completions import ModelPath
from sardonyx.cli.console import (
    fail,
    force_option,
    json_option,
    print_json,
    print_table,
    print_text,
    readable_errors,
    refuse_existing,
)
from sardonyx.cli.feeds import draw_feed
from sardonyx.cli.progress import progress
from sardonyx.dtypes import OnnxValue
from sardonyx.formats import onnx as onnx_format
from sardonyx.quantization import (
    CalibrationMethod,
    DefaultWeightOnlyQuantConfig,
    HQQWeightOnlyQuantConfig,
    KQuantWeightOnlyQuantConfig,
    LayerError,
    MatMulNBitsQuantizer,
    QuantFormat,
    QuantType,
    layer_errors,
    quant_pre_process,
    quantize_dynamic,
    quantize_static,
)
from sardonyx.quantization.evaluate import accuracy
from sardonyx.session.values import NodeArg, node_arg
from sardonyx.tools.models import read

__all__ = ["quantize"]

_TYPES = {
    "int8": QuantType.QInt8,
    "uint8": QuantType.QUInt8,
    "int16": QuantType.QInt16,
    "uint16": QuantType.QUInt16,
    "float8": QuantType.QFLOAT8E4M3FN,
}
_WEIGHT_TYPES = _TYPES | {"int4": QuantType.QInt4, "uint4": QuantType.QUInt4}
_METHODS = {kind.name.lower(): kind for kind in CalibrationMethod}
_FORMATS = {"qdq": QuantFormat.QDQ, "qoperator": QuantFormat.QOperator}
_WORST = 10
_FEEDS_COMPARED = 4


@dataclasses.dataclass(frozen=True, slots=True)
class _Choice:
    """How a model is quantized."""

    bits: int | None
    algorithm: str
    block_size: int
    accuracy_level: int | None
    symmetric: bool
    per_channel: bool
    reduce_range: bool
    activations: str
    weights: str
    form: str
    method: str
    operators: Sequence[str]
    excluded: Sequence[str]
    external: bool


@click.command(short_help="Write MODEL with 8 or 4 bits, and the error of each layer.")
@click.argument("model", type=ModelPath())
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Save the quantized model here.")
@click.option("--data", multiple=True, metavar="PATH", help="Calibration feeds: .npz, .npy, or a folder of files; repeat it.")
@click.option("--random", "drawn", type=click.IntRange(min=1), metavar="N", help="Calibrate on N random feeds, to try it out.")
@click.option("--batch", type=click.IntRange(min=1), default=32, show_default=True, help="Examples of a feed, where that is open.")
@click.option("--bits", type=click.Choice(["2", "4", "8"]), help="Weights of products of so many bits, in blocks; no calibration.")
@click.option(
    "--algorithm", type=click.Choice(["rtn", "hqq", "k_quant"]), default="rtn", show_default=True, help="With --bits: how to round."
)
@click.option("--block-size", type=int, default=32, show_default=True, help="With --bits: weights that share a scale.")
@click.option("--accuracy-level", type=click.IntRange(0, 4), help="With --bits: 4 lets activations be rounded to 8 bits.")
@click.option("--symmetric", is_flag=True, help="With --bits: no zero points.")
@click.option("--per-channel", is_flag=True, help="A scale for each output channel of the weights.")
@click.option("--reduce-range", is_flag=True, help="Weights of 7 bits, for processors whose 8-bit products saturate.")
@click.option("--activations", type=click.Choice(list(_TYPES)), default="uint8", show_default=True, help="Type of activations.")
@click.option("--weights", type=click.Choice(list(_WEIGHT_TYPES)), default="int8", show_default=True, help="Type of weights.")
@click.option("--format", "form", type=click.Choice(list(_FORMATS)), default="qdq", show_default=True, help="How it is written.")
@click.option(
    "--method",
    type=click.Choice(list(_METHODS)),
    default="minmax",
    show_default=True,
    help="How ranges are found; distribution for float8.",
)
@click.option("--operator", "operators", multiple=True, metavar="NAME", help="Quantize this operator only; repeat it for others.")
@click.option("--exclude", "excluded", multiple=True, metavar="NODE", help="Leave this node in floats; repeat it for others.")
@click.option("--evaluate", type=click.Path(path_type=Path), metavar="NPZ", help="Compare accuracy on inputs and `labels`.")
@click.option("--external-data", "external", is_flag=True, help="Put the weights in a file beside OUT.")
@force_option
@json_option
def quantize(
    model: str,
    output: Path,
    data: Sequence[str],
    drawn: int | None,
    batch: int,
    evaluate: Path | None,
    force: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Quantize MODEL and save it, with a table of the error of each layer.

    With --data (or --random) activations and weights have 8 bits by ranges that are found with them; with --bits weights alone, in
    blocks; else weights have 8 bits, and activations are quantized in each run. What is saved is standard ONNX.
    """
    bits = given.pop("bits")
    choice = _Choice(bits=None if bits is None else int(bits), **given)
    if choice.bits is not None and (data or drawn):
        fail("--bits quantizes weights, which needs no calibration: leave out --data and --random")
    refuse_existing([output], force=force)
    with readable_errors():
        feeds = _feeds(model, data, drawn, batch)
        examples = None if evaluate is None else labelled_feeds(_arguments(model), evaluate, batch)
        before = _quantized(model, output, choice, feeds)
        changed = _changed(before, output)
        errors = _errors(before, output, feeds or ([] if examples is None else examples[0]))
        scores = None if examples is None else [accuracy(path, *examples) for path in (model, output)]
    facts = {"model": model, "saved": str(output), "bytes_before": _size(Path(model)), "bytes_after": _size(output)}
    if as_json:
        layers = [dataclasses.asdict(error) for error in errors]
        print_json({**facts, "quantized_nodes": changed, "layers": layers, "accuracy": scores})
        return
    if not changed:
        print_text("No node was quantized: the model has none of the operators that could be, with constant weights.")
    _print(facts, errors, scores)


def _feeds(model: str, data: Sequence[str], drawn: int | None, batch: int) -> list[dict[str, OnnxValue]]:
    feeds = list(read_feeds(_arguments(model), data, batch)) if data else []
    return feeds + [draw_feed(model, [], [], [], seed)() for seed in range(drawn or 0)]


def _arguments(model: str) -> list[NodeArg]:
    return [node_arg(value) for value in read(model).graph.inputs if value.constant is None]


def _quantized(model: str, output: Path, choice: _Choice, feeds: Sequence[Mapping[str, OnnxValue]]) -> bytes:
    """Quantize a model, and return the one in floats that it was made of."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        if choice.bits is not None:
            _write_blocks(model, output, choice)
            return onnx_format.to_bytes(read(model))
        prepared = Path(folder) / "prepared.onnx"
        quant_pre_process(model, prepared)
        if feeds:
            quantize_static(
                str(prepared),
                output,
                _followed(feeds),
                _FORMATS[choice.form],
                choice.operators or None,
                choice.per_channel,
                choice.reduce_range,
                _TYPES[choice.activations],
                _WEIGHT_TYPES[choice.weights],
                nodes_to_exclude=choice.excluded,
                use_external_data_format=choice.external,
                calibrate_method=_METHODS[choice.method],
            )
        else:
            quantize_dynamic(
                str(prepared),
                output,
                choice.operators or None,
                choice.per_channel,
                choice.reduce_range,
                _WEIGHT_TYPES[choice.weights],
                nodes_to_exclude=choice.excluded,
                use_external_data_format=choice.external,
            )
        return onnx_format.to_bytes(read(str(prepared)))


def _write_blocks(model: str, output: Path, choice: _Choice) -> None:
    kind = {"hqq": HQQWeightOnlyQuantConfig, "k_quant": KQuantWeightOnlyQuantConfig}.get(
        choice.algorithm, DefaultWeightOnlyQuantConfig
    )
    config = kind(
        block_size=choice.block_size,
        bits=choice.bits or 4,
        is_symmetric=choice.symmetric,
        accuracy_level=choice.accuracy_level,
        quant_format=QuantFormat.QOperator,
        op_types_to_quantize=tuple(choice.operators) or None,
    )
    quantizer = MatMulNBitsQuantizer(model, nodes_to_exclude=choice.excluded, algo_config=config)
    quantizer.process()
    quantizer.model.save_model_to_file(str(output), choice.external)


def _followed(feeds: Sequence[Mapping[str, OnnxValue]]) -> Iterator[Mapping[str, OnnxValue]]:
    """Yield the feeds, with a bar that says how many are left."""
    with progress("calibrate", len(feeds)) as advance:
        for number, feed in enumerate(feeds, 1):
            yield feed
            advance(f"calibrate: feed {number}")


def _errors(before: bytes, output: Path, feeds: Sequence[Mapping[str, OnnxValue]]) -> list[LayerError]:
    if not feeds:
        return []
    return layer_errors(onnx_format.to_proto(onnx_format.load(before)), str(output), feeds[:_FEEDS_COMPARED])


def _changed(before: bytes, output: Path) -> int:
    """Return how many nodes of the model in floats are not as they were: replaced, or with quantized inputs."""
    first, second = (
        {value.name: [read.name for read in node.inputs if read is not None] for node in model.graph for value in node.outputs}
        for model in (onnx_format.load(before), onnx_format.load(output))
    )
    return sum(inputs != second.get(name) for name, inputs in first.items())


def _size(path: Path) -> int:
    """Return the bytes of a model, with what lies beside it."""
    return sum(file.stat().st_size for file in (path, path.with_name(f"{path.name}.data")) if file.is_file())


def _print(facts: Mapping[str, object], errors: Sequence[LayerError], scores: Sequence[float] | None) -> None:
    before, after = (int(str(facts[name])) / 2**20 for name in ("bytes_before", "bytes_after"))
    print_text(f"{facts['model']}: {before:.2f} MiB -> {after:.2f} MiB, saved as {facts['saved']}")
    if scores is not None:
        click.echo(f"accuracy: {scores[0]:.2%} in floats, {scores[1]:.2%} quantized")
    if not errors:
        print_text("No feed was given, so that errors of layers were not measured; --data or --evaluate gives some.")
        return
    worst = sorted(errors, key=lambda error: -error.relative_error)[:_WORST]
    rows = [(error.tensor, error.operator, _percent(error.relative_error), _decibel(error)) for error in worst]
    title = f"The {len(rows)} layers with the largest error, of {len(errors)}"
    print_table(title, ("tensor", "operator", "error", "dB"), rows, ("error", "dB"))


def _percent(share: float) -> str:
    return "inf" if math.isinf(share) else f"{share:.2%}"


def _decibel(error: LayerError) -> str:
    return "inf" if math.isinf(error.signal_to_noise_db) else f"{error.signal_to_noise_db:.1f}"
