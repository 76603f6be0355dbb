"""Whether compiled models suit the providers here: their metadata say what programs are good for, and providers judge that.

    metadata["ep_compatibility_info.CPUExecutionProvider"] = what `compatibility_info` said

The functions have the names and arguments of onnxruntime's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from sardonyx.arguments import as_list
from sardonyx.errors import Fail, InvalidArgument
from sardonyx.forks import without_fork
from sardonyx.ir import Model
from sardonyx.ir.walk import all_nodes
from sardonyx.partition.contexts import is_context
from sardonyx.provider import Compatibility, DescribesPrograms, JudgesPrograms, Provider
from sardonyx.session.providers import blaming, get_available_providers, make_providers
from sardonyx.trace import event

__all__ = [
    "METADATA_PREFIX",
    "check_compatibility",
    "get_compatibility_info_from_model",
    "get_compatibility_info_from_model_bytes",
    "get_model_compatibility_for_ep_devices",
]

METADATA_PREFIX = "ep_compatibility_info."
"""What the keys of the metadata begin with; the provider's name follows."""
_SEPARATORS = re.compile("[,|]")


def get_compatibility_info_from_model(model_path: str | os.PathLike[str], ep_type: str) -> str | None:
    """Return what the compiled model at a path says of what the provider `ep_type` compiled; None where it says nothing."""
    _check_named(model_path=model_path, ep_type=ep_type)
    return _info_of(_load(model_path), ep_type)


def get_compatibility_info_from_model_bytes(model_data: bytes | bytearray | memoryview, ep_type: str) -> str | None:
    """Return what `get_compatibility_info_from_model` returns, for the bytes of a model."""
    _check_named(ep_type=ep_type)
    return _info_of(_load(model_data), ep_type)


def get_model_compatibility_for_ep_devices(ep_devices: Sequence[object], compatibility_info: str) -> Compatibility:
    """Return how good a compiled model is for one provider on all of some devices.

    Args:
        ep_devices: the provider's name, a (name, options) pair for each of its devices, or providers themselves. Objects with an
            `ep_name`, such as onnxruntime's devices, stand for that name.
        compatibility_info: what the model says.

    Raises:
        TypeError: `compatibility_info` is no text.
        InvalidArgument: there are no devices, or they are of several providers, or of one that there is not.
        EPFail: the provider cannot be made.
    """
    if not isinstance(compatibility_info, str):
        raise TypeError(f"compatibility_info is the text that a model says, got {type(compatibility_info).__name__}")
    providers = [_provider_of(device) for device in as_list("ep_devices", ep_devices)]
    names = sorted({provider.name for provider in providers})
    if len(names) != 1:
        raise InvalidArgument(f"ep_devices must be devices of one provider, got {names or 'none'}")
    return max(_judged(provider, compatibility_info) for provider in providers)


def check_compatibility(model: Model, providers: Sequence[Provider], *, is_strict: bool) -> None:
    """Refuse a compiled model that a provider of the session does not run or, where `is_strict`, should not run as it is.

    Raises:
        Fail: a provider says that it does not run what was compiled; or that compiling anew is better, and `is_strict`.
    """
    told = [(provider, info) for provider in providers if (info := _info_of(model, provider.name)) is not None]
    compiled = {node.text("source", "") for node in all_nodes(model) if is_context(node)} if told else set()
    for provider, info in told:
        if provider.name in compiled:
            _check(provider, info, is_strict=is_strict)


def _check(provider: Provider, info: str, *, is_strict: bool) -> None:
    found = _judged(provider, info)
    if found is Compatibility.EP_UNSUPPORTED:
        raise Fail(
            f"the compiled model is not supported by {provider.name}: {_difference(provider, info)}; compile the original "
            "model anew, for a lower processor with SARDONYX_ISA set there"
        )
    if found is Compatibility.EP_SUPPORTED_PREFER_RECOMPILATION:
        event("context.suboptimal", provider=provider.name, info=info)
        if is_strict:
            raise Fail(
                f"the compiled model is suboptimal for {provider.name}: {_difference(provider, info)}; compile the original "
                "model anew, or leave out session.fail_on_suboptimal_compiled_model"
            )


def _check_named(**texts: object) -> None:
    for name, text in texts.items():
        if not text:
            raise InvalidArgument(f"{name} is empty")


def _load(source: object) -> Model:
    """Return a model; what reads it is imported here, since sardonyx's own import has no need of it."""
    with without_fork():
        from sardonyx.formats import models

    return models.load(source)


def _info_of(model: Model, name: str) -> str | None:
    return model.metadata.get(f"{METADATA_PREFIX}{name}")


def _difference(provider: Provider, info: str) -> str:
    """Return how the target that a model was compiled for differs from this one.

    Both are texts, or JSON objects of lists of words.
    """
    made, own = _entries(info), _entries(provider.compatibility_info() if isinstance(provider, DescribesPrograms) else "")
    told = [f"{key} {_words(made, own, key)}, here {_words(own, made, key)}" for key in made | own if made.get(key) != own.get(key)]
    return f"it was compiled for {'; '.join(told)}"


def _entries(info: str) -> dict[str, str]:
    with without_fork():
        import json  # for texts of other versions only

    try:
        return {str(key): str(value) for key, value in dict(json.loads(info)).items()}
    except (RecursionError, TypeError, ValueError):
        return {"": info}


def _words(one: Mapping[str, str], other: Mapping[str, str], key: str) -> str:
    """Return the words that stand in `one` only."""
    words, others = (_SEPARATORS.split(entries.get(key, "")) for entries in (one, other))
    return ",".join(word[:24] for word in words if word not in others) or "nothing more"


def _judged(provider: Provider, info: str) -> Compatibility:
    if not info or not isinstance(provider, DescribesPrograms):
        return Compatibility.EP_NOT_APPLICABLE
    with blaming(provider, "judge programs that were compiled before"):
        if isinstance(provider, JudgesPrograms):
            return Compatibility(provider.compatibility(info))
        return Compatibility.EP_SUPPORTED_OPTIMAL if info == provider.compatibility_info() else Compatibility.EP_UNSUPPORTED


def _provider_of(device: Any) -> Provider:
    if hasattr(device, "capabilities") and not isinstance(device, tuple):
        found: Provider = device
        return found
    name, options = device if isinstance(device, tuple) else (getattr(device, "ep_name", device), {})
    if name not in get_available_providers():
        raise InvalidArgument(f"there is no provider {name!r}; available are {get_available_providers()}")
    own: Mapping[str, object] = options
    return make_providers([(name, {key: str(value) for key, value in own.items()}, None)])[0]
