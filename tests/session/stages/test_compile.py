"""The last stage: something that runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.models import model
from support.providers import FusingProvider
from support.sessions import options_of

from sardonyx.errors import EPFail, Fail, ModelRequiresCompilation
from sardonyx.formats.onnx import load as load_file
from sardonyx.ir import Graph
from sardonyx.provider import Body, Partition, Program, Provider
from sardonyx.providers.cpu.provider import create
from sardonyx.providers.reference.provider import ReferenceProvider
from sardonyx.session.options import SessionOptions
from sardonyx.session.settings.settings import Settings, read_settings
from sardonyx.session.stages.assign import Assigned, assign_model
from sardonyx.session.stages.compile import compile_model
from sardonyx.session.stages.load import load
from sardonyx.session.stages.prepare import prepare
from sardonyx.session.stages.provider_list import ProviderList
from sardonyx.session.stages.source import Source

TEXT = "graph(x: float[2]) -> (y: float[2]) {\na = Exp(x)\ny = Neg(a)\n}"


def _assigned(options: SessionOptions, *providers: Provider, text: str = TEXT) -> tuple[Assigned, Settings]:
    settings, listed = read_settings(options), ProviderList.of([*providers, ReferenceProvider()])
    return assign_model(prepare(load(Source(model(text)), settings.load), settings, listed), settings, listed), settings


def test_a_compiled_model_runs() -> None:
    """With a body inside as without."""
    text = """graph(x: float[2], n: int64[], go: bool[]) -> (y: float[2]) {
        y = Loop(n, go, x) {body = graph(i: int64[], c: bool[], v: float[2]) -> (c, w) {
            w = Add(v, x)
        }}
    }"""
    assigned, settings = _assigned(SessionOptions(), text=text)
    executor = compile_model(assigned, settings, {}).executor
    assert executor.run([np.float32([1, 2]), np.int64(3), np.array(True)])[0].tolist() == [4, 8]


def test_the_model_before_is_taken_over() -> None:
    """It is taken apart in the end."""
    assigned, settings = _assigned(SessionOptions())
    compile_model(assigned, settings, {})
    with pytest.raises(Fail, match="was taken over by the stage 'compile_model'"):
        compile_model(assigned, settings, {})


def test_a_provider_that_fails_is_named_with_its_nodes() -> None:
    """And with what it raised."""

    class Liar(FusingProvider):
        def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> Program:
            raise MemoryError("too big")

    assigned, settings = _assigned(SessionOptions(), Liar({"Exp"}, "Liar"))
    with pytest.raises(EPFail, match="^model .*Liar claimed 1 nodes, beginning with .*Exp.* MemoryError: too big") as caught:
        compile_model(assigned, settings, {})
    assert caught.value.provider == "Liar"


def test_what_is_not_compiled_may_be_refused() -> None:
    """Where its provider could have kept it."""
    assigned, settings = _assigned(options_of(session__disable_model_compile="1"), create({}))
    with pytest.raises(ModelRequiresCompilation, match="CPUExecutionProvider would compile"):
        compile_model(assigned, settings, {})


def test_programs_are_written_as_a_model(tmp_path: Path) -> None:
    """Where the settings ask for it, with the inputs' defaults."""
    path = tmp_path / "c.onnx"
    assigned, settings = _assigned(options_of(ep__context_enable="1", ep__context_file_path=str(path)), create({}))
    compile_model(assigned, settings, {"x": np.float32([1, 2])})
    written = load_file(path)
    assert [node.op_type for node in written.graph] == ["EPContext"]
    assert list(written.graph.initializers) == ["x"]
