"""The table of changes keeps up with the source, and the harness tells killed from survived."""

from __future__ import annotations

import ast
from collections import Counter

import pytest
from mutants.harness import Tree
from mutants.mutation import ROOT, SOURCE, Mutation, mutate
from mutants.table import MUTATIONS


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda item: item.name)
def test_a_change_applies_to_the_source(mutation: Mutation) -> None:
    """Its old text occurs once in its file, what it makes is Python other than before, and its tests exist."""
    text = (SOURCE / mutation.file).read_text(encoding="utf-8")
    changed = mutate(mutation, text)
    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text))
    assert all((ROOT / name).exists() for name in mutation.tests)


def test_names_are_unique() -> None:
    """A name on the command line means one change."""
    assert [name for name, count in Counter(item.name for item in MUTATIONS).items() if count > 1] == []


@pytest.mark.parametrize(("old", "count"), [("Semantic", 0), ("version", 2)])
def test_a_text_that_does_not_occur_once_is_refused(old: str, count: int) -> None:
    """With the name of the change and how often the text occurs."""
    with pytest.raises(ValueError, match=f"gone: '{old}' occurs {count} times in version.py, expected 1"):
        mutate(Mutation("gone", "version.py", old, "other"), "version = 1\nolder_version = 0\n")


def test_a_change_is_killed_where_a_test_fails_and_survives_where_none_does() -> None:
    """One that does not apply is neither. The copy is as before afterwards, and the package itself is left alone."""
    before = (SOURCE / "arena.py").read_bytes()
    noticed = Mutation("noticed", "arena.py", "return best if best >= 0 else end", "return max(best, 0)")
    unnoticed = Mutation("unnoticed", "arena.py", "ALIGNMENT = 64", "ALIGNMENT = 32 * 2")
    outdated = Mutation("outdated", "arena.py", "ALIGNMENT = 65", "ALIGNMENT = 64")
    with Tree() as tree:
        verdicts = [tree.try_out(item) for item in (noticed, unnoticed, outdated)]
    assert [verdict.outcome for verdict in verdicts] == ["killed", "survived", "broken"]
    assert verdicts[0].detail.startswith("test_arena.py::")
    assert (SOURCE / "arena.py").read_bytes() == before
