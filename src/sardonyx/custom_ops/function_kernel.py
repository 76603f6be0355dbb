"""A Python function as the kernel of one node: inputs that cannot be written to, and outputs that are what was declared."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sardonyx.custom_ops.definition import Site
from sardonyx.dtypes import Array, DataType, OnnxValue
from sardonyx.errors import InvalidArgument, RuntimeException, SardonyxError
from sardonyx.ir import TensorType

__all__ = ["DeviceFunctionKernel", "FunctionKernel"]


class FunctionKernel:
    """Calls a function with the inputs of a node; as safe in several threads as the function is."""

    def __init__(self, label: str, function: Callable[..., object], site: Site) -> None:
        """Make the kernel of `site`.

        Args:
            label: what messages call the operator.
            function: takes the inputs; returns an array, or a tuple where the node has several outputs.
            site: the node.
        """
        self._label, self._function = label, function
        self._names, self._types = site.output_names, site.output_types

    def compute(self, inputs: Sequence[OnnxValue]) -> list[OnnxValue]:
        """Call the function and check what it returns.

        Raises:
            InvalidArgument: the function raised a ValueError, whose text stays.
            RuntimeException: it returned other outputs than declared.
        """
        try:
            result = self._function(*map(_read_only, inputs))
        except SardonyxError:
            raise
        except ValueError as error:
            raise InvalidArgument(str(error)) from error
        results = list(result) if isinstance(result, tuple) else [result]
        if len(results) < len(self._names) or (len(results) > len(self._names) and not isinstance(result, tuple)):
            raise RuntimeException(f"{self._label} returned {len(results)} outputs; the node has {len(self._names)}")
        return [self._checked(index, item) for index, item in enumerate(results[: len(self._names)])]

    def _checked(self, index: int, item: object) -> OnnxValue:
        """Return an output as the runtime takes it: an array, or what a list or None is."""
        if item is None and not self._names[index]:
            return None
        declared = self._types[index]
        if isinstance(declared, TensorType) and (isinstance(item, list) or _is_no_array(item, declared)):
            what = "None" if item is None else f"a {type(item).__name__}"
            raise RuntimeException(
                f"{self._label} returned {what} for output {index} {self._names[index]!r}, which is declared as a tensor of "
                f"{declared.dtype}; return a NumPy array"
            )
        if isinstance(item, list):
            return [_array(element) for element in item]
        array = _array(item)
        if isinstance(declared, TensorType):
            self._check(index, array, declared)
        return array

    def _check(self, index: int, array: Array, declared: TensorType) -> None:
        place = f"output {index} {self._names[index]!r}"
        try:
            dtype = DataType.from_numpy(array.dtype)
        except KeyError:
            raise RuntimeException(f"{self._label} returned {array.dtype} for {place}, which no tensor holds") from None
        if dtype is not declared.dtype:
            raise RuntimeException(
                f"{self._label} returned elements of {dtype} for {place}, which is declared as {declared.dtype}; return "
                f"array.astype({str(declared.dtype.numpy)!r}), or change outputs=… of the operator"
            )
        if not declared.allows(array.shape):
            shape = ", ".join(str(dim) if isinstance(dim, int) else "?" for dim in declared.shape or ())
            raise RuntimeException(
                f"{self._label} returned the shape {list(array.shape)} for {place}, which is declared as [{shape}]; change the "
                "function, or what shape=… of the operator says"
            )


class DeviceFunctionKernel:
    """Calls a function with tensors of a device's memory, which are passed as they are."""

    def __init__(self, label: str, function: Callable[..., object], site: Site) -> None:
        """Make the kernel of `site`; arguments are those of `FunctionKernel`."""
        self._label, self._function, self._count = label, function, len(site.output_names)

    def compute(self, inputs: Sequence[OnnxValue]) -> list[OnnxValue]:
        """Call the function.

        Raises:
            RuntimeException: it returned another number of outputs than the node has.
        """
        result = self._function(*inputs)
        results = list(result) if isinstance(result, tuple) else [result]
        if len(results) != self._count:
            raise RuntimeException(f"{self._label} returned {len(results)} outputs; the node has {self._count}")
        return results


def _read_only(value: object) -> object:
    """Return an input that the function cannot change: it may be the caller's, or a constant of the model."""
    if isinstance(value, np.ndarray):
        view = value.view()
        view.flags.writeable = False
        return view
    return list(value) if isinstance(value, list) else value


def _is_no_array(item: object, declared: TensorType) -> bool:
    """Return whether NumPy can only wrap what was returned for a tensor of numbers."""
    return (
        declared.dtype is not DataType.STRING and not isinstance(item, (np.ndarray, str, bytes)) and _array(item).dtype.kind == "O"
    )


def _array(item: object) -> Array:
    array = np.asarray(item)
    return array.astype(object) if array.dtype.kind in "SU" else array
