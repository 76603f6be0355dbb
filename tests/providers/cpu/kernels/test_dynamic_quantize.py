"""DynamicQuantizeLinear on the CPU provider."""

import numpy as np
import pytest
from support.cpu_run import LEVELS, assert_same_bits, cpu_session, reference

_BODY = "graph(x: float[n, 7]) -> (y: uint8[n, 7], s: float[], z: uint8[]) {\ny, s, z = DynamicQuantizeLinear(x)\n}"


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("rows", [0, 1, 9, 5000])
def test_it_gives_what_the_reference_gives(isa: str, rows: int) -> None:
    """Numbers, scale and zero point, bit for bit, on every level."""
    x = np.random.default_rng(rows).standard_normal((rows, 7)).astype(np.float32)
    session = cpu_session(_BODY, isa=isa)
    for found, wanted in zip(session.run(None, {"x": x}), reference(_BODY, {"x": x}), strict=True):
        assert_same_bits(found, wanted)


def test_threads_do_not_change_it() -> None:
    """Pieces do not depend on their number."""
    x = np.random.default_rng(0).standard_normal((9000, 7)).astype(np.float32)
    alone, together = (cpu_session(_BODY, threads=threads).run(None, {"x": x}) for threads in (1, 2))
    for found, wanted in zip(together, alone, strict=True):
        assert_same_bits(found, wanted)
