"""The form of IOBinding that onnxruntime's compiled module has: devices and types instead of names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sardonyx.dtypes import ElementType, OnnxValue
from sardonyx.session.io_binding import IOBinding
from sardonyx.session.native.session import InferenceSession as NativeSession
from sardonyx.values.device import CPU, OrtDevice
from sardonyx.values.ort_value import OrtValue
from sardonyx.values.ort_value_vector import OrtValueVector

if TYPE_CHECKING:
    from sardonyx.session.inference_session import InferenceSession

__all__ = ["SessionIOBinding"]


class SessionIOBinding:
    """The inputs and outputs of runs of one session."""

    def __init__(self, session: InferenceSession | NativeSession) -> None:
        """Bind nothing yet."""
        self.binding = IOBinding(session.session if isinstance(session, NativeSession) else session)
        """The binding that it stands for."""

    def bind_input(self, name: str, *place: Any) -> None:
        """Bind an array, or memory given as (device, type, shape, address); see `IOBinding.bind_input`."""
        if len(place) == 1:
            self.binding.bind_cpu_input(name, place[0])
        else:
            device, element_type, shape, address = place
            self.binding.bind_input(name, device, 0, element_type, shape, address)

    def bind_output(
        self,
        name: str,
        device: OrtDevice = CPU,
        element_type: ElementType | None = None,
        shape: Sequence[int] | None = None,
        address: int | None = None,
    ) -> None:
        """Ask for an output; see `IOBinding.bind_output`."""
        self.binding.bind_output(name, device, 0, element_type, shape, address)

    def bind_ortvalue_input(self, name: str, value: OrtValue) -> None:
        """Bind a value to an input."""
        self.binding.bind_ortvalue_input(name, value)

    def bind_ortvalue_output(self, name: str, value: OrtValue) -> None:
        """Bind a tensor to an output."""
        self.binding.bind_ortvalue_output(name, value)

    def get_outputs(self) -> OrtValueVector:
        """Return the outputs as the last run left them."""
        return self.binding.get_outputs_as_ortvaluevector()

    def copy_outputs_to_cpu(self) -> list[OnnxValue]:
        """Return a copy of each output."""
        return self.binding.copy_outputs_to_cpu()

    def synchronize_inputs(self) -> None:
        """Wait for copies of inputs: there are none."""

    def synchronize_outputs(self) -> None:
        """Wait for copies of outputs: there are none."""

    def clear_binding_inputs(self) -> None:
        """Forget the inputs."""
        self.binding.clear_binding_inputs()

    def clear_binding_outputs(self) -> None:
        """Forget the outputs."""
        self.binding.clear_binding_outputs()
