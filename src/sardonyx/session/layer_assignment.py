"""The config entries by which onnxruntime assigns layers to devices.

    session.layer_assignment_settings = "cuda(encoder, =embed); cpu(decoder)"      by a node's annotation "layer_ann"; "=" is exact
    session.name_based_layer_assignment = "cpu(layers.0, lm_head)"                 by a part of the node's name

The longest text that fits wins. A device is "cpu", "gpu" or "cuda", or a provider; one that is not available is passed over, and
a node whose provider declines it goes to the others, as in onnxruntime.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sardonyx.errors import InvalidArgument
from sardonyx.partition.placement import Pins
from sardonyx.session.providers import get_available_providers
from sardonyx.trace import event

__all__ = ["read_layer_assignment"]

_BY_ANNOTATION = "session.layer_assignment_settings"
_BY_NAME = "session.name_based_layer_assignment"
_DEVICES = {"cpu": "CPUExecutionProvider", "gpu": "CUDAExecutionProvider", "cuda": "CUDAExecutionProvider"}
_RULE = re.compile(r"([^()]+)\(([^()]*)\)")


def read_layer_assignment(entries: Mapping[str, str]) -> Pins:
    """What the two entries say; raises InvalidArgument where one is malformed, or both are given."""
    by_annotation, by_name = entries.get(_BY_ANNOTATION, ""), entries.get(_BY_NAME, "")
    if by_annotation and by_name:
        raise InvalidArgument(f"{_BY_ANNOTATION} and {_BY_NAME} exclude each other; give one of them")
    annotations, parts = _parse(_BY_ANNOTATION, by_annotation), _parse(_BY_NAME, by_name)
    exact = next((text for text in parts if text.startswith("=")), None)
    if exact is not None:
        raise InvalidArgument(f"{_BY_NAME} has {exact!r}, but compares parts of names; leave out the equals sign")
    return Pins(annotations=annotations, name_parts=parts, fall_through=bool(annotations or parts))


def _parse(entry: str, setting: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for rule in (part.strip() for part in setting.split(";")):
        if not rule:
            continue
        match = _RULE.fullmatch(rule)
        if match is None:
            raise InvalidArgument(f"{entry} is a list of DEVICE(TEXT, TEXT), separated by semicolons, got {rule!r}")
        device, texts = match[1].strip(), [text.strip() for text in match[2].split(",") if text.strip()]
        provider = _provider_of(device)
        if provider is None:
            event("placement.ignored", device=device)
            continue
        found.update((text, provider) for text in texts)
    return found


def _provider_of(device: str) -> str | None:
    available = get_available_providers()
    candidates = (_DEVICES.get(device.lower(), device), f"{device}ExecutionProvider")
    return next((name for name in candidates if name in available), None)
