"""Provider options, with the names that onnxruntime gives them, as properties of OpenVINO."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from sardonyx.errors import InvalidArgument, NoSuchFile
from sardonyx.option import PATH, POSITIVE, TEXT, Kind, Option, Unfit, check_names

__all__ = ["OPTIONS", "settings_of"]

_HINT, _ACCURATE = "INFERENCE_PRECISION_HINT", {"INFERENCE_PRECISION_HINT": "f32", "EXECUTION_MODE_HINT": "ACCURACY"}
_PRECISIONS = {"FP32": _ACCURATE, "FP16": {_HINT: "f16"}, "BF16": {_HINT: "bf16"}, "ACCURACY": _ACCURATE}


def _precision(text: str) -> str:
    if text.upper() not in _PRECISIONS:
        raise Unfit(text)
    return text.upper()


_DEVICE = Option("device_type", TEXT, "CPU", 'the device, as OpenVINO calls it, such as "GPU.0" or "AUTO:GPU,CPU"')
_PRECISION = Option(
    "precision", Kind(f"one of {', '.join(sorted(_PRECISIONS))}", _precision), "FP32", "the type that it computes in"
)
_COUNTS: Mapping[str, Option[int]] = {
    "INFERENCE_NUM_THREADS": Option("num_of_threads", POSITIVE, 0, "how many threads it has; by default OpenVINO decides"),
    "NUM_STREAMS": Option("num_streams", POSITIVE, 0, "how many runs it computes at once; by default OpenVINO decides"),
}
_CACHE = Option("cache_dir", PATH, "", "a folder in which OpenVINO keeps what it has compiled")
_CONFIG = Option("load_config", TEXT, "", "JSON text, or the path of a JSON file: {device: {property: value}}")
OPTIONS: tuple[Option[object], ...] = (_DEVICE, _PRECISION, *_COUNTS.values(), _CACHE, _CONFIG)
"""The provider's options."""


def settings_of(options: Mapping[str, str]) -> tuple[str, dict[str, object]]:
    """Return the device, and its properties of any type that OpenVINO takes, from the options that `OPTIONS` lists.

    Raises:
        InvalidArgument: an option is unknown, or has none of its values.
        NoSuchFile: `load_config` names a file that is not there.
    """
    check_names("OpenVINOExecutionProvider", options, OPTIONS)
    device = _DEVICE.read(options)
    found: dict[str, object] = dict(_PRECISIONS[_PRECISION.read(options)])
    found.update((name, count) for name, option in _COUNTS.items() if (count := option.read(options)))
    if _CACHE.read(options):
        found["CACHE_DIR"] = _CACHE.read(options)
    if _CONFIG.read(options):
        found.update(_loaded(_CONFIG.read(options), device))
    return device, found


def _loaded(text: str, device: str) -> dict[str, object]:
    try:
        found = json.loads(text if text.lstrip().startswith("{") else Path(text).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise NoSuchFile(f"load_config names {text!r}, which does not exist") from error
    except (OSError, ValueError) as error:
        raise InvalidArgument(f"load_config must be JSON text or the path of a JSON file: {error}") from error
    if not isinstance(found, dict) or not isinstance(found.get(device, {}), dict):
        raise InvalidArgument(f"load_config must hold {{device: {{property: value}}}}, got {found!r}")
    return dict(found.get(device, {}))
