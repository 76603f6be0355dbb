"""The words of the thread pool, by which its native side (`pool_code`) and its threads (`thread_pool`) work together.

A region is a kernel, its arguments, and tasks of one step. It is published by one word, the ticket:

    ticket = generation (32 bits) | next task of the region (32 bits)

A thread takes some tasks, a chunk, by counting the ticket up, on condition that the generation is the one whose arguments it has
read; so a thread that comes late can neither take nor spoil tasks of another region, and nobody waits for threads that took none.
The generation is odd while the arguments are being changed.
"""

from __future__ import annotations

__all__ = ["APART", "MAIN_THREAD", "MOST_TASKS", "POOL_WORDS"]

TICKET, STOP, REGION, DONE, SLEEPERS, OWNER, ACTIVE = (8 * line for line in range(7))
"""Where the words of the pool are, one to a cache line of eight words."""

ASLEEP = 8 * 7
"""From here on a word of each of the first workers: its thread's number in the system while it sleeps, else 0."""

KERNEL, BUFFERS, PARAMS, BEGIN, TASKS, CHUNK, WORKERS, CONTROL = range(REGION, REGION + 8)
"""The arguments of a region: what to call, with what, on tasks from where on and how many, in chunks of how many, by whom.

The last one is the caller's control word of floating-point numbers, under which workers compute too.
"""

MAIN_THREAD = ACTIVE + 1
"""The thread that hears signals: what `pthread_self` returns in it."""

APART = 64
"""How many workers are kept off the caller's processor when they are woken."""
POOL_WORDS = ASLEEP + APART
"""How many words a pool has."""

MOST_TASKS = 1 << 31
"""Of one region: the ticket has 32 bits for them."""
