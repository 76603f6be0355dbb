"""Small models for tests, written in the text form."""

from __future__ import annotations

from sardonyx.ir import Graph, Model
from sardonyx.ir.text import parse_model


def model(body: str, *, opset: int = 21) -> Model:
    """A model from `graph(...) -> (...) { ... }`, read under `opset` of ai.onnx."""
    return parse_model(f"ir_version 10\nopset {opset}\ngraph main{body.strip().removeprefix('graph')}")


def graph(body: str, *, opset: int = 21) -> Graph:
    """The main graph of `model(body)`."""
    return model(body, opset=opset).graph
