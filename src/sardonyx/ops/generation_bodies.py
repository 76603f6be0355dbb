"""What the generation loops of com.microsoft know of the graphs that they run for each token, beyond what exporters write.

    (input_ids, position_ids, attention_mask, past_0 …, sardonyx.totals, …beams, …rows)
    -> (logits, present_0 …, sardonyx.best_tokens, …best_scores, …next_tokens, …next_rows, …next_totals)

What begins with sardonyx is added by `optimize/passes/`: the rows by `pick_past_rows.py`, totals, beams and the outputs, which are
used where the rules of a loop leave the scores as they are, by `rank_next_tokens.py`.
"""

from __future__ import annotations

from typing import Final

from sardonyx.ir import Graph, Node

__all__ = [
    "BEAMS",
    "BEST_SCORES",
    "BEST_TOKENS",
    "GENERATION_LOOPS",
    "NEXT_ROWS",
    "NEXT_TOKENS",
    "NEXT_TOTALS",
    "ROWS",
    "TOTALS",
    "is_generation_loop",
    "loop_bodies",
]

GENERATION_LOOPS: Final = ("BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch")
"""The loops, by operator."""
ROWS: Final = "sardonyx.rows"
"""The input (rows,), int64: for each row the one whose past it goes on from."""
TOTALS: Final = "sardonyx.totals"
"""The input (batch, beams), float: the logarithm of the probability of what each beam holds so far."""
BEAMS: Final = "sardonyx.beams"
"""The input (batch, beams), int64: the rows of the beams of each batch element; (batch, 1) where one row stands for all of them."""
BEST_TOKENS: Final = "sardonyx.best_tokens"
"""The output (rows, count): the likeliest next tokens of each row in order, of equal ones the lowest number first.

They are int64 beside scores; alone, of the type of the graph's first input, which reads them next.
"""
BEST_SCORES: Final = "sardonyx.best_scores"
"""The output (rows, count), float: the logarithms of their probabilities."""
NEXT_TOKENS: Final = "sardonyx.next_tokens"
"""The output (batch, beams), of the type of the graph's first input: the best of these tokens for all beams of a batch element."""
NEXT_ROWS: Final = "sardonyx.next_rows"
"""The output (batch, beams), int64: the row that each of them goes on from."""
NEXT_TOTALS: Final = "sardonyx.next_totals"
"""The output (batch, beams), float: the logarithm of the probability of what that makes."""


def is_generation_loop(node: Node) -> bool:
    """Return whether a node is one of the loops."""
    return node.domain == "com.microsoft" and node.op_type in GENERATION_LOOPS


def loop_bodies(node: Node) -> list[Graph]:
    """Return the decoders of a loop: of each step, and of the first one, which some loops have for themselves."""
    bodies = [node.subgraph("decoder"), node.subgraph("init_decoder")]
    return [body for body in bodies if body is not None]
