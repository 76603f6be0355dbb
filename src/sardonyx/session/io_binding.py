"""`IOBinding`: inputs and outputs bound in advance, so that runs copy nothing.

binding = session.io_binding()
binding.bind_cpu_input("x", x)
binding.bind_ortvalue_output("y", y)
session.run_with_iobinding(binding)          y holds the result
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sardonyx import errors
from sardonyx.dtypes import Array, ElementType, OnnxValue
from sardonyx.errors import InvalidArgument
from sardonyx.values.addresses import tensor_at
from sardonyx.values.device import OrtDevice, device_of
from sardonyx.values.ort_value import OrtValue
from sardonyx.values.ort_value_vector import OrtValueVector

if TYPE_CHECKING:
    from sardonyx.session.interface import SessionInterface

__all__ = ["IOBinding"]


class IOBinding:
    """The inputs and outputs of runs of one session; not for two threads at a time."""

    def __init__(self, session: SessionInterface) -> None:
        """Bind nothing yet."""
        if not hasattr(session, "get_overridable_initializers"):
            raise TypeError(f"session is an InferenceSession, got {session!r:.100}")
        self._session = session
        self._known = [argument.name for argument in (*session.get_inputs(), *session.get_overridable_initializers())]
        self._inputs: dict[str, OrtValue] = {}
        self._targets: dict[str, OrtValue | None] = {}
        self._results: dict[str, OrtValue] = {}
        self.native_run: Callable[..., None] | None = None
        """Runs what is bound, until something else is; None where Python does."""

    @property
    def session(self) -> SessionInterface:
        """The session that it was made for."""
        return self._session

    @property
    def _iobinding(self) -> IOBinding:
        return self

    def bind_cpu_input(self, name: str, arr_on_cpu: OnnxValue) -> None:
        """Bind an array (Any: whatever `run` takes) to an input; changes of a dense array are seen by later runs.

        Raises:
            InvalidArgument: the model has no such input.
        """
        self._check_input(name)
        self.native_run = None
        self._inputs[name] = OrtValue.of(self._session.checked_input(name, arr_on_cpu))

    def bind_input(
        self,
        name: str,
        device_type: str | OrtDevice,
        device_id: int,
        element_type: ElementType,
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None:
        """Bind memory at an address to an input; it is read by each run, and must stay as long as it is bound.

        Args:
            name: the input.
            device_type: "cpu" or an OrtDevice.
            device_id: the index of the device.
            element_type: a NumPy type (anything that np.dtype takes) or a number of TensorProto.DataType.
            shape: the sizes.
            buffer_ptr: the address of the first element; elements lie densely, row by row.

        Raises:
            InvalidArgument: the model has no such input, or the memory cannot be one.
            NotImplemented: the device is not the CPU.
        """
        self._check_input(name)
        self.native_run = None
        self._inputs[name] = OrtValue.of(tensor_at(buffer_ptr, element_type, shape, device_of(device_type, device_id)))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Bind a value to an input; raises InvalidArgument where the model has no such input."""
        self._check_input(name)
        if not isinstance(ortvalue, OrtValue):
            raise InvalidArgument(f"bind_ortvalue_input takes an OrtValue for {name!r}, got {type(ortvalue).__name__}")
        self.native_run = None
        self._inputs[name] = ortvalue

    def bind_output(
        self,
        name: str,
        device_type: str | OrtDevice = "cpu",
        device_id: int = 0,
        element_type: ElementType | None = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Ask for an output, in memory that the run allocates, or in memory at an address.

        Args:
            name: the output.
            device_type: "cpu" or an OrtDevice.
            device_id: the index of the device.
            element_type: the NumPy type (anything that np.dtype takes) or the number of the memory's type.
            shape: the sizes of the memory.
            buffer_ptr: the address of the memory, which must stay as long as it is bound; None for memory of the run's.

        Raises:
            InvalidArgument: `buffer_ptr` comes without type or shape, or cannot be memory.
            NotImplemented: the device is not the CPU.
        """
        self.native_run = None
        device = device_of(device_type, device_id)
        if not device.is_cpu:
            raise errors.NotImplemented(f"outputs lie on the CPU; {device} is not supported")
        if buffer_ptr is None:
            self._targets[name] = None
        elif element_type is None or shape is None:
            raise InvalidArgument("`element_type` and `shape` are to be provided if pre-allocated memory is provided")
        else:
            self._targets[name] = OrtValue.of(tensor_at(buffer_ptr, element_type, shape, device, writes=True))
        self._results.pop(name, None)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Bind a tensor to an output: runs fill its memory; its shape and type must be those of the result."""
        if not isinstance(ortvalue, OrtValue):
            raise InvalidArgument(f"bind_ortvalue_output takes an OrtValue for {name!r}, got {type(ortvalue).__name__}")
        self.native_run = None
        self._targets[name] = ortvalue
        self._results.pop(name, None)

    def synchronize_inputs(self) -> None:
        """Wait for copies of inputs: there are none on the CPU."""

    def synchronize_outputs(self) -> None:
        """Wait for copies of outputs: there are none on the CPU."""

    def get_outputs(self) -> list[OrtValue]:
        """Return the outputs in the order in which they were bound, as the last run left them."""
        return [self._results.get(name) or target or OrtValue.of(None) for name, target in self._targets.items()]

    def get_outputs_as_ortvaluevector(self) -> OrtValueVector:
        """Return the outputs as `get_outputs` does, as a vector."""
        return OrtValueVector(self.get_outputs())

    def copy_outputs_to_cpu(self) -> list[OnnxValue]:
        """Return a copy of each output: an array, or a list or dict (hence Any)."""
        return [_copied(value.value) for value in self.get_outputs()]

    def clear_binding_inputs(self) -> None:
        """Forget the inputs."""
        self.native_run = None
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forget the outputs."""
        self.native_run = None
        self._targets.clear()
        self._results.clear()

    @property
    def bound_inputs(self) -> Mapping[str, OrtValue]:
        """Input name -> the value bound to it."""
        return self._inputs

    @property
    def bound_outputs(self) -> Mapping[str, OrtValue | None]:
        """Output name -> the tensor to fill, or None for memory of the run's."""
        return self._targets

    def store(self, results: Mapping[str, OrtValue]) -> None:
        """Keep what a run computed, by the outputs' names."""
        self._results = dict(results)

    def _check_input(self, name: str) -> None:
        if name not in self._known:
            raise InvalidArgument(f"Failed to find input name in the model: {name!r}; its inputs are {self._known}")


def _copied(value: OnnxValue) -> OnnxValue:
    if isinstance(value, np.ndarray):
        copy: Array = value.copy()
        return copy
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return {key: _copied(item) for key, item in value.items()} if isinstance(value, dict) else value
