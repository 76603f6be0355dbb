"""A partition compiled by OpenVINO: its tensors are views of the runtime's arrays, in both directions."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import EPFail
from sardonyx.ir import Expr
from sardonyx.ir.shape import evaluate, symbols_in
from sardonyx.provider import Bound, TensorSpec, check_cancelled
from sardonyx.providers.openvino.oracle import first_line
from sardonyx.providers.openvino.tensors import Signature, as_tensor

__all__ = ["OpenVinoProgram"]


class OpenVinoProgram:
    """Runs a compiled model; any number of threads may bind and run it at a time, each on an inference request of its own."""

    def __init__(self, name: str, compiled: Any, inputs: Signature, outputs: Signature, weights: Sequence[Array] = ()) -> None:
        """Make a program of an openvino.CompiledModel, which is Any so that naming it imports nothing.

        Where sizes of `outputs` do not follow from those of `inputs`, OpenVINO makes them; `weights` are memory that it refers to.
        """
        self._name, self.compiled, self._weights = name, compiled, weights
        self._inputs, self._outputs = inputs, outputs
        solvable = {dim.name for _, shape in inputs for dim in shape if isinstance(dim, Expr) and dim.name is not None}
        self.makes_outputs = not {symbol for _, shape in outputs for dim in shape for symbol in symbols_in(dim)} <= solvable
        self._idle: collections.deque[Any] = collections.deque(maxlen=8)

    def bind(self, shapes: tuple[tuple[int, ...] | None, ...]) -> Bound:
        """Fix the sizes of the outputs."""
        if self.makes_outputs:
            return Bound((None,) * len(self._outputs))
        sizes: dict[str, int] = {}
        for (_, declared), given in zip(self._inputs, shapes, strict=True):
            pairs = zip(declared, given or (), strict=True)
            sizes.update((dim.name, size) for dim, size in pairs if isinstance(dim, Expr) and dim.name is not None)
        return Bound(tuple(TensorSpec(dtype, tuple(evaluate(dim, sizes) for dim in shape)) for dtype, shape in self._outputs))

    def run(self, bound: Bound, inputs: Sequence[Any], outputs: Sequence[Any], scratch: Any) -> Sequence[Any]:
        """Infer, without the GIL; raises EPFail with what OpenVINO says."""
        check_cancelled()
        try:
            request = self._request()
            dense = [np.require(array, requirements="C") for array in inputs]  # a tensor does not keep its memory alive
            for index, array in enumerate(dense):
                request.set_input_tensor(index, as_tensor(array))
            made = [self._empty(index) for index in range(len(self._outputs))] if self.makes_outputs else []
            for index, tensor in enumerate(made or map(as_tensor, outputs)):
                request.set_output_tensor(index, tensor)
            request.infer()
        except RuntimeError as error:
            raise EPFail(f"OpenVINO failed to run partition {self._name}: {first_line(error)}") from error
        self._idle.append(request)
        return [tensor.data.view(dtype.numpy) for tensor, (dtype, _) in zip(made, self._outputs, strict=True)] if made else outputs

    def _request(self) -> Any:
        try:
            return self._idle.pop()
        except IndexError:
            return self.compiled.create_infer_request()

    def _empty(self, index: int) -> Any:
        """A tensor that OpenVINO gives the sizes that it does not know yet."""
        import openvino

        port = self.compiled.output(index)
        return openvino.Tensor(port.element_type, port.partial_shape.get_min_shape())
