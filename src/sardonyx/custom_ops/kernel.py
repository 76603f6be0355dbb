"""Kernels of compiled libraries: made once per node, called once per run."""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Sequence
from typing import Any

from sardonyx.custom_ops.abi.chain import Chain, Link
from sardonyx.custom_ops.abi.custom_op import CustomOp
from sardonyx.custom_ops.abi.handles import drop, keep
from sardonyx.custom_ops.abi.node_info import NodeInfo
from sardonyx.custom_ops.abi.statuses import raise_failures, raise_status
from sardonyx.custom_ops.abi.table import Api
from sardonyx.custom_ops.definition import Parameter, Site
from sardonyx.dtypes import Array, DataType
from sardonyx.errors import Fail
from sardonyx.ir import TensorType

__all__ = ["CompiledKernel"]


class CompiledKernel:
    """A kernel that a library made; it is destroyed with this object. Any number of threads may call it."""

    def __init__(self, operator: CustomOp, inputs: Sequence[Parameter], outputs: Sequence[Parameter], site: Site, api: Api) -> None:
        """Have the library make a kernel.

        Args:
            operator: what makes it.
            inputs: the formal inputs of the operator.
            outputs: its formal outputs.
            site: the node that it is for.
            api: what the library is given.

        Raises:
            SardonyxError: what the library says against it.
        """
        self._place = f"{operator.name} of {operator.owner}"
        self._site, self._api, self._operator = site, api, operator
        self._output_type = functools.partial(_output_type, inputs, outputs, site.output_types)  # which does not refer to this
        self._info = NodeInfo(site, operator.versions[0])
        handle = keep(self._info)
        try:
            kernel = self._create(operator, handle, api)
        except BaseException:
            _destroy(None, None, handle, self._info)
            raise
        self._kernel = kernel
        self._finalizer = weakref.finalize(
            self,
            _destroy,
            operator.callback("KernelDestroy") if operator.has("KernelDestroy") else None,
            kernel,
            handle,
            self._info,
        )
        self._returns_status = operator.has("KernelComputeV2")
        self._function = operator.address_of("KernelComputeV2" if self._returns_status else "KernelCompute")
        self._chains: list[Chain] = []

    def _create(self, operator: CustomOp, info: int, api: Api) -> int | None:
        made = ctypes.c_void_p(0)
        if operator.has("CreateKernelV2"):
            status = operator.call("CreateKernelV2", api.api, info, ctypes.addressof(made))
            raise_status(status, self._place)
        else:
            made.value = operator.call("CreateKernel", api.api, info)
        raise_failures(self._place)
        return made.value

    def link(self, inputs: Sequence[int], outputs: Sequence[int], needed: Sequence[int], place: str) -> Link:
        """Return this kernel as part of a chain, with its values numbered, -1 for one that is left out."""
        return Link(
            function=self._function,
            kernel=self._kernel or 0,
            returns_status=self._returns_status,
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            needed=tuple(needed),
            output_type=self._output_type,
            place=f"{place}: {self._place}" if place else self._place,
        )

    def compute(self, inputs: Sequence[Array | None]) -> list[Array | None]:
        """Call the kernel; see `definition.Kernel`."""
        try:
            chain = self._chains.pop()
        except IndexError:
            chain = self._chain()
        try:
            return chain.run(inputs)
        finally:
            self._chains.append(chain)

    def _chain(self) -> Chain:
        count = len(self._site.input_names)
        outputs = range(count, count + len(self._site.output_names))
        given = [place if name else -1 for place, name in zip(outputs, self._site.output_names, strict=True)]
        chain = Chain([self.link(range(count), given, (), "")], range(count), outputs, self._api.run)
        weakref.finalize(self, chain.close)
        return chain


def _output_type(
    inputs: Sequence[Parameter],
    outputs: Sequence[Parameter],
    types: Sequence[TensorType | None],
    index: int,
    given: Sequence[DataType | None],
) -> DataType:
    """Return the element type of an output: declared by the library, known of the node, or that of the first open input."""
    formal = outputs[min(index, len(outputs) - 1)]
    if formal.dtype is not DataType.UNDEFINED:
        return formal.dtype
    known = types[index]
    if known is not None:
        return known.dtype
    for position, dtype in enumerate(given):
        if dtype is not None and inputs[min(position, len(inputs) - 1)].dtype is DataType.UNDEFINED:
            return dtype
    raise Fail(f"the type of output {index} is open: declare it in the model")


def _destroy(function: Any, kernel: int | None, handle: int, info: NodeInfo) -> None:
    """Give back a kernel and what was made for it."""
    if function is not None and kernel:
        function(kernel)
    drop(handle)
    info.close()
