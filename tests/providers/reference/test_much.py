"""Which calls of kernels are made beside the thread of the run."""

from __future__ import annotations

import numpy as np

from sardonyx.providers.reference.much import is_much

MANY = np.zeros(1 << 20, np.float32)
FEW = np.zeros(10, np.float32)


def test_many_elements_are_much() -> None:
    """Read as arrays or in lists; a few are not."""
    assert is_much("Sin", [MANY], {})
    assert is_much("ConcatFromSequence", [[MANY, FEW]], {})
    assert not is_much("Sin", [FEW, None, {}], {})


def test_what_makes_many_of_few_is_much() -> None:
    """By sizes that are fed or attributes; numbers of other operators say nothing, nor those that are not finite."""
    sizes = np.array([1000, 1000])
    assert is_much("Expand", [FEW, sizes], {})
    assert is_much("RandomUniform", [], {"shape": (1000, 1000)})
    assert is_much("Multinomial", [FEW], {"sample_size": 1 << 20})
    assert not is_much("Add", [FEW, sizes], {})
    assert not is_much("Resize", [FEW, np.array([np.inf, np.nan, 2])], {})
