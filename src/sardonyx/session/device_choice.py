"""Providers by the devices that use them: of a list of devices, or of a function that chooses among all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sardonyx.dtypes import OnnxValue
from sardonyx.errors import EPFail, InvalidArgument, describe
from sardonyx.forks import without_fork
from sardonyx.values.hardware import OrtEpDevice, get_ep_devices

__all__ = ["ChooseDevices", "chosen_by", "provider_of"]

ChooseDevices = Callable[[Sequence[OrtEpDevice], dict[str, str], dict[str, str], int], Sequence[OrtEpDevice]]
"""f(devices, model_metadata, runtime_metadata, max_selections) -> the devices to use, the preferred ones first."""
_MOST_DEVICES = 8
"""How many devices may be chosen, as in onnxruntime."""


def provider_of(devices: Sequence[OrtEpDevice], options: Mapping[str, object]) -> tuple[str, dict[str, str]]:
    """Return the provider of devices with its options, those of the devices included.

    Raises:
        InvalidArgument: there are none, they are no devices, or they have several providers.
    """
    if not devices or not all(isinstance(device, OrtEpDevice) for device in devices):
        raise InvalidArgument(f"expected one or more devices of get_ep_devices, got {list(devices)!r:.100}")
    names = sorted({device.ep_name for device in devices})
    if len(names) != 1:
        raise InvalidArgument(f"all devices must be of one provider, got those of {', '.join(names)}")
    joined = {key: value for device in devices for key, value in device.ep_options.items()}
    return names[0], joined | {str(key): str(value) for key, value in options.items()}


def chosen_by(choose: ChooseDevices, model: OnnxValue) -> list[tuple[str, dict[str, str]]]:
    """Return the providers of the devices that a function chooses for a model.

    Args:
        choose: the function.
        model: a path, bytes or a ModelProto, whose metadata the function gets; none of a file object, which is read once only.

    Raises:
        EPFail: the function raised, or chose what are no devices, or too many.
        SardonyxError: the model cannot be loaded.
    """
    try:
        found = list(choose(get_ep_devices(), _metadata(model), {}, _MOST_DEVICES))
    except Exception as error:
        raise EPFail(f"the function that chooses devices failed: {describe(error)}") from error
    if not found or len(found) > _MOST_DEVICES or not all(isinstance(device, OrtEpDevice) for device in found):
        raise EPFail(f"the function that chooses devices returns 1 to {_MOST_DEVICES} of those that it gets, got {found!r:.100}")
    groups: dict[str, list[OrtEpDevice]] = {}
    for device in found:
        groups.setdefault(device.ep_name, []).append(device)
    return [provider_of(group, {}) for group in groups.values()]


def _metadata(model: OnnxValue) -> dict[str, str]:
    if hasattr(model, "read"):
        return {}
    with without_fork():
        from sardonyx.formats import models  # `import sardonyx` stays fast without it

    return dict(models.load(model).metadata)
