"""OrtCustomOp: the structure by which a library describes one operator, read as far as its version says that it goes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from sardonyx.custom_ops.abi.cpp_exceptions import protect
from sardonyx.custom_ops.abi.entry import INT32, POINTER, SIZE
from sardonyx.custom_ops.abi.names import API_VERSION
from sardonyx.custom_ops.definition import NEWEST, Arity, Parameter
from sardonyx.dtypes import DataType
from sardonyx.errors import Fail

__all__ = ["CustomOp"]

_FIELDS: tuple[tuple[str, int, Any, tuple[Any, ...]], ...] = (
    ("CreateKernel", 1, POINTER, (POINTER, POINTER, POINTER)),
    ("GetName", 1, ctypes.c_char_p, (POINTER,)),
    ("GetExecutionProviderType", 1, ctypes.c_char_p, (POINTER,)),
    ("GetInputType", 1, INT32, (POINTER, SIZE)),
    ("GetInputTypeCount", 1, SIZE, (POINTER,)),
    ("GetOutputType", 1, INT32, (POINTER, SIZE)),
    ("GetOutputTypeCount", 1, SIZE, (POINTER,)),
    ("KernelCompute", 1, None, (POINTER, POINTER)),
    ("KernelDestroy", 1, None, (POINTER,)),
    ("GetInputCharacteristic", 8, INT32, (POINTER, SIZE)),
    ("GetOutputCharacteristic", 8, INT32, (POINTER, SIZE)),
    ("GetInputMemoryType", 13, INT32, (POINTER, SIZE)),
    ("GetVariadicInputMinArity", 14, INT32, (POINTER,)),
    ("GetVariadicInputHomogeneity", 14, INT32, (POINTER,)),
    ("GetVariadicOutputMinArity", 14, INT32, (POINTER,)),
    ("GetVariadicOutputHomogeneity", 14, INT32, (POINTER,)),
    ("CreateKernelV2", 16, POINTER, (POINTER, POINTER, POINTER, POINTER)),
    ("KernelComputeV2", 16, POINTER, (POINTER, POINTER)),
    ("InferOutputShapeFn", 17, POINTER, (POINTER, POINTER)),
    ("GetStartVersion", 17, INT32, (POINTER,)),
    ("GetEndVersion", 17, INT32, (POINTER,)),
    ("GetMayInplace", 18, SIZE, (POINTER, POINTER)),
    ("ReleaseMayInplace", 18, None, (POINTER, POINTER)),
    ("GetAliasMap", 18, SIZE, (POINTER, POINTER)),
    ("ReleaseAliasMap", 18, None, (POINTER, POINTER)),
)
"""Callback, the version that added it, its result and its arguments; in the order of the structure, behind the version."""


class CustomOp:
    """An operator of a library: its callbacks, those of them that are there."""

    def __init__(self, address: int, owner: str) -> None:
        """Read the structure at `address`, which the library `owner` keeps.

        Raises:
            Fail: it is for a newer version of the interface, or lacks what it needs.
        """
        self.address = address
        self.owner = owner
        self.interface = ctypes.c_uint32.from_address(address).value
        if not 1 <= self.interface <= API_VERSION:
            raise Fail(f"{owner}: an operator is for version {self.interface} of the C interface; 1 to {API_VERSION} are provided")
        self._callbacks: dict[str, Callable[..., Any]] = {}
        self._addresses: dict[str, int] = {}
        for index, (name, since, result, arguments) in enumerate(_FIELDS):
            pointer = ctypes.c_uint64.from_address(address + 8 + 8 * index).value if since <= self.interface else 0
            if pointer:
                self._addresses[name] = pointer
                self._callbacks[name] = protect(pointer, result, arguments, f"{name} of {owner}")
        self.name = (self.call("GetName") or b"").decode("utf-8", "replace")
        if not self.name:
            raise Fail(f"{owner}: an operator of version {self.interface} has no name")
        for names in (("CreateKernel", "CreateKernelV2"), ("KernelCompute", "KernelComputeV2")):
            if not any(map(self.has, names)):
                raise Fail(f"{owner}: the operator {self.name} has neither {names[0]} nor {names[1]}")

    def has(self, name: str) -> bool:
        """Return whether the operator has a callback of this name."""
        return name in self._callbacks

    def callback(self, name: str) -> Any:
        """Return a callback as ctypes calls it; raises KeyError where it is not there."""
        return self._callbacks[name]

    def address_of(self, name: str) -> int:
        """Return the address of a callback; raises KeyError where it is not there."""
        return self._addresses[name]

    def call(self, name: str, *arguments: object, default: object = None) -> Any:
        """Return what a callback that takes the operator first says, or `default` where it is not there."""
        found = self._callbacks.get(name)
        return default if found is None else found(self.address, *arguments)

    @property
    def provider(self) -> str:
        """The execution provider that its kernels are for; "" for any."""
        return (self.call("GetExecutionProviderType") or b"").decode("utf-8", "replace")

    @property
    def versions(self) -> tuple[int, int]:
        """The first and the last version of the domain in which it exists."""
        return max(self.call("GetStartVersion", default=1), 1), min(self.call("GetEndVersion", default=NEWEST), NEWEST)

    def inputs(self) -> tuple[Parameter, ...]:
        """Return its formal inputs; raises Fail for a type or an arity that there is not."""
        return self._parameters("Input")

    def outputs(self) -> tuple[Parameter, ...]:
        """Return its formal outputs; raises Fail for a type or an arity that there is not."""
        return self._parameters("Output")

    def _parameters(self, kind: str) -> tuple[Parameter, ...]:
        count = self.call(f"Get{kind}TypeCount", default=0)
        least = self.call(f"GetVariadic{kind}MinArity", default=1)
        homogeneous = bool(self.call(f"GetVariadic{kind}Homogeneity", default=1))
        try:
            return tuple(
                Parameter(
                    DataType(self.call(f"Get{kind}Type", index, default=0)),
                    Arity(self.call(f"Get{kind}Characteristic", index, default=0)),
                    homogeneous,
                    least,
                )
                for index in range(count)
            )
        except ValueError as error:
            raise Fail(f"{self.owner}: the operator {self.name} describes its {kind.lower()}s wrongly: {error}") from error
