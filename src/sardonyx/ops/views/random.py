"""Operators that draw numbers."""

from typing import NamedTuple, Self

from sardonyx.ir import Operator
from sardonyx.ops.views.inputs import COMPUTED, Computed, Inputs, no_inputs

__all__ = ["Dropout"]


class Dropout(NamedTuple):
    """Elements that are left out at random in training."""

    is_training: bool | Computed
    """Whether elements are left out: unless `is_test` before opset 7, never then, and as input 2 says from opset 12 on."""
    trains_by_input: bool
    """Whether input 2 says so, as from opset 12 on, and input 1 how many elements."""
    has_flag_mask: bool
    """Whether the second output is of type bool, as from opset 10 on, rather than of the input's type."""

    @classmethod
    def of(cls, node: Operator, inputs: Inputs = no_inputs) -> Self:
        """Read a node whose inputs are as `inputs` says."""
        has_flag_mask = node.version >= 10
        if node.version < 12:
            return cls(node.version < 7 and not node.flag("is_test"), False, has_flag_mask)
        mode = inputs(2)
        if mode is COMPUTED:
            return cls(COMPUTED, True, has_flag_mask)
        return cls(mode is not None and bool(mode.any()), True, has_flag_mask)
