"""Fusions of transformers for a file, with the names of `onnxruntime.transformers.optimizer`.

optimized = optimize_model("bert.onnx", model_type="bert")
print(optimized.get_fused_operator_statistics())
optimized.save_model_to_file("bert_optimized.onnx")

python -m sardonyx.tools.optimizer --input bert.onnx --output bert_optimized.onnx --float16
"""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Collection, Sequence

from sardonyx.errors import InvalidArgument
from sardonyx.formats import onnx as onnx_format
from sardonyx.formats.protos import Message
from sardonyx.tools import onnx_model_bert as models
from sardonyx.tools.fusing import LEVELS, fuse, optimized
from sardonyx.tools.fusion_options import FusionOptions
from sardonyx.tools.models import Given, to_proto
from sardonyx.tools.onnx_model import OnnxModel

__all__ = [
    "MODEL_TYPES",
    "FusionOptions",
    "get_fusion_statistics",
    "main",
    "optimize_by_fusion",
    "optimize_by_onnxruntime",
    "optimize_model",
]

_logger = logging.getLogger("sardonyx.tools")
MODEL_TYPES: dict[str, tuple[type[models.BertOnnxModel], str, int]] = {
    "bart": (models.BartOnnxModel, "pytorch", 1),
    "bert": (models.BertOnnxModel, "pytorch", 1),
    "bert_keras": (models.BertOnnxModelKeras, "keras2onnx", 0),
    "bert_tf": (models.BertOnnxModelTF, "tf2onnx", 0),
    "clip": (models.ClipOnnxModel, "pytorch", 1),
    "conformer": (models.ConformerOnnxModel, "pytorch", 1),
    "gpt2": (models.Gpt2OnnxModel, "pytorch", 1),
    "gpt2_tf": (models.Gpt2OnnxModel, "tf2onnx", 0),
    "gpt_neox": (models.BertOnnxModel, "pytorch", 0),
    "mmdit": (models.MmditOnnxModel, "pytorch", 1),
    "phi": (models.PhiOnnxModel, "pytorch", 0),
    "qwen3": (models.Gpt2OnnxModel, "pytorch", 0),
    "sam2": (models.Sam2OnnxModel, "pytorch", 1),
    "swin": (models.BertOnnxModel, "pytorch", 1),
    "t5": (models.T5OnnxModel, "pytorch", 2),
    "tnlr": (models.TnlrOnnxModel, "pytorch", 1),
    "unet": (models.UnetOnnxModel, "pytorch", 1),
    "vae": (models.VaeOnnxModel, "pytorch", 1),
    "vit": (models.BertOnnxModel, "pytorch", 1),
}
"""Type of a model -> what `optimize_model` returns for it, the exporter it usually comes from, and onnxruntime's default level."""


def optimize_model(
    input: Given,
    model_type: str = "bert",
    num_heads: int = 0,
    hidden_size: int = 0,
    optimization_options: FusionOptions | None = None,
    opt_level: int | None = None,
    use_gpu: bool = False,
    only_onnxruntime: bool = False,
    verbose: bool = False,
    *,
    provider: str | None = None,
) -> OnnxModel:
    """Return a model whose patterns are fused to operators of onnxruntime, such as Attention and SkipLayerNormalization.

    The rules look at the graph only: they need neither the type of the model nor its sizes.

    Args:
        input: the path of a model, or an onnx.ModelProto, which stays as it is.
        model_type: decides the fusions that are off by default.
        num_heads: accepted; found in the graph.
        hidden_size: accepted; found in the graph.
        optimization_options: which fusions to leave out.
        opt_level: with `only_onnxruntime` how far to go: 0, 1, 2 or 99; else all fusions are made.
        use_gpu: accepted; what is saved fits any machine.
        only_onnxruntime: whether to make only what a session of `opt_level` makes.
        verbose: accepted; `sardonyx optimize --diff` shows what each rule does.
        provider: accepted, as `use_gpu`.

    Raises:
        InvalidArgument: the level is none of those.
        SardonyxError: the model cannot be read, or is invalid.
    """
    _check(opt_level)
    chosen = FusionOptions(model_type) if optimization_options is None else optimization_options
    if only_onnxruntime:
        return OnnxModel(fuse(input, chosen, 1 if opt_level is None else opt_level))
    made = MODEL_TYPES.get(model_type, (models.BertOnnxModel,))[0]
    return made(fuse(input, chosen), num_heads, hidden_size)


def optimize_by_fusion(
    model: Message,
    model_type: str = "bert",
    num_heads: int = 0,
    hidden_size: int = 0,
    optimization_options: FusionOptions | None = None,
) -> OnnxModel:
    """Return a model whose patterns are fused, as `optimize_model` does.

    Args:
        model: an onnx.ModelProto, which stays as it is.
        model_type: a type of `MODEL_TYPES`; a model of another is returned unchanged, and the logger "sardonyx.tools" warns of it.
        num_heads: accepted; found in the graph.
        hidden_size: accepted; found in the graph.
        optimization_options: which fusions to leave out.

    Raises:
        SardonyxError: the model is invalid.
    """
    if model_type not in MODEL_TYPES:
        _logger.warning("nothing is fused in a model of the type %r: known are %s", model_type, ", ".join(MODEL_TYPES))
        return OnnxModel(model)
    return optimize_model(model, model_type, num_heads, hidden_size, optimization_options)


def _check(level: int | None) -> None:
    if level is not None and level not in LEVELS:
        raise InvalidArgument(f"opt_level is {', '.join(map(str, LEVELS))} or None, got {level!r}")


def optimize_by_onnxruntime(
    onnx_model: Given,
    use_gpu: bool = False,
    optimized_model_path: str | None = None,
    opt_level: int | None = 99,
    disabled_optimizers: Collection[str] = (),
    verbose: bool = False,
    save_as_external_data: bool = False,
    external_data_filename: str = "",
    external_data_file_threshold: int = 1024,
    *,
    provider: str | None = None,
) -> str:
    """Write what a session of a level makes of a model, and return the path of the file.

    Args:
        onnx_model: the path of a model, or an onnx.ModelProto, which needs `optimized_model_path`.
        use_gpu: accepted; what is saved fits any machine.
        optimized_model_path: the file; by default `_o99_cpu` and the like goes behind the name of the model.
        opt_level: 1, 2 or 99; 0 and None write nothing and return the path of the model.
        disabled_optimizers: rules and passes to leave out, by our names or onnxruntime's.
        verbose: accepted.
        save_as_external_data: whether weights go into a file beside it.
        external_data_filename: the name of that file.
        external_data_file_threshold: accepted.
        provider: accepted.

    Raises:
        InvalidArgument: the level is none of those, or there is no path to write to.
    """
    _check(opt_level)
    path = os.fspath(onnx_model) if isinstance(onnx_model, (str, os.PathLike)) else None
    if path is None and optimized_model_path is None:
        raise InvalidArgument("a model that comes from no file needs optimized_model_path, where it is written to")
    if not opt_level:
        return path or str(optimized_model_path)
    target = optimized_model_path or f"{os.path.splitext(path or '')[0]}_o{opt_level}_{'gpu' if use_gpu else 'cpu'}.onnx"
    made = optimized(onnx_model, opt_level, frozenset(disabled_optimizers))
    external = True if save_as_external_data else None
    onnx_format.save(onnx_format.load(made), target, external_data=external, data_name=external_data_filename)
    return target


def get_fusion_statistics(optimized_model_path: Given) -> dict[str, int]:
    """Return how many nodes a model has of each operator that fusions make."""
    return OnnxModel(to_proto(onnx_format.load(optimized_model_path))).get_fused_operator_statistics()


def main(arguments: Sequence[str] | None = None) -> None:
    """Fuse the patterns of a transformer, and write the model to another file."""
    parser = argparse.ArgumentParser(prog="python -m sardonyx.tools.optimizer", description=main.__doc__)
    parser.add_argument("--input", required=True, help="the model")
    parser.add_argument("--output", required=True, help="where the optimized model goes")
    parser.add_argument("--model_type", default="bert", help="decides the fusions that are off by default")
    parser.add_argument("--num_heads", type=int, default=0, help="accepted: found in the graph")
    parser.add_argument("--hidden_size", type=int, default=0, help="accepted: found in the graph")
    parser.add_argument("--float16", action="store_true", help="convert the model to float16")
    parser.add_argument("--only_onnxruntime", action="store_true", help="make only what a session of --opt_level makes")
    parser.add_argument("--opt_level", type=int, choices=sorted(LEVELS), default=None, help="that level")
    parser.add_argument("--use_external_data_format", action="store_true", help="put the weights into a file beside OUTPUT")
    parser.add_argument("--use_gpu", action="store_true", help="accepted: what is saved fits any machine")
    parser.add_argument("--input_int32", action="store_true", help="make the inputs that embeddings and attentions read int32")
    parser.add_argument("--provider", default=None, help="accepted, as --use_gpu")
    parser.add_argument("--disable_symbolic_shape_infer", action="store_true", help="accepted: types are always inferred")
    parser.add_argument("--convert_attribute", action="store_true", help="accepted: tensors in attributes stay there")
    parser.add_argument("--verbose", action="store_true", help="accepted")
    FusionOptions.add_arguments(parser)
    given = parser.parse_args(arguments)
    made = optimize_model(
        given.input,
        given.model_type,
        given.num_heads,
        given.hidden_size,
        optimization_options=FusionOptions.parse(given),
        opt_level=given.opt_level,
        only_onnxruntime=given.only_onnxruntime,
    )
    if given.input_int32 and isinstance(made, models.BertOnnxModel):
        made.change_graph_inputs_to_int32()
    if given.float16:
        made.convert_float_to_float16(keep_io_types=True)
    made.save_model_to_file(given.output, given.use_external_data_format)


if __name__ == "__main__":
    main()
