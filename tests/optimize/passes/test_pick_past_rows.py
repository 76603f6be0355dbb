"""Rows of pasts, moved in the graphs of beam searches."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from support.generation_models import encoder_decoder, language_model, loop_model
from support.optimizing import model_of

import sardonyx
from sardonyx.dtypes import Array
from sardonyx.ir import Graph
from sardonyx.ir.verify import verify
from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.passes.pick_past_rows import PICK_PAST_ROWS

JOINT = "past_0: float[2, rows, 2, keys, 4], past_1: float[2, rows, 2, keys, 4]"
APART = "past_key_self_0: float[rows, 2, keys, 4], past_key_cross_0: float[rows, 2, source, 4]"


def picked(pasts: str, loop: str = "BeamSearch") -> tuple[Graph, bool]:
    names = [part.split(":")[0].split()[-1] for part in pasts.split("], ")]
    text = f"""graph(ids: int32[b, s], most: int32[1]) -> (y) {{
        y = com.microsoft.{loop}(ids, most) {{eos_token_id = 1, pad_token_id = 0, decoder = graph(
            input_ids: int32[rows, length], {pasts}
        ) -> (logits, present) {{logits = Identity(input_ids) present = Concat({", ".join(names)}) {{axis = 0}}}}}}}}"""
    model = model_of(text, "17, com.microsoft 1")
    INFER_SHAPES.run(model, Context())
    changed = PICK_PAST_ROWS.run(model, Context())
    INFER_SHAPES.run(model, Context())
    verify(model)
    assert not PICK_PAST_ROWS.run(model, Context())
    (node,) = model.graph
    body = node.subgraph("decoder")
    assert body is not None
    return body, changed


def gathers(body: Graph) -> list[tuple[str, int]]:
    return [
        (value.name, node.integer("axis", 0)) for node in body if node.op_type == "Gather" and (value := node.inputs[0]) is not None
    ]


def test_keys_and_values_together_have_their_rows_second() -> None:
    """Each past is read through a Gather along axis 1, by rows that are an input."""
    body, changed = picked(JOINT)
    assert changed
    assert gathers(body) == [("past_1", 1), ("past_0", 1)] or gathers(body) == [("past_0", 1), ("past_1", 1)]
    assert body.inputs[-1].name == "sardonyx.rows"


def test_pasts_of_cross_attention_are_the_same_in_all_rows() -> None:
    """Of a decoder behind an encoder only those of self-attention are moved."""
    assert gathers(picked(APART)[0]) == [("past_key_self_0", 0)]


@pytest.mark.parametrize(
    ("pasts", "loop"),
    [
        (JOINT, "GreedySearch"),
        (JOINT + ", past_sequence_length: int32[1]", "BeamSearch"),
        ("past_0: float[2, rows, 2, keys, 4], past_1: float[2, others, 2, keys, 4]", "BeamSearch"),
        ("x: float[2, rows, 2, keys, 4]", "BeamSearch"),
    ],
)
def test_declines(pasts: str, loop: str) -> None:
    """Loops that move no rows, pasts that are buffers or of different numbers of rows, and graphs without pasts."""
    body, changed = picked(pasts, loop) if "past_seq" not in pasts else picked_buffers()
    assert not changed
    assert not gathers(body)


def picked_buffers() -> tuple[Graph, bool]:
    text = """graph(ids: int32[b, s], most: int32[1]) -> (y) {
        y = com.microsoft.BeamSearch(ids, most) {eos_token_id = 1, pad_token_id = 0, decoder = graph(
            input_ids: int32[rows, length], past_0: float[2, rows, 2, keys, 4], past_sequence_length: int32[1]
        ) -> (logits, present) {logits = Identity(past_sequence_length) present = Identity(past_0)}}}"""
    model = model_of(text, "17, com.microsoft 1")
    changed = PICK_PAST_ROWS.run(model, Context())
    body = next(iter(model.graph)).subgraph("decoder")
    assert body is not None
    return body, changed


def run(model: onnx.ModelProto, inputs: list[tuple[str, Array]], disabled: list[str]) -> Array:
    session = sardonyx.InferenceSession(model.SerializeToString(), disabled_optimizers=disabled)
    found: Array = session.run(None, dict(inputs))[0]
    return found


@pytest.mark.parametrize("has_encoder", [False, True])
def test_it_finds_the_same_sequences(has_encoder: bool) -> None:
    """With the pass and without it, for a language model and for a decoder behind an encoder."""
    ids = np.array([[4, 7, 12, 5], [3, 9, 9, 20]], np.int32)
    inputs: list[tuple[str, Array]] = [
        ("ids", ids),
        ("most", np.array([12], np.int32)),
        ("least", np.array([1], np.int32)),
        ("beams", np.array([3], np.int32)),
        ("returned", np.array([2], np.int32)),
        ("length", np.array([1], np.float32)),
        ("repetition", np.array([1], np.float32)),
    ]
    tokens = {"eos_token_id": 1, "pad_token_id": 0}
    if has_encoder:
        encoder, decoder = encoder_decoder()
        model = loop_model(
            "BeamSearch", inputs, 1, encoder=encoder, decoder=decoder, model_type=1, decoder_start_token_id=2, **tokens
        )
    else:
        model = loop_model("BeamSearch", inputs, 1, decoder=language_model(), model_type=0, **tokens)
    np.testing.assert_array_equal(run(model, inputs, []), run(model, inputs, ["pick_past_rows"]))
