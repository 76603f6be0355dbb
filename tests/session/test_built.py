"""What a build makes."""

import numpy as np
from support.models import model
from support.sessions import built_of

from sardonyx.providers.reference.provider import ReferenceProvider


def test_what_is_built_runs_and_says_what_was_done() -> None:
    """The executor computes, and the report is had when it is asked for."""
    built = built_of(model("graph(x: float[2]) -> (y: float[2]) { a = Identity(x)\n y = Relu(a) }"), ReferenceProvider())
    (result,) = built.executor.run([np.array([-1, 2], np.float32)])
    assert np.asarray(result).tolist() == [0, 2]
    assert built.report().nodes_after == 1
