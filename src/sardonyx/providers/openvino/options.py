"""Provider options, with the names that onnxruntime gives them, as properties of OpenVINO."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sardonyx.errors import InvalidArgument, NoSuchFile

__all__ = ["OPTIONS", "settings_of"]

OPTIONS = ("cache_dir", "device_type", "load_config", "num_of_threads", "num_streams", "precision")

_HINT, _ACCURATE = "INFERENCE_PRECISION_HINT", {"INFERENCE_PRECISION_HINT": "f32", "EXECUTION_MODE_HINT": "ACCURACY"}
_PRECISIONS = {"FP32": _ACCURATE, "FP16": {_HINT: "f16"}, "BF16": {_HINT: "bf16"}, "ACCURACY": _ACCURATE}
_COUNTS = {"num_of_threads": "INFERENCE_NUM_THREADS", "num_streams": "NUM_STREAMS"}


def settings_of(options: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """The device, and its properties of any type that OpenVINO takes; raises InvalidArgument, or NoSuchFile for `load_config`.

    Args:
        options: `device_type` ("CPU" by default; whatever OpenVINO calls a device, such as "GPU.0" or "AUTO:GPU,CPU"), `precision`
            ("FP32", the default, "FP16", "BF16" or "ACCURACY"), `num_of_threads`, `num_streams`, `cache_dir`, and `load_config`:
            JSON text, or the path of a JSON file, that holds {device: {property: value}}.
    """
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise InvalidArgument(f"OpenVINOExecutionProvider has no options {unknown}; it has {', '.join(OPTIONS)}")
    device = options.get("device_type", "CPU")
    precision = options.get("precision", "FP32").upper()
    if precision not in _PRECISIONS:
        raise InvalidArgument(f"precision must be one of {', '.join(sorted(_PRECISIONS))}, got {precision!r}")
    found: dict[str, Any] = dict(_PRECISIONS[precision])
    for name in _COUNTS.keys() & options.keys():
        if not options[name].isdigit() or int(options[name]) < 1:
            raise InvalidArgument(f"{name} must be a number of at least 1, got {options[name]!r}")
        found[_COUNTS[name]] = int(options[name])
    if options.get("cache_dir"):
        found["CACHE_DIR"] = options["cache_dir"]
    if options.get("load_config"):
        found.update(_loaded(options["load_config"], device))
    return device, found


def _loaded(text: str, device: str) -> dict[str, Any]:
    try:
        found = json.loads(text if text.lstrip().startswith("{") else Path(text).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise NoSuchFile(f"load_config names {text!r}, which does not exist") from error
    except (OSError, ValueError) as error:
        raise InvalidArgument(f"load_config must be JSON text or the path of a JSON file: {error}") from error
    if not isinstance(found, dict) or not isinstance(found.get(device, {}), dict):
        raise InvalidArgument(f"load_config must hold {{device: {{property: value}}}}, got {found!r}")
    return dict(found.get(device, {}))
