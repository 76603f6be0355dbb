"""Transposes through operators that compute element by element.

    Relu(Transpose(x))                     becomes      Transpose(Relu(x))
    Add(Transpose(x), Transpose(y))        becomes      Transpose(Add(x, y))
    Add(Transpose(x), constant)            becomes      Transpose(Add(x, transposed constant))

Left alone: broadcasting to a rank higher than the transpose's, and other inputs than the first that have more than one element
where the operator takes them as they are.
"""

from __future__ import annotations

from collections.abc import Mapping

from sardonyx.ir import Node
from sardonyx.ops.views.binary import Broadcast
from sardonyx.optimize.transposes.edit import Edit, is_neutral
from sardonyx.optimize.transposes.handler import Handler, all_inputs
from sardonyx.optimize.transposes.permutation import Permutation

__all__ = ["ELEMENTWISE", "push_broadcast", "push_first", "push_simple"]

_SIMPLE = (
    "Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Cast Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish Identity "
    "IsInf IsNaN LeakyRelu Log Mish Neg Not Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Swish "
    "Tan Tanh ThresholdedRelu"
).split()
_BROADCAST = (
    "Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mod Mul Or "
    "PRelu Pow Sub Sum Where Xor"
).split()
_FIRST_INPUT = ("CastLike", "Clip")


def push_first(edit: Edit, node: Node, permutation: Permutation) -> bool:
    """Push where the first input carries the layout; the others stay as they are."""
    edit.bring_whole(node, 0, permutation)
    edit.put_behind(node, node.outputs[0], permutation)
    return True


def push_simple(edit: Edit, node: Node, permutation: Permutation) -> bool:
    """Push as `push_first` does, where the other inputs are of one element."""
    return all(is_neutral(value) for value in node.inputs[1:]) and push_first(edit, node, permutation)


def push_broadcast(edit: Edit, node: Node, permutation: Permutation) -> bool:
    """Push where all inputs carry the layout, those of a lower rank too."""
    rank, ranks = len(permutation), [len(value.shape) for value in node.inputs if value is not None and value.shape is not None]
    out = node.outputs[0].shape
    if out is None or len(out) != rank or len(ranks) < sum(value is not None for value in node.inputs) or max(ranks) > rank:
        return False
    view = Broadcast.of(node)
    if not view.is_numpy and (view.is_legacy or len(set(ranks)) > 1):
        return False
    for index in range(len(node.inputs)):
        edit.bring(node, index, permutation)
    edit.put_behind(node, node.outputs[0], permutation)
    return True


ELEMENTWISE: Mapping[str, Handler] = {
    **dict.fromkeys(_SIMPLE, Handler(push_simple)),
    **dict.fromkeys(_FIRST_INPUT, Handler(push_first)),
    **dict.fromkeys(_BROADCAST, Handler(push_broadcast, all_inputs)),
}
"""Operator of ai.onnx -> how a transpose is pushed through it."""
