"""What the generation loops of com.microsoft know of the graphs that they run for each token, beyond what exporters write.

    (input_ids, position_ids, attention_mask, past_0 …, sardonyx.rows) -> (logits, present_0 …, sardonyx.best_tokens, …best_scores)

What begins with sardonyx is added by `optimize/passes/`: the input by `pick_past_rows.py`, the outputs, which are used where the
rules of a loop leave the scores as they are, by `rank_next_tokens.py`.
"""

from __future__ import annotations

from typing import Final

from sardonyx.ir import Graph, Node

__all__ = ["BEST_SCORES", "BEST_TOKENS", "GENERATION_LOOPS", "ROWS", "is_generation_loop", "loop_bodies"]

GENERATION_LOOPS: Final = ("BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch")
"""The loops, by operator."""
ROWS: Final = "sardonyx.rows"
"""The input (rows,), int64: for each row the one whose past it goes on from."""
BEST_TOKENS: Final = "sardonyx.best_tokens"
"""The output (rows, count), int64: the likeliest next tokens of each row in order, of equal ones the lowest number first."""
BEST_SCORES: Final = "sardonyx.best_scores"
"""The output (rows, count), float: the logarithms of their probabilities."""


def is_generation_loop(node: Node) -> bool:
    """Return whether a node is one of the loops."""
    return node.domain == "com.microsoft" and node.op_type in GENERATION_LOOPS


def loop_bodies(node: Node) -> list[Graph]:
    """Return the decoders of a loop: of each step, and of the first one, which some loops have for themselves."""
    bodies = [node.subgraph("decoder"), node.subgraph("init_decoder")]
    return [body for body in bodies if body is not None]
