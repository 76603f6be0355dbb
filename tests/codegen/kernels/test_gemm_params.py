"""How products are cut: blocks that the caches hold, tasks for threads, chains of sums."""

import dataclasses

import pytest

from sardonyx.codegen.kernels.gemm_params import CHAIN, TASK_PRODUCTS, GemmParams, chain_for
from sardonyx.codegen.target import host_target


def test_a_block_of_rows_stays_in_half_of_the_cache() -> None:
    """It is gone through once for each panel."""
    target = dataclasses.replace(host_target(), cache_bytes=1 << 19)
    params = GemmParams.blocked(target, 1000, 1000, 768)
    assert 4 * params.block_m * params.block_k <= target.cache_bytes // 2


def test_a_task_has_some_milliseconds_of_work() -> None:
    """A run can only be ended between tasks."""
    params = GemmParams.blocked(host_target(), 64, 1 << 16, 1 << 12)
    assert params.block_m * params.block_n * params.K <= 2 * TASK_PRODUCTS


@pytest.mark.parametrize(("K", "chain"), [(1, CHAIN), (32 * CHAIN, CHAIN), (32 * CHAIN + 1, 2 * CHAIN)])
def test_very_long_sums_have_longer_chains(K: int, chain: int) -> None:
    """To add many chains up has errors too."""
    assert chain_for(K) == chain


def test_decoded_panels_are_gone_through_chain_by_chain() -> None:
    """So much of one is decoded at a time; a batch of no rows has no tasks."""
    assert GemmParams.blocked(host_target(), 64, 64, 1000, is_decoded=True).block_k == CHAIN
    assert GemmParams.blocked(host_target(), 0, 64, 1000).tasks() == 0
