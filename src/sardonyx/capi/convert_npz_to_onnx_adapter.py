"""Adapters of files of NumPy arrays: `python -m onnxruntime.capi.convert_npz_to_onnx_adapter --npz_file_path FILE …`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

import numpy as np

from sardonyx.session.adapters import AdapterFormat
from sardonyx.values.ort_value import OrtValue

__all__ = ["export_lora_parameters", "main"]


def export_lora_parameters(
    npz_file_path: str | os.PathLike[str], adapter_version: int, model_version: int, output_file_path: str | os.PathLike[str]
) -> None:
    """Write the arrays of a file that `numpy.savez` wrote as an adapter.

    Args:
        npz_file_path: the file; the names of its arrays are those of inputs of the model.
        adapter_version: the adapter's own version, a number of 32 bits.
        model_version: that of the model that it is for, a number of 32 bits.
        output_file_path: the file of the adapter.

    Raises:
        InvalidArgument: an array is of a type that the format lacks.
        OSError: a file cannot be read or written.
    """
    adapter = AdapterFormat()
    adapter.set_adapter_version(adapter_version)
    adapter.set_model_version(model_version)
    with np.load(npz_file_path) as arrays:
        adapter.set_parameters({name: OrtValue.ortvalue_from_numpy(array) for name, array in arrays.items()})
    adapter.export_adapter(output_file_path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Convert as the arguments of the command line, or these, ask for; return 0."""
    parser = argparse.ArgumentParser(description="Write the arrays of an .npz file as an .onnx_adapter file.")
    parser.add_argument("--npz_file_path", required=True)
    parser.add_argument("--output_file_path", required=True)
    parser.add_argument("--adapter_version", type=int, required=True)
    parser.add_argument("--model_version", type=int, required=True)
    given = parser.parse_args(arguments)
    export_lora_parameters(given.npz_file_path, given.adapter_version, given.model_version, given.output_file_path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
