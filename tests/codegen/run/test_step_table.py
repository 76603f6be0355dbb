"""Tables of steps; what runs them is tested with the driver."""

from __future__ import annotations

import numpy as np

from sardonyx.codegen.run.step_table import BASES, FLUSH, KERNEL, POOL, STATUS, STEP_WORDS, THREADS, Buffer, KernelCall, StepTable

_STEPS = [
    KernelCall(111, [Buffer(1, 8), Buffer(2, 7000)], [1, 2, 3], tasks=4, scalars=[9]),
    KernelCall(222, [Buffer(2, 9000)], []),
]


def test_a_kept_table_has_no_address_of_its_process() -> None:
    """Two tables of the same steps, which lie elsewhere, are kept as the same words."""
    first, second = (StepTable(_STEPS, 3) for _ in range(2))
    assert first.address != second.address
    np.testing.assert_array_equal(first.kept().words, second.kept().words)
    assert first.kept().words[BASES + STATUS] == first.kept().words[POOL] == 0


def test_a_table_is_made_again_with_other_addresses() -> None:
    """Of kernels and constants; all else is what it was, relative to where it lies now."""
    kept = StepTable(_STEPS, 3).kept()
    pointers, addresses = np.array([1, 2]), np.array([70, 90])
    again = StepTable.of_kept(kept, np.array([1110, 2220]), pointers, addresses, threads=5, flush=True)
    words = again.kept().words
    assert words[kept.first_step + KERNEL : kept.end : STEP_WORDS].tolist() == [1110, 2220]
    assert (words[THREADS], words[FLUSH], again.threads) == (5, 1, 5)
    changed = np.flatnonzero(words != kept.words).tolist()
    relocations = [BASES + 1 + 3 + 3 * pointer + 2 for pointer in (1, 2)]
    assert changed == sorted([THREADS, FLUSH, *relocations, kept.first_step + KERNEL, kept.first_step + STEP_WORDS + KERNEL])
    assert words[relocations].tolist() == [70, 90]


def test_copies_lie_elsewhere() -> None:
    """Each has bases of its own."""
    kept = StepTable(_STEPS, 3).kept()
    table = StepTable.of_kept(kept, np.array([1, 2]), np.array([], np.int64), np.array([], np.int64))
    copy = table.copy()
    copy.set_bases([1, 2, 3])
    assert table.kept().words[BASES + 1 : BASES + 4].tolist() == [0, 0, 0]
    assert copy.address != table.address
