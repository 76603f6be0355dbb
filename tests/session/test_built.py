"""What a build makes."""

import numpy as np
from support.models import model
from support.sessions import built_of

from sardonyx.codegen.target import host_target
from sardonyx.providers.cpu.provider import CpuProvider
from sardonyx.providers.reference.provider import ReferenceProvider


def test_what_is_built_runs_and_says_what_was_done() -> None:
    """The executor computes, and the report is had when it is asked for."""
    built = built_of(model("graph(x: float[2]) -> (y: float[2]) { a = Identity(x)\n y = Relu(a) }"), ReferenceProvider())
    (result,) = built.executor.run([np.array([-1, 2], np.float32)])
    assert np.asarray(result).tolist() == [0, 2]
    assert built.report().nodes_after == 1


def test_what_is_built_says_the_precisions_of_its_products() -> None:
    """As its programs say them; a provider that says none leaves them out."""
    text = model("graph(x: float[2, 2]) -> (y: float[2, 2]) { a = MatMul(x, x)\n y = Tanh(a) }")
    built = built_of(text, CpuProvider(host_target(), 1))
    assert [(place.op_type, place.precision) for place in built.explain()] == [("MatMul", "float32"), ("Tanh", "")]
    assert {place.precision for place in built_of(text, ReferenceProvider()).explain()} == {""}
