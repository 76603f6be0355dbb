"""BeamSearch, GreedySearch, Sampling and WhisperBeamSearch of com.microsoft: whole generation loops in one node.

Sources: the operator schemas of ONNX Runtime 1.31; where they are silent, what its CPU kernels do.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.beam_search import BeamResult, BeamSettings, log_softmax, search_beams
from sardonyx.providers.reference.algorithms.cross_products import CrossProducts
from sardonyx.providers.reference.algorithms.dimensions import as_float, as_int, check_output_size
from sardonyx.providers.reference.algorithms.generation_decoders import Decoder, EncoderDecoder, LanguageModel, NextScores
from sardonyx.providers.reference.algorithms.generation_scores import ScoreRules, WhisperTokens
from sardonyx.providers.reference.kernels.random import generator_of
from sardonyx.providers.reference.registry import Body, Call, kernel

__all__ = ["beam_search", "greedy_search", "sampling", "whisper_beam_search"]

_MICROSOFT = "com.microsoft"
_LANGUAGE_MODEL, _ENCODER_DECODER, _WHISPER = 0, 1, 2


@kernel("BeamSearch", domain=_MICROSOFT)
def beam_search(
    call: Call,
    input_ids: Array,
    max_length: Array,
    min_length: Array | None = None,
    num_beams: Array | None = None,
    num_return_sequences: Array | None = None,
    length_penalty: Array | None = None,
    repetition_penalty: Array | None = None,
    vocab_mask: Array | None = None,
    prefix_vocab_mask: Array | None = None,
    attention_mask: Array | None = None,
    decoder_input_ids: Array | None = None,
    logits_processor: Array | None = None,
    *,
    decoder: Body,
    decoder_start_token_id: int = -1,
    early_stopping: int = 0,
    encoder: Body | None = None,
    eos_token_id: int,
    init_decoder: Body | None = None,
    model_type: int = _LANGUAGE_MODEL,
    no_repeat_ngram_size: int = 0,
    pad_token_id: int,
    vocab_size: int = -1,
) -> tuple[Array, ...]:
    """Return sequences (B, returned, max_length), their scores (B, returned), and each step's scores (steps, B, beams, V).

    `model_type` 0 runs `decoder` as a language model on the prompt `input_ids` (B, length), 1 runs `encoder` on it and then
    `decoder`, 2 does so on the features (B, …) of Whisper. Source: com.microsoft BeamSearch.
    """
    settings = _settings(
        call,
        max_length,
        num_beams,
        num_return_sequences,
        length_penalty,
        early_stopping=early_stopping,
        end=eos_token_id,
        pad=pad_token_id,
        vocabulary=vocab_size,
    )
    whisper_tokens = _whisper_tokens(eos_token_id, decoder_start_token_id)
    rules = ScoreRules(
        end=eos_token_id,
        repetition_penalty=_penalty(repetition_penalty),
        no_repeat_ngram_size=no_repeat_ngram_size,
        vocab_mask=vocab_mask,
        prefix_vocab_mask=prefix_vocab_mask,
        min_length=_as_length(min_length),
        timestamps=whisper_tokens if model_type == _WHISPER and _asks_for_timestamps(logits_processor) else None,
    )
    if model_type == _LANGUAGE_MODEL:
        prompt = _prompt(input_ids, settings.max_length)
        check_output_size((len(prompt) * settings.beams, settings.max_length), 8)
        mask = _mask(prompt, attention_mask, pad_token_id)
        model: Decoder = LanguageModel(decoder, init_decoder, prompt, mask, settings.beams, settings.max_length)
    elif model_type in (_ENCODER_DECODER, _WHISPER) and encoder is not None:
        prompt = _decoder_prompt(len(input_ids), decoder_input_ids, decoder_start_token_id, settings.max_length)
        known = {"encoder_input_ids": input_ids}
        if model_type == _ENCODER_DECODER:
            known["encoder_attention_mask"] = _encoder_mask(input_ids, attention_mask, pad_token_id)
        model = EncoderDecoder(encoder, decoder, known, prompt, settings.beams, settings.max_length)
    else:
        raise InvalidArgument(
            f"model_type is {model_type}, with {'no' if encoder is None else 'an'} encoder; expected 0, or 1 or 2 with an encoder"
        )
    found = search_beams(model, rules, prompt, settings)
    return found.sequences, found.scores, found.step_scores


@kernel("GreedySearch", domain=_MICROSOFT)
def greedy_search(
    call: Call,
    input_ids: Array,
    max_length: Array,
    min_length: Array | None = None,
    repetition_penalty: Array | None = None,
    vocab_mask: Array | None = None,
    prefix_vocab_mask: Array | None = None,
    attention_mask: Array | None = None,
    *,
    decoder: Body,
    decoder_start_token_id: int = -1,
    encoder: Body | None = None,
    eos_token_id: int,
    init_decoder: Body | None = None,
    model_type: int = _LANGUAGE_MODEL,
    no_repeat_ngram_size: int = 0,
    pad_token_id: int,
    vocab_size: int = -1,
) -> Array:
    """Go on from the prompt (B, length) with the likeliest token, up to max_length: sequences (B, max_length).

    Source: com.microsoft GreedySearch.
    """
    _require_language_model(model_type)
    rules = ScoreRules(
        end=eos_token_id,
        repetition_penalty=_penalty(repetition_penalty),
        no_repeat_ngram_size=no_repeat_ngram_size,
        vocab_mask=vocab_mask,
        prefix_vocab_mask=prefix_vocab_mask,
        min_length=_as_length(min_length),
    )
    longest = as_int(max_length, "max_length")
    prompt = _prompt(input_ids, longest)
    model = LanguageModel(decoder, init_decoder, prompt, _mask(prompt, attention_mask, pad_token_id), 1, longest)
    return _follow(model, rules, prompt, longest, pad_token_id, vocab_size, None)


@kernel("Sampling", domain=_MICROSOFT)
def sampling(
    call: Call,
    input_ids: Array,
    max_length: Array,
    min_length: Array | None = None,
    repetition_penalty: Array | None = None,
    vocab_mask: Array | None = None,
    prefix_vocab_mask: Array | None = None,
    attention_mask: Array | None = None,
    presence_mask: Array | None = None,
    seed: Array | None = None,
    *,
    custom: int = 0,
    decoder: Body,
    decoder_start_token_id: int = -1,
    encoder: Body | None = None,
    eos_token_id: int,
    filter_value: float = -1e20,
    init_decoder: Body | None = None,
    min_tokens_to_keep: int = 0,
    model_type: int = _LANGUAGE_MODEL,
    no_repeat_ngram_size: int = 0,
    pad_token_id: int,
    presence_penalty: float = 0.0,
    temperature: float = 1.0,
    top_p: float = 0.0,
    vocab_size: int = -1,
) -> tuple[Array, Array]:
    """Go on from the prompt with tokens drawn from the likeliest, whose probabilities add up to top_p; the last scores come second.

    With a seed the same numbers are drawn each time, though not those of ONNX Runtime. Source: com.microsoft Sampling.
    """
    _require_language_model(model_type)
    rules = ScoreRules(
        end=eos_token_id,
        repetition_penalty=_penalty(repetition_penalty),
        no_repeat_ngram_size=no_repeat_ngram_size,
        vocab_mask=vocab_mask,
        prefix_vocab_mask=prefix_vocab_mask,
        min_length=_as_length(min_length),
        temperature=temperature,
        presence_mask=presence_mask,
        presence_penalty=presence_penalty,
    )
    longest = as_int(max_length, "max_length")
    prompt = _prompt(input_ids, longest)
    model = LanguageModel(decoder, init_decoder, prompt, _mask(prompt, attention_mask, pad_token_id), 1, longest)
    generator = generator_of(None if seed is None else as_int(seed, "seed"))
    filtered: list[Array] = []

    def draw(scores: Array) -> Array:
        filter_ = _filter_falling if custom else _filter_rising
        filter_(scores, top_p, filter_value, min_tokens_to_keep)
        filtered[:] = [scores]
        sums = np.cumsum(np.exp(log_softmax(scores).astype(np.float64)), axis=1)
        drawn = generator.random((len(scores), 1)) * sums[:, -1:]
        places: Array = np.minimum((sums <= drawn).sum(axis=1), scores.shape[1] - 1)
        return places

    return _follow(model, rules, prompt, longest, pad_token_id, vocab_size, draw), filtered[0]


@kernel("WhisperBeamSearch", domain=_MICROSOFT)
def whisper_beam_search(
    call: Call,
    input_features: Array,
    max_length: Array,
    min_length: Array | None = None,
    num_beams: Array | None = None,
    num_return_sequences: Array | None = None,
    length_penalty: Array | None = None,
    repetition_penalty: Array | None = None,
    vocab_mask: Array | None = None,
    prefix_vocab_mask: Array | None = None,
    attention_mask: Array | None = None,
    decoder_input_ids: Array | None = None,
    logits_processor: Array | None = None,
    cross_qk_layer_head: Array | None = None,
    extra_decoding_ids: Array | None = None,
    temperature: Array | None = None,
    *,
    beginning_timestamp_token_id: int = -1,
    decoder: Body,
    decoder_output_cross_qk: int = 0,
    decoder_start_token_id: int = -1,
    early_stopping: int = 0,
    encoder: Body,
    eos_token_id: int,
    no_repeat_ngram_size: int = 0,
    no_speech_token_id: int = -1,
    no_timestamps_token_id: int = -1,
    pad_token_id: int,
    start_of_lm_token_id: int = -1,
    transcribe_token_id: int = -1,
    translate_token_id: int = -1,
    vocab_size: int = -1,
) -> tuple[Array | None, ...]:
    """Compute BeamSearch on the features (B, mels, frames) of Whisper, with its rules for timestamps where logits_processor is 1.

    The fourth output (B, returned, P, T, F) has the products of a query with the F keys of the encoder, for each token of a
    sequence that the decoder read, in P pairs of layer and head that `cross_qk_layer_head` (P, 2) chooses; 0 behind a
    sequence's end. The fifth is the probability (B,) of no_speech_token_id in the first step. `extra_decoding_ids` (B,
    count) are the first tokens to go on with, as far as they are 0 or more. Source: com.microsoft WhisperBeamSearch.
    """
    gives_products = len(call.present) > 3 and call.present[3]
    if gives_products and not decoder_output_cross_qk:
        raise InvalidArgument(
            "the output cross_qk is asked for, and decoder_output_cross_qk is 0; expected 1, and a decoder that gives it"
        )
    settings = _settings(
        call,
        max_length,
        num_beams,
        num_return_sequences,
        length_penalty,
        early_stopping=early_stopping,
        end=eos_token_id,
        pad=pad_token_id,
        vocabulary=vocab_size,
    )
    tokens = _whisper_tokens(
        eos_token_id,
        decoder_start_token_id,
        beginning_timestamp_token_id,
        no_timestamps_token_id,
        start_of_lm_token_id,
        translate_token_id,
        transcribe_token_id,
    )
    rules = ScoreRules(
        end=eos_token_id,
        repetition_penalty=_penalty(repetition_penalty),
        no_repeat_ngram_size=no_repeat_ngram_size,
        vocab_mask=vocab_mask,
        prefix_vocab_mask=prefix_vocab_mask,
        min_length=_as_length(min_length),
        temperature=1.0 if temperature is None else as_float(temperature, "temperature"),
        timestamps=tokens if _asks_for_timestamps(logits_processor) else None,
        forced=_forced(extra_decoding_ids, len(input_features)),
    )
    prompt = _decoder_prompt(len(input_features), decoder_input_ids, decoder_start_token_id, settings.max_length)
    model = EncoderDecoder(encoder, decoder, {"encoder_input_ids": input_features}, prompt, settings.beams, settings.max_length)
    recorder = CrossProducts(model, cross_qk_layer_head) if gives_products else None
    found = search_beams(model if recorder is None else recorder, rules, prompt, settings)
    silence = None
    if len(call.present) > 4 and call.present[4]:
        silence = _probability(found, settings.beams, no_speech_token_id).astype(np.float32)
    products = None if recorder is None else recorder.along(found.paths)
    return found.sequences, found.scores, found.step_scores, products, silence


def _settings(
    call: Call,
    max_length: Array,
    num_beams: Array | None,
    num_return_sequences: Array | None,
    length_penalty: Array | None,
    *,
    early_stopping: int,
    end: int,
    pad: int,
    vocabulary: int,
) -> BeamSettings:
    beams = 1 if num_beams is None else as_int(num_beams, "num_beams")
    returned = 1 if num_return_sequences is None else as_int(num_return_sequences, "num_return_sequences")
    if not 1 <= returned <= beams:
        raise InvalidArgument(f"num_return_sequences is {returned} and num_beams {beams}; expected from 1 to num_beams")
    return BeamSettings(
        beams=beams,
        returned=returned,
        max_length=as_int(max_length, "max_length"),
        length_penalty=1.0 if length_penalty is None else as_float(length_penalty, "length_penalty"),
        early_stopping=bool(early_stopping),
        end=end,
        pad=pad,
        vocabulary=vocabulary,
        keeps_scores=len(call.present) > 2 and call.present[2],
        keeps_paths=len(call.present) > 3 and call.present[3],
    )


def _as_length(min_length: Array | None) -> int:
    return 0 if min_length is None else as_int(min_length, "min_length")


def _penalty(given: Array | None) -> float:
    penalty = 1.0 if given is None else as_float(given, "repetition_penalty")
    if not penalty > 0:
        raise InvalidArgument(f"repetition_penalty is {penalty}; expected more than 0")
    return penalty


def _require_language_model(model_type: int) -> None:
    if model_type != _LANGUAGE_MODEL:
        raise InvalidArgument(f"model_type is {model_type}; expected 0: only BeamSearch runs models with an encoder")


def _prompt(input_ids: Array, max_length: int) -> Array:
    """Return the prompt, checked; it is shorter than the sequences are to be."""
    if input_ids.ndim != 2 or input_ids.shape[1] == 0 or input_ids.shape[1] >= max_length:
        raise InvalidArgument(f"the prompt has shape {input_ids.shape}; expected (B, less than max_length), which is {max_length}")
    check_output_size((len(input_ids), max_length), 8)
    return input_ids


def _mask(prompt: Array, given: Array | None, pad: int) -> Array:
    """Return 1 for what a language model reads of the prompt: all but the padding."""
    if given is None:
        is_read: Array = prompt != pad
        return is_read.astype(np.int32)
    if given.shape != prompt.shape:
        raise InvalidArgument(f"attention_mask has shape {given.shape}; expected that of input_ids, {prompt.shape}")
    return given


def _encoder_mask(input_ids: Array, given: Array | None, pad: int) -> Array:
    """Return 1 for what an encoder reads: all but the padding in front; a token like it at the end may be the end of the text."""
    if given is not None:
        return given
    is_read: Array = np.logical_or.accumulate(input_ids != pad, axis=1).astype(np.int32)
    return is_read


def _decoder_prompt(batch: int, given: Array | None, start: int, max_length: int) -> Array:
    """Return what the decoder has said at first: (B, length)."""
    if given is None and start < 0:
        raise InvalidArgument(f"decoder_start_token_id is {start}, and decoder_input_ids, which could replace it, is not given")
    prompt = np.full((batch, 1), start, np.int32) if given is None else given
    if len(prompt) != batch:
        raise InvalidArgument(f"decoder_input_ids has shape {prompt.shape}; expected ({batch}, length)")
    return _prompt(prompt, max_length)


def _asks_for_timestamps(logits_processor: Array | None) -> bool:
    return logits_processor is not None and as_int(logits_processor, "logits_processor") == 1


def _forced(given: Array | None, batch: int) -> Array | None:
    """Return the tokens (batch, count) that a search begins with."""
    if given is not None and (given.ndim != 2 or len(given) != batch):
        raise InvalidArgument(f"extra_decoding_ids has shape {given.shape}; expected ({batch}, count)")
    return given


def _whisper_tokens(
    end: int, start: int, begin: int = -1, no_timestamps: int = -1, start_of_lm: int = -1, translate: int = -1, transcribe: int = -1
) -> WhisperTokens:
    """Return Whisper's tokens; those of its multilingual vocabulary where no attribute states others."""
    forbidden = (end + 106 if no_timestamps < 0 else no_timestamps, end + 105 if start_of_lm < 0 else start_of_lm)
    later = (start, end + 101 if translate < 0 else translate, end + 102 if transcribe < 0 else transcribe)
    return WhisperTokens(end, end + 107 if begin < 0 else begin, forbidden, later)


def _probability(found: BeamResult, beams: int, token: int) -> Array:
    """Return the probability (B,) of a token in the first step."""
    logits = found.first.logits[::beams]
    if not 0 <= token < logits.shape[1]:
        raise InvalidArgument(f"no_speech_token_id is {token}; expected a token of the {logits.shape[1]}")
    probabilities: Array = np.exp(log_softmax(logits))
    return probabilities[:, token]


def _follow(
    model: Decoder,
    rules: ScoreRules,
    prompt: Array,
    max_length: int,
    pad: int,
    vocabulary: int,
    choose: Callable[[Array], Array] | None,
) -> Array:
    """Go on from the prompt with the likeliest tokens, or those that `choose` finds in scores (B, V); what ended is padded."""
    rows, length = prompt.shape
    found = np.full((rows, max_length), pad, np.int32)
    found[:, :length] = prompt
    own, is_open = list(range(rows)), [True] * rows
    scores = model.start()
    while True:
        sequences, step = found[:, :length], length - prompt.shape[1]
        ranked: list[int] = []
        if choose is None and scores.best and rules.is_idle(length, step=step):
            following = scores.best[0].ravel()
            ranked = following.tolist()
        if not ranked or rules.end in ranked or False in is_open:
            if not ranked or (rules.forbids_end(length) and rules.end in ranked):
                ranked = _chosen(scores, rules, sequences, step, vocabulary, choose)
            for row, token in enumerate(ranked):
                is_open[row] &= token != rules.end
                ranked[row] = token if is_open[row] else pad
            following = np.array(ranked, np.int32)
        found[:, length] = following
        length += 1
        if length >= max_length or True not in is_open:
            return found
        scores = model.advance(following, own, found[:, :length])


def _chosen(
    found: NextScores, rules: ScoreRules, sequences: Array, step: int, vocabulary: int, choose: Callable[[Array], Array] | None
) -> list[int]:
    """Return what is chosen of the scores that the rules leave."""
    scores = found.logits
    if 0 < vocabulary < scores.shape[1]:
        scores = np.ascontiguousarray(scores[:, :vocabulary])
    rules.apply(scores, sequences, step=step)
    tokens: list[int] = (scores.argmax(axis=1) if choose is None else choose(scores)).tolist()
    return tokens


def _filter_rising(scores: Array, top_p: float, filler: float, keep: int) -> None:
    """Fill in `filler` for the unlikeliest tokens that together have no more than 1 - top_p, but keep a few; changes `scores`."""
    order = np.argsort(scores, axis=1, kind="stable")
    sums = np.cumsum(np.exp(log_softmax(np.take_along_axis(scores, order, axis=1))), axis=1)
    dropped = sums <= 1 - top_p
    dropped[:, max(scores.shape[1] - keep, 1) :] = False
    _fill(scores, order, dropped, filler)


def _filter_falling(scores: Array, top_p: float, filler: float, keep: int) -> None:
    """Fill in `filler` for all behind the token with which the likeliest have more than top_p; changes `scores`."""
    order = np.argsort(-scores, axis=1, kind="stable")
    sums = np.cumsum(np.exp(log_softmax(np.take_along_axis(scores, order, axis=1))), axis=1)
    dropped = np.zeros(scores.shape, np.bool_)
    dropped[:, 1:] = sums[:, :-1] > top_p
    _fill(scores, order, dropped, filler)


def _fill(scores: Array, order: Array, dropped: Array, filler: float) -> None:
    row, place = np.nonzero(dropped)
    scores[row, order[row, place]] = np.float32(filler)
