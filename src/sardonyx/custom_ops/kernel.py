"""Kernels of compiled libraries: made once per node, called once per run."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx.custom_ops.abi.custom_op import CustomOp
from sardonyx.custom_ops.abi.frame import Frame
from sardonyx.custom_ops.abi.handles import drop, keep
from sardonyx.custom_ops.abi.node_info import NodeInfo
from sardonyx.custom_ops.abi.statuses import raise_failures, raise_status
from sardonyx.custom_ops.abi.table import Api
from sardonyx.custom_ops.definition import Parameter, Site
from sardonyx.dtypes import Array, DataType
from sardonyx.errors import Fail

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
        self._inputs, self._outputs = inputs, outputs
        self._info = NodeInfo(site, operator.versions[0])
        handle = keep(self._info)
        try:
            kernel = self._create(operator, handle, api)
        except BaseException:
            _destroy(None, None, handle, self._info)
            raise
        self._kernel = ctypes.c_void_p(kernel)
        self._finalizer = weakref.finalize(
            self,
            _destroy,
            operator.callback("KernelDestroy") if operator.has("KernelDestroy") else None,
            kernel,
            handle,
            self._info,
        )
        self._returns_status = operator.has("KernelComputeV2")
        self._function: Any = operator.callback("KernelComputeV2" if self._returns_status else "KernelCompute")
        self._frames: list[Frame] = []
        self._present = tuple(bool(name) for name in site.output_names)

    def _create(self, operator: CustomOp, info: int, api: Api) -> int | None:
        made = ctypes.c_void_p(0)
        if operator.has("CreateKernelV2"):
            status = operator.call("CreateKernelV2", api.api, info, ctypes.addressof(made))
            raise_status(status, self._place)
        else:
            made.value = operator.call("CreateKernel", api.api, info)
        raise_failures(self._place)
        return made.value

    def compute(self, inputs: Sequence[Array | None]) -> list[Array | None]:
        """Call the kernel; see `definition.Kernel`."""
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = Frame(len(self._site.input_names), self._present, self._output_type, self._api.fallbacks)
            weakref.finalize(self, frame.close)
        try:
            frame.enter([array if array is None or array.flags.c_contiguous else np.ascontiguousarray(array) for array in inputs])
            status = self._function(self._kernel, frame.address)
            if status:
                raise_status(status, self._place)
            raise_failures(self._place)
            return frame.leave()
        finally:
            frame.drop()
            self._frames.append(frame)

    def _output_type(self, index: int, given: Sequence[DataType | None]) -> DataType:
        """The element type of an output: declared by the library, else known of the node, else that of the first open input."""
        formal = self._outputs[min(index, len(self._outputs) - 1)]
        if formal.dtype is not DataType.UNDEFINED:
            return formal.dtype
        known = self._site.output_types[index]
        if known is not None:
            return known.dtype
        for position, dtype in enumerate(given):
            if dtype is not None and self._inputs[min(position, len(self._inputs) - 1)].dtype is DataType.UNDEFINED:
                return dtype
        raise Fail(f"the type of output {index} is open: declare it in the model")


def _destroy(function: Any, kernel: int | None, handle: int, info: NodeInfo) -> None:
    """Give back a kernel and what was made for it."""
    if function is not None and kernel:
        function(kernel)
    drop(handle)
    info.close()
