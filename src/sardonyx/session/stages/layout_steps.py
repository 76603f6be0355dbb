"""The steps of layout conversions, written as models where `session.debug_layout_transformation` asks for it.

    post_layout_transform_step_1.onnx       claimed nodes are converted, with transposes around each
    post_layout_transform_step_2.onnx       transposes have been pushed and cancelled

Two for each provider and graph that is converted, bodies of control flow included; each holds the whole model.
"""

from __future__ import annotations

from pathlib import Path

from sardonyx.formats import onnx as onnx_format
from sardonyx.ir import Model
from sardonyx.partition.assign import Watch

__all__ = ["layout_watch"]


def layout_watch(model: Model, folder_name: str) -> Watch:
    """Return what writes the steps of `model` into a folder, which is made where it is missing."""
    folder = Path(folder_name)
    written: list[Path] = []

    def write(step: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        written.append(folder / f"post_layout_transform_step_{len(written) + 1}.onnx")
        onnx_format.save(model, written[-1])

    return write
