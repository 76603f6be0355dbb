"""A partition compiled by OpenVINO: its tensors are views of the runtime's arrays, in both directions."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any

from sardonyx.dtypes import Array
from sardonyx.errors import EPFail, InvalidArgument
from sardonyx.ir import Expr
from sardonyx.ir.shape import evaluate, symbols_in
from sardonyx.provider import Bound, TensorSpec, check_cancelled
from sardonyx.providers.openvino.convert import Signature, as_tensor
from sardonyx.providers.openvino.oracle import first_line

__all__ = ["OpenVinoProgram"]


class OpenVinoProgram:
    """Runs a compiled model; any number of threads may bind and run it at a time, each on an inference request of its own."""

    def __init__(self, name: str, compiled: Any, inputs: Signature, outputs: Signature, weights: Sequence[Array] = ()) -> None:
        """Make a program.

        Args:
            name: the partition's, for messages.
            compiled: an openvino.CompiledModel; Any, so that naming the type does not import openvino.
            inputs: the partition's inputs, as the model has them, in order.
            outputs: its outputs; where their sizes do not follow from those of the inputs, OpenVINO makes them.
            weights: memory that the model refers to, kept alive.
        """
        self._name, self._compiled, self._weights = name, compiled, weights
        self._inputs, self._outputs = inputs, outputs
        solvable = {dim.name for _, shape in inputs for dim in shape if isinstance(dim, Expr) and dim.name is not None}
        needed = {symbol for _, shape in outputs for dim in shape for symbol in symbols_in(dim)}
        self.makes_outputs = not needed <= solvable
        self._idle: collections.deque[Any] = collections.deque(maxlen=8)

    def bind(self, shapes: tuple[tuple[int, ...] | None, ...]) -> Bound:
        """Fix the sizes of the outputs; raises InvalidArgument where an input's rank is not as compiled."""
        if self.makes_outputs:
            return Bound((None,) * len(self._outputs))
        sizes: dict[str, int] = {}
        for index, ((_, declared), given) in enumerate(zip(self._inputs, shapes, strict=True)):
            if given is None or len(given) != len(declared):
                raise InvalidArgument(f"input {index} of {self._name} was compiled with {len(declared)} dimensions, got {given}")
            for dim, size in zip(declared, given, strict=True):
                if isinstance(dim, Expr) and dim.name is not None:
                    sizes.setdefault(dim.name, size)
        return Bound(tuple(TensorSpec(dtype, tuple(evaluate(dim, sizes) for dim in shape)) for dtype, shape in self._outputs))

    def run(self, bound: Bound, inputs: Sequence[Any], outputs: Sequence[Any], scratch: Any) -> Sequence[Any]:
        """Infer, without the GIL; raises EPFail with what OpenVINO says."""
        check_cancelled()
        try:
            request = self._take()
            for index, array in enumerate(inputs):
                request.set_input_tensor(index, as_tensor(array))
            made = [self._empty(index) for index in range(len(self._outputs))] if self.makes_outputs else []
            for index, tensor in enumerate(made or map(as_tensor, outputs)):
                request.set_output_tensor(index, tensor)
            request.infer()
        except RuntimeError as error:
            raise EPFail(f"OpenVINO failed to run partition {self._name}: {first_line(error)}") from error
        self._idle.append(request)
        return [self._array(index, tensor) for index, tensor in enumerate(made)] if made else outputs

    def export(self) -> bytes | None:
        """The compiled model in OpenVINO's own format; None where its device has none."""
        try:
            exported: bytes = self._compiled.export_model().getvalue()
        except RuntimeError:
            return None
        return exported

    def _take(self) -> Any:
        try:
            return self._idle.pop()
        except IndexError:
            return self._compiled.create_infer_request()

    def _empty(self, index: int) -> Any:
        """A tensor that OpenVINO gives the sizes that it does not know yet."""
        import openvino

        port = self._compiled.output(index)
        dims = [dim.get_length() if dim.is_static else 0 for dim in port.partial_shape]
        return openvino.Tensor(port.element_type, openvino.Shape(dims))

    def _array(self, index: int, tensor: Any) -> Array:
        dtype = self._outputs[index][0]
        data: Array = tensor.data
        return data if data.dtype == dtype.numpy else data.view(dtype.numpy)
