"""`load`: a folder, a file or a session becomes a `Generator`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument, NotFound
from sardonyx.generate.chat import ChatTemplate
from sardonyx.generate.decoder import Decoder
from sardonyx.generate.encoder import Encoder
from sardonyx.generate.folders import ModelFolder, read_folder
from sardonyx.generate.generator import Generator
from sardonyx.generate.prefix import PromptCache
from sardonyx.generate.sharing import can_share
from sardonyx.generate.signature import Signature, find_signature
from sardonyx.generate.text import Tokenizer
from sardonyx.session.inference_session import InferenceSession
from sardonyx.session.options import SessionOptions
from sardonyx.session.providers import ProviderRequest

__all__ = ["load"]


def load(
    model: str | os.PathLike[str] | InferenceSession,
    *,
    variant: str = "",
    options: SessionOptions | None = None,
    providers: Sequence[ProviderRequest] | None = None,
    names: Mapping[str, str] | None = None,
    caches: Mapping[str, str] | None = None,
    inputs: Mapping[str, Array] | None = None,
    prompt_cache_bytes: int = 0,
) -> Generator:
    """Make a generator of a model.

    Args:
        model: a folder as Hugging Face's exporters or onnxruntime-genai write it, an ONNX file, or a session. Beside a file,
            configurations and tokenizers are read too.
        variant: which files of a folder: "fp16" for model_fp16.onnx.
        options: of the sessions.
        providers: of the sessions.
        names: purpose (a key of `sardonyx.generate.ROLES`) -> name of the input or output, where the names are others than usual.
        caches: input -> output of each cache, where the names are others than usual.
        inputs: name -> what this input is fed in every run, for inputs of no known purpose.
        prompt_cache_bytes: how much memory prompts may keep that were read, so that those that begin alike need not be read again.

    Raises:
        NoSuchFile: there is no such model, or a file of it is missing.
        InvalidArgument: a configuration, an input or an output is none that is known; or as InferenceSession.
    """
    given = dict(inputs or {})
    if isinstance(model, InferenceSession):
        signature = find_signature(model, names, caches, given)
        return Generator(Decoder(model, signature, inputs=given), prompt_cache=_prompt_cache(prompt_cache_bytes))
    if not _is_path(model):
        raise InvalidArgument(f"model is a folder, an ONNX file or an InferenceSession, got {type(model).__name__}")
    folder = read_folder(Path(model), variant)
    roles = {**folder.names, **(names or {})}
    pairs = dict(folder.caches) if caches is None else dict(caches)
    session = InferenceSession(folder.decoder, options, providers)
    signature = find_signature(session, roles, pairs, given)
    first = None
    if folder.first is not None:
        opening = InferenceSession(folder.first, options, providers)
        first = opening, find_signature(opening, names, None, given)
    decoder = Decoder(
        session,
        signature,
        first=first,
        shares_caches=can_share(folder.decoder, signature),
        inputs=given,
        longest=folder.longest,
    )
    tokenizer, template, lacking = _texts(folder)
    _check_vocabulary(folder, signature, tokenizer)
    return Generator(
        decoder,
        encoder=None if folder.encoder is None else Encoder(InferenceSession(folder.encoder, options, providers)),
        settings=folder.settings,
        tokenizer=tokenizer,
        chat_template=template,
        start_ids=folder.start_ids,
        prompt_cache=_prompt_cache(prompt_cache_bytes),
        lacking=lacking,
    )


def _is_path(model: object) -> bool:
    return isinstance(model, (str, os.PathLike))


def _texts(folder: ModelFolder) -> tuple[Tokenizer | None, ChatTemplate | None, NotFound | None]:
    """Return the tokenizer and the chat template of a folder, and which package is not installed: who gives tokens needs none."""
    try:
        tokenizer = None if folder.tokenizer is None else Tokenizer(folder.tokenizer)
    except NotFound as error:
        return None, None, error
    try:
        template = None if folder.chat_template is None else ChatTemplate(folder.chat_template, folder.special_tokens)
    except NotFound as error:
        return tokenizer, None, error
    return tokenizer, template, None


def _prompt_cache(size_bytes: int) -> PromptCache | None:
    return PromptCache(size_bytes) if size_bytes > 0 else None


def _check_vocabulary(folder: ModelFolder, signature: Signature, tokenizer: Tokenizer | None) -> None:
    """Raise InvalidArgument where tokens of the tokenizer have no logit; models may have more logits than tokens."""
    found = signature.vocabulary
    if tokenizer is not None and found is not None and tokenizer.vocabulary > found:
        raise InvalidArgument(
            f"{folder.tokenizer} has {tokenizer.vocabulary} tokens, and {folder.decoder} gives {found} logits; they are of "
            "different models"
        )
