"""Run kernels on every instruction set level that this machine has."""

from collections.abc import Callable, Sequence

import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target, available_levels, host_target
from sardonyx.dtypes import Array


@pytest.fixture(scope="module", params=available_levels())
def target(request: pytest.FixtureRequest) -> Target:
    """Each level of this machine in turn."""
    return host_target(request.param)


@pytest.fixture
def run() -> Callable[..., None]:
    """Compile a module and call one of its kernels."""

    def compile_and_call(
        module: Module, symbol: str, arrays: Sequence[Array], params: Sequence[int | float] = (), begin: int = 0, end: int = 1
    ) -> None:
        engine = Engine(module.target)
        engine.add(module)
        call(engine, symbol, arrays, params, begin, end)

    return compile_and_call
