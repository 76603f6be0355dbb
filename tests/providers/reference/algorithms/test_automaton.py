"""Automata from pieces; patterns as text are in test_re2.py."""

from __future__ import annotations

import re
import threading

import pytest
from support.cancelling import ended_by

from sardonyx.cancellation import Flag
from sardonyx.errors import InvalidArgument, RunTerminated
from sardonyx.providers.reference.algorithms.automaton import Automaton, Chain, Choice, Edge, EdgeKind, One, Piece, Repeat

A, B = One(re.compile("a")), One(re.compile("b"))


@pytest.mark.parametrize(
    ("piece", "matching", "others"),
    [
        (Chain(()), [""], ["a"]),
        (Chain((A, B)), ["ab"], ["a", "abb"]),
        (Choice((A, Chain((B, B)))), ["a", "bb"], ["b", "ab"]),
        (Repeat(A, 0, None), ["", "aaa"], ["b"]),
        (Repeat(A, 2, 3), ["aa", "aaa"], ["a", "aaaa"]),
        (Repeat(Repeat(A, 0, None), 1, None), ["", "aa"], ["b"]),
        (Chain((Edge(EdgeKind.BEGIN), A, Edge(EdgeKind.END))), ["a"], [""]),
        (Chain((A, Edge(EdgeKind.WORD), One(re.compile("[^c]")))), ["a-"], ["ab"]),
        (Edge(EdgeKind.NOT_WORD), [""], ["a"]),
    ],
)
def test_pieces_match(piece: Piece, matching: list[str], others: list[str]) -> None:
    """Whole texts match, or do not."""
    compiled = Automaton(piece)
    assert all(map(compiled.fullmatch, matching))
    assert not any(map(compiled.fullmatch, others))


@pytest.mark.parametrize("is_long", [False, True])
@pytest.mark.parametrize(
    ("piece", "text", "expected"),
    [
        (Choice((A, Chain((A, B)))), "cabab", (1, 3)),
        (Repeat(A, 0, None), "caa", (0, 0)),
        (Repeat(A, 1, None), "caac", (1, 3)),
        (Chain((Repeat(A, 0, None), B)), "aaacab", (4, 6)),
        (Chain((Edge(EdgeKind.WORD), A)), "ba a", (3, 4)),
        (B, "aca", None),
    ],
)
def test_the_first_match_is_found_at_its_longest(piece: Piece, text: str, expected: tuple[int, int] | None, is_long: bool) -> None:
    """Of the matches that begin first; behind many beginnings in vain too, where all are followed together."""
    before = "a" * 400 + "c" if is_long and piece == Chain((Repeat(A, 0, None), B)) else ""
    found = Automaton(piece).search(before + text)
    assert found == (None if expected is None else (expected[0] + len(before), expected[1] + len(before)))


def test_a_search_in_vain_takes_linear_time() -> None:
    """A pattern that begins everywhere and ends nowhere is over at once."""
    assert Automaton(Chain((Repeat(A, 0, None), B))).search("a" * 20_000) is None


def test_states_are_forgotten_when_they_are_too_many() -> None:
    """A pattern with exponentially many states keeps a bounded number of them."""
    either = Choice((A, B))
    compiled = Automaton(Chain((Repeat(either, 0, None), A, Repeat(either, 9, 9))), most_kept=500)
    text = "".join("ab"[(number * number) % 7 % 2] for number in range(3000))
    assert compiled.fullmatch(text) == bool(re.fullmatch("[ab]*a[ab]{9}", text))
    assert compiled.fullmatch(text[:-1]) == bool(re.fullmatch("[ab]*a[ab]{9}", text[:-1]))


def test_repeats_of_repeats_are_limited() -> None:
    """Counts multiply; the size is refused before memory is taken for it."""
    piece: Piece = A
    for _ in range(4):
        piece = Repeat(piece, 100, 100)
    with pytest.raises(InvalidArgument, match="the pattern is too large"):
        Automaton(piece)


def test_threads_share_an_automaton() -> None:
    """What one thread finds out serves the others."""
    compiled = Automaton(Chain((Repeat(Choice((A, B)), 0, None), A, Repeat(Choice((A, B)), 3, 3))))
    wrong: list[str] = []

    def match(start: int) -> None:
        for number in range(start, start + 200):
            text = f"{number:b}".translate({48: "a", 49: "b"})
            if compiled.fullmatch(text) != (len(text) > 3 and text[-4] == "a"):
                wrong.append(text)

    threads = [threading.Thread(target=match, args=(16 + 50 * index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("text", ["a" * 100_000, "b" * 100_000], ids=["matches", "does not"])
def test_long_texts_are_left_when_the_run_is_to_end(text: str) -> None:
    """Matching and searching ask between some thousands of characters."""
    automaton = Automaton(Chain((Repeat(A, 0, None), Repeat(B, 0, None), A)))
    with ended_by(Flag(True)):
        with pytest.raises(RunTerminated):
            automaton.fullmatch(text)
        with pytest.raises(RunTerminated):
            automaton.search(text)
