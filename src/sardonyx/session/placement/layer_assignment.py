"""The config entries by which onnxruntime assigns layers to devices.

    session.layer_assignment_settings = "cuda(encoder, =embed); cpu(decoder)"      by a node's annotation "layer_ann"; "=" is exact
    session.name_based_layer_assignment = "cpu(layers.0, lm_head)"                 by a part of the node's name

Of the annotations that fit, beginnings come before exact ones, then the first counts; of the parts of names, the longest. A device
is a word of `_DEVICES`, with a vendor or a number behind a colon, or a provider. One that the session does not have is passed over
with a warning, and a node whose provider declines it goes to the others, as in onnxruntime.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence

from sardonyx.partition.pins import Pins
from sardonyx.session.providers import REFERENCE
from sardonyx.session.settings.settings import PlacementSettings

__all__ = ["layer_pins"]

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


def layer_pins(settings: PlacementSettings, providers: Sequence[str]) -> Pins:
    """Return where the layers that the entries assign are placed, in a session with these providers."""
    by_annotation, by_name = settings.layers_by_annotation, settings.layers_by_name
    found = dict(_resolved(by_annotation or by_name, providers))
    return Pins(
        layers={text: provider for text, provider in found.items() if text in by_annotation},
        name_parts={text: provider for text, provider in found.items() if text in by_name},
        fall_through=bool(by_annotation or by_name),
    )


def _resolved(rules: Mapping[str, str], providers: Sequence[str]) -> Iterable[tuple[str, str]]:
    """Return text and provider for those whose device the session has."""
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
