"""Pages of the documentation as a user goes through them: blocks of Python and commands, in order, in one folder.

    python pages.py BLOCKS.json        runs the blocks of a page in the working folder; any that fails ends it with its message

Python blocks share their names, as in one session of the interpreter. Run as a program it imports nothing of the tests.
"""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path

__all__ = ["Block", "blocks_of"]

_COMMANDS = ("sardonyx", "python", "taskset", "pip", "SARDONYX_")
_PLACEHOLDERS = {"MODEL": "model.onnx", "OPERATOR": "Conv", "NODE": "last", "OUT": "out.onnx", "VERB": "run"}


@dataclasses.dataclass(frozen=True, slots=True)
class Block:
    """A block of Python, or one command."""

    kind: str
    """"python" or "shell"."""
    text: str
    """What is run."""
    line: int
    """Where it stands on the page."""
    needs: str = ""
    """A module without which it cannot be run."""


def blocks_of(text: str) -> list[Block]:
    """Return the blocks of a page in order: fenced Python, fenced shells, lines after a `$`, and indented commands."""
    found: list[Block] = []
    lines = text.splitlines()
    index, needs = 0, ""
    while index < len(lines):
        line = lines[index]
        if match := re.fullmatch(r"<!-- needs (\w+) -->", line):
            needs = match[1]
        elif line.startswith("```"):
            stop = next(place for place in range(index + 1, len(lines)) if lines[place].startswith("```"))
            found += _fenced(line[3:].strip(), lines[index + 1 : stop], index + 1, needs)
            index, needs = stop, ""
        elif line.startswith("    ") and line[4:].startswith(_COMMANDS):
            command = line[4:]
            while command.endswith("\\"):
                index += 1
                command = command[:-1] + lines[index].strip()
            found.append(Block("shell", _without_remark(command), index + 1))
        index += 1
    return found


def _fenced(language: str, lines: list[str], start: int, needs: str) -> list[Block]:
    if language == "python":
        return [Block("python", "\n".join(lines), start, needs)]
    if language in ("sh", "bash"):
        return [Block("shell", line, start + place, needs) for place, line in enumerate(lines, 1) if line.strip()]
    shown = [(start + place, line) for place, line in enumerate(lines, 1) if language == "console" and line.startswith("$ ")]
    return [Block("shell", line[2:], place, needs) for place, line in shown]


def _without_remark(command: str) -> str:
    """Cut what stands behind a command after two spaces, and put files in the place of words such as MODEL."""
    text = re.split(r"\s{2,}", command)[0]
    return re.sub(r"\b([A-Z]+)\b(?:\.onnx)?", lambda match: _PLACEHOLDERS.get(match[1], match[0]), text)


def main() -> None:
    """Run the blocks of a page."""
    names: dict[str, object] = {"__name__": "page"}
    for block in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
        place = f"line {block['line']}: {block['text'].splitlines()[0]}"
        sys.stderr.write(f"-- {place}\n")
        sys.stderr.flush()
        if block["kind"] == "python":
            exec(compile(block["text"], place, "exec"), names)
        else:
            subprocess.run(["bash", "-ec", block["text"]], check=True, stdin=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
