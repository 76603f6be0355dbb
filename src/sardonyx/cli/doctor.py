"""`sardonyx doctor`: what this installation has, and what slows it down."""

from __future__ import annotations

import ctypes
import platform
import re
import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from sardonyx import config
from sardonyx.cli.cache import describe_cache
from sardonyx.cli.console import counted, json_option, print_json, print_pairs, readable_errors
from sardonyx.cli.machine import describe_machine, describe_threads
from sardonyx.cli.slowdowns import slowdowns
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.run.compile_process import compile_texts, is_given_up
from sardonyx.codegen.target import host_target
from sardonyx.errors import SardonyxError
from sardonyx.installed import recorded_version
from sardonyx.session.providers import describe_providers, missing_providers
from sardonyx.version import ONNXRUNTIME_API, __version__

__all__ = ["describe_installation", "doctor"]

_PACKAGES = ("numpy", "onnx", "llvmlite", "ml_dtypes", "protobuf", "click", "rich", "openvino", "onnxruntime")
_GIB = 1 << 30


@click.command(short_help="Show what this installation has, and what slows it down.")
@json_option
def doctor(as_json: bool) -> None:
    """Show what this installation has - machine, threads, providers, cache, versions - and what slows it down."""
    with readable_errors():
        facts = describe_installation()
    if as_json:
        print_json(facts)
    else:
        _print(facts)


def describe_installation() -> dict[str, object]:
    """Return all that `sardonyx doctor` knows; Any because it is on its way to JSON."""
    facts: dict[str, object] = {
        "versions": _versions(),
        "machine": describe_machine(),
        "threads": describe_threads(),
        "numpy": _numpy(),
        "compiler": _compiler(),
        "providers": dict(describe_providers()),
        "missing_providers": missing_providers(),
        "cache": describe_cache(check=False),
        "settings": config.settings_in_force(),
    }
    return {**facts, "slowdowns": slowdowns(facts)}


def _versions() -> dict[str, str | None]:
    """Return the versions of what takes part; None for a package that is not installed."""
    own = {"sardonyx": __version__, "onnxruntime's interface": ONNXRUNTIME_API}
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return {**own, "python": python, **{name: recorded_version(name) for name in _PACKAGES}}


def _numpy() -> dict[str, Any]:
    """Return NumPy's library for products, and on how many threads it runs; None where that cannot be found out."""
    built: Any = np.show_config(mode="dicts")
    return {"blas": built.get("Build Dependencies", {}).get("blas", {}).get("name"), "threads": _blas_threads()}


def _blas_threads() -> int | None:
    """Ask the OpenBLAS that NumPy has loaded; only on systems that list the libraries of a process."""
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    for path in dict.fromkeys(re.findall(r"(/\S*openblas\S*\.so\S*)", maps)):
        library = ctypes.CDLL(path)
        for name in ("scipy_openblas_get_num_threads64_", "openblas_get_num_threads64_", "openblas_get_num_threads"):
            function = getattr(library, name, None)
            if function is not None:
                return int(function())
    return None


def _compiler() -> dict[str, object]:
    """Compile a kernel that does nothing, and return how that went."""
    target = host_target(config.isa())
    module = Module(target)
    with module.kernel(f"doctor_{time.time_ns()}"):
        pass
    start = time.perf_counter()
    try:
        compile_texts([str(module)], target, 1)
    except SardonyxError as error:
        return {"is_able": False, "is_apart": False, "problem": str(error), "seconds": None}
    is_apart = not (config.compiles_inline() or is_given_up())
    return {"is_able": True, "is_apart": is_apart, "problem": "", "seconds": time.perf_counter() - start}


def _print(facts: dict[str, Any]) -> None:
    machine, threads, cache, compiler = facts["machine"], facts["threads"], facts["cache"], facts["compiler"]
    versions = ", ".join(f"{name} {text}" for name, text in facts["versions"].items() if text)
    sizes = [(machine[key] or 0) / _GIB for key in ("memory_bytes", "available_bytes")]
    print_pairs(
        [
            ("versions", versions),
            ("system", machine["system"] + (", virtual" if machine["is_virtual"] else "")),
            ("processor", machine["processor"]),
            ("instructions", f"{machine['isa']} (of {', '.join(machine['isa_levels'])})"),
            ("features", " ".join(machine["features"])),
            ("memory", f"{sizes[0]:.1f} GiB, {sizes[1]:.1f} free"),
            ("threads", f"{threads['threads']} a session ({_of_processors(threads)})"),
            ("compiler", _of_compiler(compiler)),
            ("NumPy", f"{facts['numpy']['blas'] or 'unknown BLAS'}, {_count(facts['numpy']['threads'])}"),
            *(("provider", f"{name}: {source}") for name, source in facts["providers"].items()),
            *(("no provider", f"{name}: {reason}") for name, reason in facts["missing_providers"].items()),
            ("cache", _of_cache(cache)),
            *(("set", f"{name}={text}") for name, text in facts["settings"].items()),
        ]
    )
    click.echo()
    if not facts["slowdowns"]:
        click.echo("nothing slows this machine down")
        return
    click.echo("what slows this machine down")
    print_pairs([("  -", text) for text in facts["slowdowns"]])


def _count(threads: int | None) -> str:
    return "an unknown number of threads" if threads is None else counted(threads, "thread")


def _of_processors(threads: dict[str, Any]) -> str:
    quota = "" if threads["quota"] is None else f", quota {threads['quota']:g}"
    own = f"{len(threads['affinity'])} for this process on {threads['cores']} cores"
    return f"{threads['processors']} processors, {own}{quota}"


def _of_compiler(compiler: dict[str, object]) -> str:
    if not compiler["is_able"]:
        return f"none: {compiler['problem']}"
    where = "a process of its own" if compiler["is_apart"] else "this process"
    return f"LLVM in {where}, {compiler['seconds']:.2f} s for the first kernel"


def _of_cache(cache: dict[str, Any]) -> str:
    if cache["folder"] is None:
        return "none"
    used = f"{cache['files']} kernels, {cache['size_bytes'] / 2**20:.1f} of {cache['limit_bytes'] / 2**20:.0f} MiB"
    return f"{cache['folder']}: {cache['problem'] or used}"
