"""The config entry `session.debug_layout_transformation`: the steps of layout conversions, written as models.

    post_layout_transform_step_1.onnx       claimed nodes are converted, with transposes around each
    post_layout_transform_step_2.onnx       transposes have been pushed and cancelled

Two for each provider and graph that is converted, bodies of control flow included; each holds the whole model.
"""

from __future__ import annotations

from pathlib import Path

from sardonyx.formats import onnx as onnx_format
from sardonyx.ir import Model
from sardonyx.partition.assign import Watch
from sardonyx.session.options import SessionOptions

__all__ = ["ENTRY", "layout_watch"]

ENTRY = "session.debug_layout_transformation"
"""The config entry: "1" writes into the working folder, another text but "0" is the folder, which is made where it is missing."""


def layout_watch(model: Model, options: SessionOptions) -> Watch | None:
    """What writes the steps of `model`; None where they are not asked for."""
    setting = options.session_config_entries.get(ENTRY, "0")
    if setting in ("", "0"):
        return None
    folder = Path() if setting == "1" else Path(setting)
    written: list[Path] = []

    def write(step: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        written.append(folder / f"post_layout_transform_step_{len(written) + 1}.onnx")
        onnx_format.save(model, written[-1])

    return write
