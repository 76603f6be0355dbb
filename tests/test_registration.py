"""Facts about registering what a module defines when it is imported a second time."""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.registration import is_defined_again, is_imported


def _define() -> Callable[[], int]:
    def one() -> int:
        return 1

    return one


def test_one_definition_executed_twice_is_defined_again() -> None:
    """Two functions come of it, with one module and one qualified name."""
    assert is_defined_again(_define(), _define())


def test_two_definitions_are_two() -> None:
    """Their names differ."""
    assert not is_defined_again(_define(), _define)


def test_a_function_of_a_module_whose_import_ended_is_not_imported() -> None:
    """Python forgets the module, and the function may name what was never defined."""

    def lost() -> None: ...

    assert is_imported(lost)
    lost.__module__ = "sardonyx.no_such_module"
    assert not is_imported(lost)
