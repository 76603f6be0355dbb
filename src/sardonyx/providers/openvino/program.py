"""A partition compiled by OpenVINO: its tensors are views of the runtime's arrays, in both directions."""

from __future__ import annotations

import collections
import contextlib
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx.cancellation import check_cancelled, current_cancellation
from sardonyx.dtypes import Array, OnnxValue
from sardonyx.errors import EPFail, SardonyxError
from sardonyx.ir import Expr
from sardonyx.ir.shape import evaluate, symbols_in
from sardonyx.provider import Bound, DeviceBuffer, TensorSpec
from sardonyx.providers.openvino.oracle import first_line
from sardonyx.providers.openvino.package import openvino_package
from sardonyx.providers.openvino.tensors import Signature, as_tensor

__all__ = ["OpenVinoProgram"]

_PATIENCE_MS = 30
"""How long to wait for an inference without asking whether the run was ended."""


class OpenVinoProgram:
    """Runs a compiled model; any number of threads may bind and run it at a time, each on an inference request of its own."""

    def __init__(self, name: str, compiled: Any, inputs: Signature, outputs: Signature, weights: Sequence[Array] = ()) -> None:
        """Make a program of an openvino.CompiledModel, Any so that naming it imports nothing, which refers to `weights`."""
        self._name, self.compiled, self._weights = name, compiled, weights
        self._inputs, self._outputs = inputs, outputs
        solvable = {dim.name for _, shape in inputs for dim in shape if isinstance(dim, Expr) and dim.name is not None}
        self.makes_outputs = not {symbol for _, shape in outputs for dim in shape for symbol in symbols_in(dim)} <= solvable
        self._idle: collections.deque[object] = collections.deque(maxlen=8)

    def bind(self, shapes: tuple[tuple[int, ...] | None, ...]) -> Bound:
        """Fix the sizes of the outputs."""
        if self.makes_outputs:
            return Bound((None,) * len(self._outputs))
        pairs = [pair for item, given in zip(self._inputs, shapes, strict=True) for pair in zip(item[1], given or (), strict=True)]
        sizes = {dim.name: size for dim, size in pairs if isinstance(dim, Expr) and dim.name is not None}
        return Bound(tuple(TensorSpec(dtype, tuple(evaluate(dim, sizes) for dim in shape)) for dtype, shape in self._outputs))

    def run(
        self, bound: Bound, inputs: Sequence[OnnxValue], outputs: Sequence[OnnxValue], scratch: DeviceBuffer
    ) -> Sequence[OnnxValue]:
        """Infer, without the GIL; raises EPFail with what OpenVINO says."""
        check_cancelled()
        dense = [np.require(array, requirements="C") for array in inputs]  # a tensor does not keep its memory alive
        try:
            request = self._request()
            for index, array in enumerate(dense):
                request.set_input_tensor(index, as_tensor(array))
            made = [self._empty(index) if self.makes_outputs else as_tensor(outputs[index]) for index in range(len(self._outputs))]
            for index, tensor in enumerate(made):
                request.set_output_tensor(index, tensor)
            _infer(request)
        except SardonyxError:  # the run was ended
            raise
        except RuntimeError as error:
            raise EPFail(f"OpenVINO failed to run partition {self._name}: {first_line(error)}") from error
        if not self.makes_outputs and [tensor.size for tensor in made] != [array.size for array in outputs]:
            raise EPFail(f"OpenVINO gave {made} for the outputs {[array.shape for array in outputs]} of partition {self._name}")
        self._idle.append(request)
        dtypes = [dtype.numpy for dtype, _ in self._outputs]
        return [one.data.view(dtype) for one, dtype in zip(made, dtypes, strict=True)] if self.makes_outputs else outputs

    def _request(self) -> Any:
        try:
            return self._idle.pop()
        except IndexError:
            return self.compiled.create_infer_request()

    def _empty(self, index: int) -> Any:
        """Return a tensor that OpenVINO gives the sizes that it does not know yet."""
        openvino = openvino_package()
        port = self.compiled.output(index)
        return openvino.Tensor(port.element_type, port.partial_shape.get_min_shape())


def _infer(request: Any) -> None:
    """Infer; OpenVINO is told to stop where the run is ended, or a signal's handler raises, which only the main thread hears."""
    if current_cancellation() is None and threading.current_thread() is not threading.main_thread():
        request.infer(share_outputs=True)  # else it copies what it gives out
        return
    request.start_async()
    try:
        while not request.wait_for(_PATIENCE_MS):
            check_cancelled()
    except BaseException:
        request.cancel()
        with contextlib.suppress(RuntimeError):  # that it was cancelled
            request.wait()  # it writes into arrays of ours until then
        raise
