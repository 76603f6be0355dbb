"""Generation loops on tiny models, against onnxruntime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from support.generation_models import (
    VOCABULARY,
    cross_encoder_decoder,
    encoder_decoder,
    language_model,
    loop_model,
    whisper,
    whisper_with_products,
)

import sardonyx
from sardonyx.dtypes import Array

IDS = np.array([[0, 7, 12, 5], [3, 9, 9, 20]], np.int32)
FEATURES = np.random.default_rng(3).standard_normal((2, 8, 5)).astype(np.float32)
TOKENS = {"eos_token_id": 1, "pad_token_id": 0}
Inputs = Sequence[tuple[str, Any]]


def ints(*values: int) -> Array:
    return np.array(values, np.int32)


def floats(*values: float) -> Array:
    return np.array(values, np.float32)


def keep(seed: int, *shape: int) -> Array:
    """A mask that forbids a fifth of the tokens."""
    return (np.random.default_rng(seed).random(shape) > 0.2).astype(np.int32)


PLAIN: Inputs = [
    ("ids", IDS),
    ("most", ints(12)),
    ("least", ints(1)),
    ("beams", ints(3)),
    ("returned", ints(2)),
    ("length", floats(1)),
    ("repetition", floats(1)),
]
RULED: Inputs = [
    ("ids", IDS),
    ("most", ints(13)),
    ("least", ints(8)),
    ("beams", ints(4)),
    ("returned", ints(3)),
    ("length", floats(0.5)),
    ("repetition", floats(1.3)),
    ("vocabulary", keep(1, VOCABULARY)),
    ("prefix", keep(2, 2, VOCABULARY)),
]


def both(op_type: str, inputs: Inputs, outputs: int, **attributes: Any) -> list[tuple[Array, Array]]:
    """Our outputs and onnxruntime's, in pairs."""
    onnxruntime = pytest.importorskip("onnxruntime")
    model = loop_model(op_type, inputs, outputs, **attributes).SerializeToString()
    feed = {name: array for name, array in inputs if name}
    ours = sardonyx.InferenceSession(model).run(None, feed)
    theirs = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, feed)
    return list(zip(ours, theirs, strict=True))


def check(pairs: list[tuple[Array, Array]]) -> None:
    """The same tokens, and nearly the same scores."""
    np.testing.assert_array_equal(*pairs[0])
    for ours, theirs in pairs[1:]:
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("inputs", "attributes"),
    [(PLAIN, {}), (RULED, {"no_repeat_ngram_size": 2, "early_stopping": 1}), (PLAIN, {"init_decoder": language_model(9, "init")})],
)
def test_BeamSearch_of_a_language_model_is_as_in_onnxruntime(seed: int, inputs: Inputs, attributes: dict[str, Any]) -> None:
    """Sequences, their scores, and the scores of each step; with all rules, and with a graph of its own for the first run."""
    check(both("BeamSearch", inputs, 3, decoder=language_model(seed), model_type=0, **TOKENS, **attributes))


@pytest.mark.parametrize("build", [encoder_decoder, cross_encoder_decoder])
def test_one_name_for_several_lengths_is_as_in_onnxruntime(build: Callable[[int], Any]) -> None:
    """Exporters name the lengths of tokens and pasts alike, which differ in each step."""
    encoder, decoder = build(0)
    for graph in (encoder, decoder):
        for value in (*graph.input, *graph.output):
            for dim in value.type.tensor_type.shape.dim[1:]:
                if dim.dim_param:
                    dim.dim_param = "length"
    check(both("BeamSearch", PLAIN, 3, decoder=decoder, encoder=encoder, model_type=1, decoder_start_token_id=2, **TOKENS))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("build", [encoder_decoder, cross_encoder_decoder])
def test_BeamSearch_of_encoder_and_decoder_is_as_in_onnxruntime(seed: int, build: Callable[[int], Any]) -> None:
    """The encoder may make the first step or leave it to the decoder."""
    encoder, decoder = build(seed)
    check(both("BeamSearch", PLAIN, 3, decoder=decoder, encoder=encoder, model_type=1, decoder_start_token_id=2, **TOKENS))


@pytest.mark.parametrize("seed", range(4))
def test_WhisperBeamSearch_is_as_in_onnxruntime(seed: int) -> None:
    """Timestamps follow their rules: pairs, in order, and together against the text."""
    encoder, decoder = whisper(seed)
    given: Inputs = [("features", FEATURES), *PLAIN[1:], *[("", None)] * 3]
    given = [*given, ("prompt", np.array([[3, 4, 5], [3, 4, 6]], np.int32)), ("rules", ints(1))]
    check(
        both(
            "WhisperBeamSearch",
            given,
            3,
            decoder=decoder,
            encoder=encoder,
            eos_token_id=7,
            pad_token_id=0,
            decoder_start_token_id=9,
            beginning_timestamp_token_id=14,
            no_timestamps_token_id=13,
            start_of_lm_token_id=12,
            translate_token_id=10,
            transcribe_token_id=11,
        )
    )


def test_WhisperBeamSearch_tells_how_likely_silence_is() -> None:
    """The fifth output is a probability of the first step."""
    encoder, decoder = whisper(0)
    given: Inputs = [("features", FEATURES), *PLAIN[1:], *[("", None)] * 3, ("prompt", np.array([[3, 4], [3, 6]], np.int32))]
    model = loop_model("WhisperBeamSearch", given, 3, decoder=decoder, encoder=encoder, no_speech_token_id=5, **TOKENS)
    node = model.graph.node[0]
    node.output.extend(["", "silence"])
    del model.graph.output[1:]
    model.graph.output.add(name="silence").type.tensor_type.elem_type = 1
    _, silence = sardonyx.InferenceSession(model.SerializeToString()).run(None, {name: array for name, array in given if name})
    assert silence.shape == (2,)
    assert (silence > 0).all()
    assert (silence < 1).all()


def searched(seed: int, beams: int, returned: int, **more: Array) -> tuple[Array, Array]:
    """The sequences that start with two tokens, and the products of queries and keys of cross attention."""
    given: dict[str, Any] = {
        "features": FEATURES,
        "most": ints(9),
        "least": ints(1),
        "beams": ints(beams),
        "returned": ints(returned),
        "length": floats(1),
        "repetition": floats(1),
        "vocabulary": (np.arange(VOCABULARY) != TOKENS["pad_token_id"]).astype(np.int32),
        "prompt": np.array([[3, 4], [3, 6]], np.int32),
        **more,
    }
    places = [
        "features",
        "most",
        "least",
        "beams",
        "returned",
        "length",
        "repetition",
        "vocabulary",
        "",
        "",
        "prompt",
        "",
        "pairs",
        "extra",
    ]
    inputs: Inputs = [(name if name in given else "", given.get(name)) for name in places]
    encoder, decoder = whisper_with_products(seed)
    model = loop_model("WhisperBeamSearch", inputs, 1, decoder=decoder, encoder=encoder, decoder_output_cross_qk=1, **TOKENS)
    model.graph.node[0].output.extend(["", "", "products"])
    model.graph.output.add(name="products").type.tensor_type.elem_type = 1
    sequences, products = sardonyx.InferenceSession(model.SerializeToString()).run(None, given)
    return sequences, products


@pytest.mark.parametrize("seed", range(4))
def test_WhisperBeamSearch_gives_the_products_of_each_sequence(seed: int) -> None:
    """A sequence of several beams has the products that it has alone, when its tokens are forced."""
    sequences, products = searched(seed, 3, 2)
    assert products.shape == (2, 2, 2, 6, FEATURES.shape[2])
    for place in range(2):
        said = sequences[:, place, 2:]
        alone, expected = searched(seed, 1, 1, extra=np.where(said == TOKENS["pad_token_id"], -1, said))
        for batch, count in enumerate((said != TOKENS["pad_token_id"]).sum(axis=1)):
            np.testing.assert_array_equal(alone[batch, 0, 2 : 2 + count], said[batch, :count])
            np.testing.assert_allclose(products[batch, place, :, :count], expected[batch, 0, :, :count], rtol=1e-5, atol=1e-6)
            assert not products[batch, place, :, count:].any()


def test_pairs_choose_products() -> None:
    """Each pair is a layer and one of its heads, in the order in which they are given."""
    _, whole = searched(0, 2, 1)
    _, chosen = searched(0, 2, 1, pairs=np.array([[0, 1], [0, 0], [0, 1]], np.int32))
    np.testing.assert_array_equal(chosen, whole[:, :, [1, 0, 1]])


def test_products_that_no_decoder_gives_are_refused() -> None:
    """The message names the attribute that is missing, the pair that does not exist, or the shape."""
    with pytest.raises(sardonyx.InvalidArgument, match="names head 2 of layer 0; the decoder has 1 layers of 2 heads"):
        searched(0, 2, 1, pairs=np.array([[0, 2]], np.int32))
    with pytest.raises(sardonyx.InvalidArgument, match="cross_qk_layer_head has shape"):
        searched(0, 2, 1, pairs=np.array([[0, 1, 2]], np.int32))
    with pytest.raises(sardonyx.InvalidArgument, match="extra_decoding_ids has shape"):
        searched(0, 2, 1, extra=np.zeros((3, 1), np.int32))


@pytest.mark.parametrize("end", [5, 9, 18])
def test_GreedySearch_is_as_in_onnxruntime(end: int) -> None:
    """What ends is padded, the others go on."""
    inputs: Inputs = [*PLAIN[:3], ("repetition", floats(1.2))]
    (pair,) = both("GreedySearch", inputs, 1, decoder=language_model(1), eos_token_id=end, pad_token_id=0, no_repeat_ngram_size=2)
    np.testing.assert_array_equal(*pair)


@pytest.mark.parametrize("custom", [0, 1])
def test_Sampling_of_the_likeliest_token_alone_is_greedy(custom: int) -> None:
    """With a tiny top_p there is one token to draw."""
    decoder = language_model(1)
    options = {"top_p": 1e-6, "min_tokens_to_keep": 1, "custom": custom, "temperature": 0.7}
    drawn = run("Sampling", [*PLAIN[:3], ("repetition", floats(1))], 2, decoder=decoder, **TOKENS, **options)
    greedy = run("GreedySearch", [*PLAIN[:3], ("repetition", floats(1))], 1, decoder=decoder, **TOKENS)
    np.testing.assert_array_equal(drawn[0], greedy[0])
    assert ((drawn[1] > -1e19).sum(axis=1) == 1).all()


def run(op_type: str, inputs: Inputs, outputs: int, **attributes: Any) -> list[Any]:
    """What we compute; Any stands for arrays."""
    model = loop_model(op_type, inputs, outputs, **attributes).SerializeToString()
    found: list[Any] = sardonyx.InferenceSession(model).run(None, {name: array for name, array in inputs if name})
    return found


def test_Sampling_repeats_itself_with_a_seed() -> None:
    """The same seed draws the same tokens, another one others."""
    given: Inputs = [*PLAIN[:3], ("repetition", floats(1)), *[("", None)] * 4]
    options = {"decoder": language_model(2), "top_p": 0.95, "temperature": 4.0, **TOKENS}
    first, again, other = (run("Sampling", [*given, ("seed", ints(seed))], 1, **options)[0] for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_weights_may_lie_in_the_graph_around() -> None:
    """Two decoders may share what the main graph holds, as exported models have it."""
    decoder, init = language_model(1), language_model(1, "init")
    model = loop_model("BeamSearch", PLAIN, 3, decoder=decoder, init_decoder=init, **TOKENS)
    shared = list(decoder.initializer)
    for attribute in model.graph.node[0].attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            del attribute.g.initializer[:]
    model.graph.initializer.extend(shared)
    found = sardonyx.InferenceSession(model.SerializeToString()).run(None, dict(PLAIN))
    for one, other in zip(found, run("BeamSearch", PLAIN, 3, decoder=decoder, **TOKENS), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (("most", ints(4)), "expected .B, less than max_length"),
        (("beams", ints(1)), "num_return_sequences is 2 and num_beams 1"),
        (("repetition", floats(0)), "repetition_penalty is 0"),
        (("beams", ints(20)), "40 tokens at least"),
        (("beams", ints(2**30)), "at most .* are allowed"),
    ],
)
def test_what_does_not_fit_is_refused(changed: tuple[str, Any], message: str) -> None:
    """Lengths, beams and penalties that make no sense name their values."""
    inputs = [changed if name == changed[0] else (name, array) for name, array in PLAIN]
    with pytest.raises(sardonyx.InvalidArgument, match=message):
        run("BeamSearch", inputs, 1, decoder=language_model(), **TOKENS)
