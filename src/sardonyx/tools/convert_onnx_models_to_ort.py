"""`python -m sardonyx.tools.convert_onnx_models_to_ort FOLDER`: models of ONNX in ONNX Runtime's own format, beside them."""

from __future__ import annotations

import argparse
import enum
from collections.abc import Sequence
from pathlib import Path

from sardonyx.cancellation import raise_interrupt
from sardonyx.errors import InvalidArgument, NoSuchFile, SardonyxError
from sardonyx.session.optimization import optimize_file
from sardonyx.session.options import SessionOptions
from sardonyx.session.saving import save_model
from sardonyx.session.settings.settings import read_settings

__all__ = ["OptimizationStyle", "convert_onnx_models_to_ort", "main"]


class OptimizationStyle(enum.Enum):
    """Whether a saved model is optimized for this kind of machine, or leaves that to the sessions that read it."""

    Fixed = 0
    Runtime = 1


_SUFFIXES = {OptimizationStyle.Fixed: "", OptimizationStyle.Runtime: ".with_runtime_opt"}
_LEVELS = {OptimizationStyle.Fixed: "ORT_ENABLE_ALL", OptimizationStyle.Runtime: "ORT_ENABLE_BASIC"}


def convert_onnx_models_to_ort(
    model_path_or_dir: Path,
    output_dir: Path | None = None,
    optimization_styles: Sequence[OptimizationStyle] | None = None,
    custom_op_library_path: Path | None = None,
    target_platform: str | None = None,
    save_optimized_onnx_model: bool = False,
    allow_conversion_failures: bool = False,
    enable_type_reduction: bool = False,
) -> list[Path]:
    """Write models in ONNX Runtime's format, and return the paths of the files.

    Args:
        model_path_or_dir: a model, or a folder whose files `*.onnx` are meant, at every depth.
        output_dir: where the files go, in folders as the models lie; None for beside the models.
        optimization_styles: how far to optimize, one file for each; None for Fixed.
        custom_op_library_path: a compiled library of custom operators that the models have.
        target_platform: accepted: what is saved fits any machine.
        save_optimized_onnx_model: whether the same goes into a file `NAME.optimized.onnx` too.
        allow_conversion_failures: whether a model that cannot be converted is passed over.
        enable_type_reduction: accepted: no configuration of a build with fewer types is written.

    Raises:
        NoSuchFile: there is no such model or folder.
        InvalidArgument: a folder has no models.
        SardonyxError: a model cannot be read, or the format cannot express it.
    """
    root = Path(model_path_or_dir)
    if not root.exists():
        raise NoSuchFile(f"{str(root)!r} is neither a model nor a folder of models")
    models = sorted(root.rglob("*.onnx")) if root.is_dir() else [root]
    models = [path for path in models if not path.name.endswith(".optimized.onnx")]
    if not models:
        raise InvalidArgument(f"the folder {str(root)!r} has no files that end with .onnx")
    written: list[Path] = []
    for path in models:
        beside = (
            path.parent
            if output_dir is None
            else Path(output_dir) / path.parent.relative_to(root if root.is_dir() else root.parent)
        )
        for style in optimization_styles or (OptimizationStyle.Fixed,):
            names = [f"{path.stem}{_SUFFIXES[style]}.ort"]
            names += [f"{path.stem}{_SUFFIXES[style]}.optimized.onnx"] if save_optimized_onnx_model else []
            try:
                beside.mkdir(parents=True, exist_ok=True)
                for name in names:
                    _convert(path, beside / name, style, custom_op_library_path)
                    written.append(beside / name)
            except SardonyxError as error:
                raise_interrupt(error)
                if not allow_conversion_failures:
                    raise
    return written


def _convert(source: Path, target: Path, style: OptimizationStyle, library: Path | None) -> None:
    options = SessionOptions()
    options.optimized_model_filepath = str(target)
    options.add_session_config_entry("session.graph_optimization_level", _LEVELS[style])
    if library is not None:
        options.register_custom_ops_library(str(library))
    model, _ = optimize_file(source, read_settings(options, ()))
    save_model(model, target)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write models of ONNX in ONNX Runtime's own format."""
    parser = argparse.ArgumentParser(prog="python -m sardonyx.tools.convert_onnx_models_to_ort", description=main.__doc__)
    parser.add_argument("model_path_or_dir", type=Path, help="a model, or a folder of models")
    parser.add_argument("--output_dir", type=Path, default=None, help="where the files go; beside the models where left out")
    styles = [style.name for style in OptimizationStyle]
    parser.add_argument("--optimization_style", nargs="+", choices=styles, default=["Fixed"], help="how far to optimize")
    parser.add_argument("--custom_op_library", type=Path, default=None, help="a compiled library of custom operators")
    parser.add_argument(
        "--target_platform", choices=("arm", "amd64"), default=None, help="accepted: what is saved fits any machine"
    )
    parser.add_argument("--save_optimized_onnx_model", action="store_true", help="write the optimized model as ONNX too")
    parser.add_argument("--allow_conversion_failures", action="store_true", help="pass over what cannot be converted")
    parser.add_argument("--enable_type_reduction", action="store_true", help="accepted")
    given = parser.parse_args(arguments)
    convert_onnx_models_to_ort(
        given.model_path_or_dir,
        given.output_dir,
        [OptimizationStyle[name] for name in given.optimization_style],
        given.custom_op_library,
        given.target_platform,
        given.save_optimized_onnx_model,
        given.allow_conversion_failures,
        given.enable_type_reduction,
    )


if __name__ == "__main__":
    main()
