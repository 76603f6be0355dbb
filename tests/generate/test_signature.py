"""Tests of how inputs and outputs of decoders are found."""

from __future__ import annotations

import pytest
from support.session_models import session

from sardonyx.errors import InvalidArgument
from sardonyx.generate.signature import find_signature
from sardonyx.session.inference_session import InferenceSession


def _decoder(
    past: str, present: str, more: str = "", cache: str = "float[b, 2, p, 4]", grown: str = "float[b, 2, t, 4]"
) -> InferenceSession:
    text = (
        f'graph(input_ids: int64[b, s], "{past}": {cache}{more}) -> (logits: float[b, s, 1], "{present}": {grown}) {{\n'
        f"f = Cast(input_ids) {{to = 1}}\naxis = Constant() {{value_ints = [2]}}\nlogits = Unsqueeze(f, axis)\n"
        f'"{present}" = Concat("{past}", "{past}") {{axis = 2}}\n}}'
    )
    return session(text)


@pytest.mark.parametrize(
    ("past", "present", "key"),
    [
        ("past_key_values.0.key", "present.0.key", "0.key"),
        ("past.3.value", "present.3.value", "3.value"),
        ("past_key_self_1", "present_key_self_1", "key_self_1"),
        ("past_0", "present_0", "0"),
        ("past_k", "present_k", "k"),
    ],
)
def test_caches_are_paired_by_what_their_names_share(past: str, present: str, key: str) -> None:
    """Past and present of one cache are spelt alike but for their beginning."""
    (slot,) = find_signature(_decoder(past, present)).caches
    assert (slot.past, slot.present, slot.key, slot.shape) == (past, present, key, (None, 2, None, 4))


def test_the_length_is_the_axis_that_differs() -> None:
    """Of two open axes besides the batch, the one whose name changes from past to present is the length."""
    (slot,) = find_signature(_decoder("past_0", "present_0", cache="float[b, h, p, 4]", grown="float[b, h, t, 4]")).caches
    assert (slot.batch_axis, slot.length_axis) == (0, 2)


def test_caches_of_the_encoder_are_cross_caches() -> None:
    """Their names say so, in each exporter's way."""
    (slot,) = find_signature(_decoder("past_key_values.0.encoder.key", "present.0.encoder.key")).caches
    assert slot.is_cross


def test_names_of_a_users_own_are_taken() -> None:
    """A map names what no exporter calls so."""
    found = find_signature(_decoder("memory", "grown"), caches={"memory": "grown"})
    assert [(slot.past, slot.present) for slot in found.caches] == [("memory", "grown")]


def test_an_input_of_no_known_purpose_is_an_error() -> None:
    """It names the input, and what would settle it."""
    with pytest.raises(InvalidArgument, match=r"\['strange'\] is not known"):
        find_signature(_decoder("past_0", "present_0", ", strange: float[b]"))


def test_an_input_that_somebody_feeds_is_left_to_him() -> None:
    """Its purpose need not be known."""
    assert find_signature(_decoder("past_0", "present_0", ", strange: float[b]"), given={"strange"}).caches


def test_a_misspelt_role_is_an_error_with_the_nearest() -> None:
    """The keys of the map are those of ROLES."""
    with pytest.raises(InvalidArgument, match="did you mean 'positions'"):
        find_signature(_decoder("past_0", "present_0"), {"position": "input_ids"})


def test_a_name_that_the_model_lacks_is_an_error() -> None:
    """It lists the names that there are."""
    with pytest.raises(InvalidArgument, match="the model has no 'tokens'"):
        find_signature(_decoder("past_0", "present_0"), {"ids": "tokens"})


def test_a_model_without_tokens_is_no_decoder() -> None:
    """It says which input is missing."""
    with pytest.raises(InvalidArgument, match="token ids"):
        find_signature(session("graph(x: float[n]) -> (logits: float[n]) {\nlogits = Relu(x)\n}"))
