"""Models that are compiled ahead, and whose file of programs or model is damaged before it is loaded."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fuzz.draw import Draw
from fuzz.mutate import mutate_bytes

from sardonyx import InferenceSession, SessionOptions

__all__ = ["run_damaged"]


def run_damaged(content: bytes, feeds: Mapping[str, Any], damage: Sequence[int]) -> list[Any] | None:
    """What the compiled model computes after damage; None where its compiled part, if there is any, is as it was.

    Raises what loading and running raise.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, compiled = Path(folder) / "m.onnx", Path(folder) / "c.onnx"
        source.write_bytes(content)
        options = SessionOptions()
        options.add_session_config_entry("ep.context_enable", "1")
        options.add_session_config_entry("ep.context_file_path", str(compiled))
        InferenceSession(source, options, providers=["CPUExecutionProvider"])
        programs = compiled.with_suffix(".bin")
        if not compiled.exists():
            return None
        target = programs if programs.exists() and damage[0] % 4 else compiled
        draw = Draw([*damage[1:], *(number % 251 for number in damage), *damage])
        target.write_bytes(_damaged(draw, target.read_bytes()))
        options = SessionOptions()
        options.add_session_config_entry("session.check_compiled_weights", "1")
        options.add_session_config_entry("session.trust_compiled_context", str(damage[0] // 4 % 2))
        found = list(InferenceSession(compiled, options, providers=["CPUExecutionProvider"]).run(None, dict(feeds)))
        return found if target is programs else None


def _damaged(draw: Draw, content: bytes) -> bytes:
    """The bytes with changes at places of any part, of which `mutate_bytes` sees a window."""
    begin = draw.below(max(1, len(content)))
    return content[:begin] + mutate_bytes(draw, content[begin : begin + 4096]) + content[begin + 4096 :]
