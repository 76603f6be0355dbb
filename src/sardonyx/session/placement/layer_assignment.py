"""The config entries by which onnxruntime assigns layers to devices.

    session.layer_assignment_settings = "cuda(encoder, =embed); cpu(decoder)"      by a node's annotation "layer_ann"; "=" is exact
    session.name_based_layer_assignment = "cpu(layers.0, lm_head)"                 by a part of the node's name

Of the annotations that fit, beginnings come before exact ones, then the first counts; of the parts of names, the longest. A device
is a word of `_DEVICES`, with a vendor or a number behind a colon, or a provider. One that the session does not have is passed over
with a warning, and a node whose provider declines it goes to the others, as in onnxruntime.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence

from sardonyx.errors import InvalidArgument
from sardonyx.partition.placement import Pins
from sardonyx.session.providers import REFERENCE

__all__ = ["read_layer_assignment"]

_BY_ANNOTATION = "session.layer_assignment_settings"
_BY_NAME = "session.name_based_layer_assignment"
_RULE = re.compile(r"([^()]+)\(([^()]*)\)")
_CPU = "CPUExecutionProvider"
_DEVICES = {
    "cpu": "CPU",
    "gpu": "CUDA Dml MIGraphX NvTensorRTRTX ROCM Tensorrt WebGpu",
    "cuda": "CUDA",
    "dml": "Dml",
    "npu": "QNN VitisAI",
    "fpga": "",
    "accelerator": "",
}
"""Device -> providers that it may mean; "accelerator" means any but those of the processor."""


def read_layer_assignment(entries: Mapping[str, str], providers: Sequence[str]) -> Pins:
    """What the two entries say to a session with these providers.

    Raises:
        InvalidArgument: an entry is malformed or names a text twice, or both are given.
    """
    by_annotation, by_name = entries.get(_BY_ANNOTATION, ""), entries.get(_BY_NAME, "")
    if by_annotation and by_name:
        raise InvalidArgument(f"{_BY_ANNOTATION} and {_BY_NAME} exclude each other; give one of them")
    annotations, parts = _parse(_BY_ANNOTATION, by_annotation), _parse(_BY_NAME, by_name)
    exact = next((text for text in parts if text.startswith("=")), None)
    if exact is not None:
        raise InvalidArgument(f"{_BY_NAME} has {exact!r}, but compares parts of names; leave out the equals sign")
    found = dict(_resolved(annotations or parts, providers))
    return Pins(
        layers={text: provider for text, provider in found.items() if text in annotations},
        name_parts={text: provider for text, provider in found.items() if text in parts},
        fall_through=bool(annotations or parts),
    )


def _parse(entry: str, setting: str) -> dict[str, str]:
    """Text -> device."""
    found: dict[str, str] = {}
    for rule in (part.strip() for part in setting.split(";")):
        if not rule:
            continue
        match = _RULE.fullmatch(rule)
        if match is None:
            raise InvalidArgument(f"{entry} is a list of DEVICE(TEXT, TEXT), separated by semicolons, got {rule!r}")
        device = match[1].strip()
        for text in (text.strip() for text in match[2].split(",") if text.strip()):
            if text in found:
                raise InvalidArgument(f"{entry} has {text!r} twice, for {found[text]} and {device}; give it to one device")
            found[text] = device
    return found


def _resolved(rules: Mapping[str, str], providers: Sequence[str]) -> Iterable[tuple[str, str]]:
    """Text and provider for those whose device the session has."""
    missing: dict[str, None] = {}
    for text, device in rules.items():
        provider = next((name for name in providers if name in _meant_by(device, providers)), None)
        if provider is not None:
            yield text, provider
        elif providers:
            missing[device] = None
    for device in missing:
        warnings.warn(
            f"layers are assigned to {device!r}, which is none of the session's providers {list(providers)}; they go where they "
            f"would go. A device is a provider, or one of {', '.join(_DEVICES)}",
            UserWarning,
            stacklevel=2,
        )


def _meant_by(device: str, providers: Sequence[str]) -> Sequence[str]:
    kind = device.lower().partition(":")[0]
    if kind == "accelerator":
        return [name for name in providers if name not in (_CPU, REFERENCE)]
    return [device, *(f"{name}ExecutionProvider" for name in (device, *_DEVICES.get(kind, "").split()))]
