"""Provider options, with the names that onnxruntime gives them, as properties of OpenVINO."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sardonyx.errors import InvalidArgument, NoSuchFile

__all__ = ["OPTIONS", "Settings", "settings_of"]

OPTIONS = ("cache_dir", "device_type", "load_config", "model_priority", "num_of_threads", "num_streams", "precision")
"""The options that there are."""

_PRECISIONS = {"FP32": "f32", "FP16": "f16", "BF16": "bf16", "ACCURACY": "f32"}
_PRIORITIES = frozenset({"LOW", "MEDIUM", "HIGH", "DEFAULT"})

Settings = tuple[str, dict[str, Any]]
"""A device, and its properties for `Core.compile_model`; their values are of any type that OpenVINO takes."""


def settings_of(options: Mapping[str, str]) -> Settings:
    """Read provider options.

    Args:
        options: `device_type` ("CPU" by default; whatever OpenVINO calls a device, such as "GPU.0" or "AUTO:GPU,CPU"), `precision`
            ("FP32", the default, "FP16", "BF16" or "ACCURACY"), `num_of_threads`, `num_streams`, `cache_dir`, `model_priority`,
            and `load_config`: JSON text, or the path of a JSON file, that holds {device: {property: value}}.

    Raises:
        InvalidArgument: an option is unknown or its value is none of those.
        NoSuchFile: the file of `load_config` does not exist.
    """
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise InvalidArgument(f"OpenVINOExecutionProvider has no options {unknown}; it has {', '.join(OPTIONS)}")
    device = options.get("device_type", "CPU")
    precision = _one_of("precision", options.get("precision", "FP32").upper(), _PRECISIONS)
    priority = _one_of("model_priority", options.get("model_priority", "DEFAULT").upper(), _PRIORITIES)
    found: dict[str, Any] = {"INFERENCE_PRECISION_HINT": _PRECISIONS[precision]}
    if precision in ("FP32", "ACCURACY"):
        found["EXECUTION_MODE_HINT"] = "ACCURACY"
    if priority != "DEFAULT":
        found["MODEL_PRIORITY"] = priority
    for name, property_name in (("num_of_threads", "INFERENCE_NUM_THREADS"), ("num_streams", "NUM_STREAMS")):
        if name in options:
            found[property_name] = _count(name, options[name])
    if options.get("cache_dir"):
        found["CACHE_DIR"] = options["cache_dir"]
    if options.get("load_config"):
        found.update(_loaded(options["load_config"], device))
    return device, found


def _one_of(name: str, value: str, known: Mapping[str, str] | frozenset[str]) -> str:
    if value not in known:
        raise InvalidArgument(f"{name} must be one of {', '.join(sorted(known))}, got {value!r}")
    return value


def _count(name: str, text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise InvalidArgument(f"{name} must be a number of at least 1, got {text!r}")
    return int(text)


def _loaded(text: str, device: str) -> dict[str, Any]:
    try:
        content = text if text.lstrip().startswith("{") else Path(text).read_text(encoding="utf-8")
        found = json.loads(content)
    except FileNotFoundError as error:
        raise NoSuchFile(f"load_config names {text!r}, which does not exist") from error
    except (OSError, ValueError) as error:
        raise InvalidArgument(f"load_config must be JSON text or the path of a JSON file: {error}") from error
    own = found.get(device, {}) if isinstance(found, dict) else None
    if not isinstance(own, dict):
        raise InvalidArgument(f"load_config must hold {{device: {{property: value}}}}, got {found!r}")
    return own
