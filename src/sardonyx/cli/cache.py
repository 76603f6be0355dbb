"""`sardonyx cache info` and `sardonyx cache clear`: the folder of compiled kernels."""

from __future__ import annotations

from typing import Any

import click

from sardonyx import config
from sardonyx.cli.console import fail, json_option, print_json, print_pairs, print_text
from sardonyx.disk_cache import shared_cache

__all__ = ["cache", "describe_cache"]

_MIB = 1 << 20


@click.group()
def cache() -> None:
    """Show or empty the folder in which compiled kernels are kept."""


@cache.command(short_help="Show the folder, what it holds and its health.")
@click.option("--check", is_flag=True, help="Read every object, and count those that are damaged.")
@json_option
def info(check: bool, as_json: bool) -> None:
    """Show where compiled kernels are kept, how many, and whether the folder can be used."""
    facts = describe_cache(check=check)
    if as_json:
        print_json(facts)
        return
    if facts["folder"] is None:
        click.echo("there is no cache: SARDONYX_CACHE_DIR is empty, or this user has no home folder")
        return
    damaged = {None: "not looked at (--check)", 0: "none"}.get(facts["damaged"], facts["damaged"])
    print_pairs(
        [
            ("folder", facts["folder"]),
            ("kernels", facts["files"]),
            ("size", f"{facts['size_bytes'] / _MIB:.1f} of {facts['limit_bytes'] / _MIB:.0f} MiB"),
            ("damaged", damaged),
            ("health", facts["problem"] or "can be read and written, by this user only"),
        ]
    )


@cache.command()
@json_option
def clear(as_json: bool) -> None:
    """Delete all compiled kernels; sessions compile what they need again."""
    found = shared_cache()
    if found is None:
        fail("there is no cache: SARDONYX_CACHE_DIR is empty, or this user has no home folder")
    count, size_bytes = found.clear()
    problem = found.survey().problem
    if as_json:
        print_json({"folder": str(found.folder), "deleted": count, "deleted_bytes": size_bytes, "problem": problem})
        return
    print_text(f"{found.folder}: {count} files deleted, {size_bytes / _MIB:.1f} MiB")
    if problem:
        fail(problem)


def describe_cache(*, check: bool) -> dict[str, Any]:
    """Return the folder, what it holds and whether it can be used; Any because it is on its way to JSON."""
    found = shared_cache()
    if found is None:
        return {"folder": None, "files": 0, "size_bytes": 0, "limit_bytes": 0, "damaged": None, "problem": ""}
    survey = found.survey(check=check)
    return {
        "folder": str(found.folder),
        "files": survey.files,
        "size_bytes": survey.size_bytes,
        "limit_bytes": config.cache_limit_bytes(),
        "damaged": survey.damaged,
        "problem": survey.problem,
    }
