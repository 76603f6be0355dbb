"""The words of the pool."""

from __future__ import annotations

from sardonyx.codegen.run import pool_words


def test_words_lie_apart_and_within_the_pool() -> None:
    """None is another one's."""
    names = ["TICKET", "STOP", "DONE", "SLEEPERS", "OWNER", "ACTIVE", "MAIN_THREAD"]
    names += ["KERNEL", "BUFFERS", "PARAMS", "BEGIN", "TASKS", "CHUNK", "WORKERS", "CONTROL"]
    places = [getattr(pool_words, name) for name in names]
    places += range(pool_words.ASLEEP, pool_words.ASLEEP + pool_words.APART)
    assert len(set(places)) == len(places)
    assert set(places) <= set(range(pool_words.POOL_WORDS))
