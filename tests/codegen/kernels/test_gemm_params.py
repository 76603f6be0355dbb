"""How products are cut: blocks that the caches hold, tasks for threads, chains of sums."""

import dataclasses

import pytest

from sardonyx.codegen.kernels.gemm_params import (
    BLOCK_K,
    CHAIN,
    PART_TASKS,
    TASK_PRODUCTS,
    GemmParams,
    chain_for,
    chains_over_channels,
    computed_chain_for,
)
from sardonyx.codegen.target import emulated_target, host_target


def test_a_block_of_rows_stays_in_half_of_the_cache() -> None:
    """It is gone through once for each panel."""
    target = dataclasses.replace(host_target(), cache_bytes=1 << 19)
    params = GemmParams.blocked(target, 1000, 1000, 768)
    assert 4 * 1000 / params.pieces_m * params.block_k <= target.cache_bytes // 2


def test_a_task_has_some_milliseconds_of_work() -> None:
    """A run can only be ended between tasks."""
    params = GemmParams.blocked(host_target(), 64, 1 << 16, 1 << 12)
    assert 64 * (1 << 16) * (1 << 12) / params.tasks() <= 2 * TASK_PRODUCTS


@pytest.mark.parametrize(("K", "chain"), [(1, CHAIN), (24 * CHAIN, CHAIN), (24 * CHAIN + 1, 2 * CHAIN)])
def test_very_long_sums_have_longer_chains(K: int, chain: int) -> None:
    """To add many chains up has errors too; those of decoded panels have them later."""
    assert chain_for(K) == chain
    assert chain_for(K + 8 * CHAIN, is_decoded=True) == chain


@pytest.mark.parametrize(("K", "chain"), [(1, 12), (24, 12), (64, 16), (300, 75), (4 * CHAIN, CHAIN), (9000, 2 * CHAIN)])
def test_short_sums_over_a_computed_matrix_have_four_chains(K: int, chain: int) -> None:
    """Of twelve multiply-adds at least; long ones have those of any other sum."""
    assert computed_chain_for(K) == chain


@pytest.mark.parametrize("taps", [1, 3, 9, 25, 49, 121])
@pytest.mark.parametrize("channels", range(1, 16))
def test_sums_over_few_channels_are_about_as_exact_as_those_of_each_channel(channels: int, taps: int) -> None:
    """Their error grows with the length and the number of chains; there are no more chains than that takes."""
    count, K, most = chains_over_channels(channels, taps), channels * taps, 1.25 * (channels + taps)
    assert K / count + count <= most or (count - 1) ** 2 < K <= count**2
    assert all(K / fewer + fewer > most for fewer in range(1, count))


def test_sums_over_one_or_many_channels_are_not_cut_by_channels() -> None:
    """One channel is a single chain elsewhere too, and so are all taps of sixteen channels."""
    assert {chains_over_channels(channels, 9) for channels in (1, 16, 17, 64)} == {1}


@pytest.mark.parametrize(("rows", "block"), [(1, 4096), (2, 4096), (3, BLOCK_K), (100, BLOCK_K)])
def test_one_or_two_rows_read_whole_panels(rows: int, block: int) -> None:
    """And more go through K in blocks, where registers are many."""
    assert GemmParams.blocked(emulated_target("avx512", ["avx512f"]), rows, 1024, 4096).block_k == block


def test_decoded_panels_are_gone_through_chain_by_chain() -> None:
    """So much of one is decoded at a time; a batch of no rows has no tasks."""
    assert GemmParams.blocked(host_target(), 64, 64, 1000, is_decoded=True).block_k == CHAIN
    assert GemmParams.blocked(host_target(), 0, 64, 1000).tasks() == 0


def test_only_very_long_sums_are_made_in_parts() -> None:
    """Each of which takes some milliseconds, and has whole blocks of K; not where there are very many blocks of C."""
    target = host_target()
    for M, N, K in ((3, 70, 1 << 19), (20_000, 4096, 1 << 20)):
        params = GemmParams.blocked(target, M, N, K)
        assert params.in_parts(9) is params
    long = GemmParams.blocked(target, 20, 70, 20_000_000).in_parts(3)
    assert long.part_k % BLOCK_K == 0
    assert long.part_k * long.M * long.N / (long.pieces_m * long.pieces_n) <= TASK_PRODUCTS
    assert long.block_k <= long.part_k
    assert long.tasks(3) > PART_TASKS * (20_000_000 // long.part_k)
