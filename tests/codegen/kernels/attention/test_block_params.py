"""How attention by blocks of queries is cut."""

import pytest

from sardonyx.codegen.kernels.attention.block_params import PARAMS, AttentionParams, scratch_elements, together
from sardonyx.codegen.target import host_target


def _params(**sizes: int) -> AttentionParams:
    given = {"B": 1, "H": 2, "group": 1, "S": 5, "T": 7, "D": 8, "Dv": 8, **sizes}
    return AttentionParams(scale=1.0, q=(0, 0, 0), k=(0, 0, 0), v=(0, 0, 0), y=(0, 0, 0), **given)


def test_words_are_the_parameters_and_the_scale() -> None:
    """In their order; blocks of keys are whole tiles."""
    words = _params(T=300).words(host_target(), 1)
    assert len(words) == len(PARAMS) + 1
    assert words[PARAMS.index("T")] == 300
    assert 0 < words[PARAMS.index("block_keys")] <= 128 + 6


def test_a_run_can_be_ended_between_tasks() -> None:
    """There are more of them where each would take long; none where there are no queries."""
    target = host_target()
    assert _params().tasks(target, 1) == 1
    assert _params(S=4096, T=4096, D=128, Dv=128).tasks(target, 1) > 10
    assert _params(S=0).tasks(target, 1) == 0


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_so_many_tasks_run_at_a_time_as_have_memory(threads: int) -> None:
    """One alone, else some for each thread."""
    assert together(threads) == (1 if threads == 1 else 4 * threads)
    assert scratch_elements(host_target(), 64, 64) < scratch_elements(host_target(), 65, 64)
