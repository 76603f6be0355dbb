"""Whether the operators of a model let past and present be one buffer with space for more tokens than there are."""

from __future__ import annotations

from pathlib import Path

from sardonyx.formats.onnx import load
from sardonyx.generate.signature import Signature

__all__ = ["can_share"]

_COUNTING = ("GroupQueryAttention",)
"""Operators that are given how many tokens of each row a cache holds."""


def can_share(path: Path, signature: Signature) -> bool:
    """Return whether each cache of a model's file is read and written by an operator that counts the tokens of each row.

    Args:
        path: the file; its weights are not read.
        signature: what its inputs and outputs are.
    """
    own = [slot for slot in signature.caches if slot.past and slot.present and not slot.is_cross]
    if not own or not ({"mask", "lengths"} & signature.roles.keys()):
        return False
    graph = load(path).graph
    pairs = {
        (past.name, present.name)
        for node in graph
        if node.op_type in _COUNTING
        for past, present in zip(node.inputs[3:5], node.outputs[1:3], strict=False)
        if past is not None
    }
    graph.dismantle()
    return all((slot.past, slot.present) in pairs for slot in own)
