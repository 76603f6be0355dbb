"""Products of rows and weights, as recurrent cells have many of: of real numbers, or of rows rounded to 8 bits and integers."""

from __future__ import annotations

from sardonyx.dtypes import Array, DataType
from sardonyx.formats.tflite.builder import GraphBuilder
from sardonyx.formats.tflite.operator import Operator, Options
from sardonyx.formats.tflite.operators.conv import integer_weights
from sardonyx.formats.tflite.quantize import dynamic_product
from sardonyx.ir import Value

__all__ = ["Products"]


class Products:
    """The weights of an operator, and what multiplies by them."""

    def __init__(self, op: Operator, options: Options) -> None:
        """Take the operator, whose first input is real numbers or integers that stand for such, and its options."""
        self._op = op
        self._asymmetric = options.flag("asymmetric_quantize_inputs")
        self._integers: dict[Value, tuple[Value, Array]] = {}
        self._joined: dict[Value, tuple[Value, Value, int]] = {}

    @property
    def are_rounded(self) -> bool:
        """Whether some of the weights are integers, by which rows are multiplied that are rounded in each run."""
        return bool(self._integers)

    def weights(self, index: int) -> Value:
        """Return an input of weights (M, K) as real numbers, and note its integers."""
        op, value = self._op, self._op.real(index)
        if op.is_hybrid(index) and op.info(index).dtype is DataType.INT8 and len(op.scales(index)) == 1:
            self._integers[value] = integer_weights(op, index, (1, 0)), op.scales(index)
        return value

    def opposite(self, weights: Value) -> Value:
        """Return weights of the other sign."""
        value = self._op.build.node("Neg", weights)
        if weights in self._integers:
            columns, scales = self._integers[weights]
            self._integers[value] = columns, -scales
        return value

    def joined(self, first: Value, second: Value, width: int) -> Value:
        """Return weights of which the second ones have further columns, behind the `width` of the first."""
        value = self._op.build.node("Concat", first, second, axis=1)
        self._joined[value] = first, second, width
        return value

    def of(self, build: GraphBuilder, rows: Value, weights: Value) -> Value:
        """Return the product of rows (N, K) and weights (M, K), which a method of this object returned."""
        found = self._integers.get(weights)
        if weights in self._joined and self.are_rounded:
            first, second, width = self._joined[weights]
            front = build.node("Slice", rows, build.ints(0), build.ints(width), build.ints(-1))
            behind = build.node("Slice", rows, build.ints(width), build.ints(1 << 31), build.ints(-1))
            return build.node("Add", self.of(build, front, first), self.of(build, behind, second))
        if found is None:
            return build.node("Gemm", rows, weights, transB=1)
        return dynamic_product(build, rows, *found, asymmetric=self._asymmetric)
