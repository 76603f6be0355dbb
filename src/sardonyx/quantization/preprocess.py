"""`python -m sardonyx.quantization.preprocess --input model.onnx --output prepared.onnx`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from sardonyx.quantization.shape_inference import quant_pre_process

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Write a model that is better to quantize: its types inferred, and optimized at the level of ORT_ENABLE_BASIC."""
    parser = argparse.ArgumentParser(prog="python -m sardonyx.quantization.preprocess", description=main.__doc__)
    parser.add_argument("--input", required=True, help="the model")
    parser.add_argument("--output", required=True, help="where the prepared model goes")
    parser.add_argument("--skip_optimization", type=_flag, default=False, help="True: infer types only")
    parser.add_argument("--skip_onnx_shape", type=_flag, default=False, help="accepted: there is one shape inference")
    parser.add_argument("--skip_symbolic_shape", type=_flag, default=False, help="accepted, as --skip_onnx_shape")
    parser.add_argument("--auto_merge", action="store_true", help="accepted")
    parser.add_argument("--int_max", type=int, default=(1 << 31) - 1, help="accepted")
    parser.add_argument("--guess_output_rank", action="store_true", help="accepted")
    parser.add_argument("--verbose", type=int, default=0, help="accepted")
    parser.add_argument(
        "--save_as_external_data", type=_flag, default=False, help="True: put the weights into a file beside OUTPUT"
    )
    parser.add_argument("--all_tensors_to_one_file", type=_flag, default=False, help="accepted: they always go into one")
    parser.add_argument("--external_data_location", default=None, help="the name of that file")
    parser.add_argument("--external_data_size_threshold", type=int, default=1024, help="accepted")
    given = vars(parser.parse_args(arguments))
    quant_pre_process(given.pop("input"), given.pop("output"), **given)


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false", "1", "0"):
        raise argparse.ArgumentTypeError(f"expected True or False, got {text!r}")
    return text.lower() in ("true", "1")


if __name__ == "__main__":
    main()
