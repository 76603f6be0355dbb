"""`OrtValueVector`: a list of OrtValues, as onnxruntime's bindings hand it out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sardonyx.arguments import as_list
from sardonyx.dtypes import Array, ElementType
from sardonyx.errors import InvalidArgument
from sardonyx.values.addresses import tensor_at
from sardonyx.values.device import OrtDevice
from sardonyx.values.ort_value import OrtValue

__all__ = ["OrtValueVector"]


class OrtValueVector:
    """A list of values."""

    def __init__(self, values: Sequence[OrtValue] = ()) -> None:
        """Make a list of `values`."""
        self._values = as_list("values", values)

    def push_back(self, value: OrtValue | object) -> None:
        """Append a value, or a tensor that shares the memory of a DLPack capsule."""
        self._values.append(OrtValue(value) if isinstance(value, OrtValue) else OrtValue.from_dlpack(value))

    def push_back_batch(
        self,
        tensors: Sequence[Any],
        data_ptrs: Sequence[int],
        element_types: Sequence[ElementType],
        shapes: Sequence[Sequence[int]],
        devices: Sequence[OrtDevice],
    ) -> None:
        """Append tensors of the host's memory by address; each of `tensors` is kept until its value is gone.

        Args:
            tensors: the owners of the memory (Any: tensors of other packages).
            data_ptrs: the address of each.
            element_types: the NumPy type of each, or its number in TensorProto.DataType.
            shapes: the sizes of each.
            devices: the device of each.

        Raises:
            InvalidArgument: the lists have different lengths, or an address is 0.
        """
        if len({len(tensors), len(data_ptrs), len(element_types), len(shapes), len(devices)}) > 1:
            raise InvalidArgument("push_back_batch takes as many tensors as addresses, types, shapes and devices")
        for owner, address, dtype, shape, device in zip(tensors, data_ptrs, element_types, shapes, devices, strict=True):
            self._values.append(OrtValue.of(tensor_at(address, dtype, shape, device, owner)))

    def reserve(self, count: int) -> None:
        """Accept a number of values that are to come; lists grow by themselves."""

    def shrink_to_fit(self) -> None:
        """Accept that no more values are to come; lists shrink by themselves."""

    def element_type_at(self, index: int) -> int:
        """Return the number of the element type at `index` in TensorProto.DataType."""
        return self[index].element_type()

    def bool_tensor_indices(self) -> list[int]:
        """Return the indices of the tensors of bool."""
        return [index for index, value in enumerate(self._values) if value.data_type() == "tensor(bool)"]

    def dlpack_at(self, index: int) -> object:
        """Return a DLPack capsule of the tensor at `index`."""
        return self[index].to_dlpack()

    def to_dlpacks(self, to_tensor: Callable[[object], object] | None) -> list[object]:
        """Return for each tensor what `to_tensor` makes of its DLPack capsule, or the capsule."""
        capsules = [value.to_dlpack() for value in self._values]
        return capsules if to_tensor is None else [to_tensor(capsule) for capsule in capsules]

    def to_numpy(self) -> list[Array]:
        """Return each tensor as an array."""
        return [value.numpy() for value in self._values]

    def __getitem__(self, index: int) -> OrtValue:
        if not 0 <= index < len(self._values):
            raise IndexError(f"index {index} of {len(self._values)} values")
        return self._values[index]

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[OrtValue]:
        return iter(self._values)

    def __repr__(self) -> str:
        return f"OrtValueVector({self._values!r})"
