"""Write docs/options.md, every property, config entry and provider option, and docs/environment.md, every environment variable.

python docs/generate_options.py            writes the pages
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sardonyx import RunOptions, SessionOptions
from sardonyx.option import Ignored, Option
from sardonyx.providers.cpu.provider import OPTIONS as CPU_OPTIONS
from sardonyx.providers.openvino.options import OPTIONS as OPENVINO_OPTIONS
from sardonyx.providers.reference.provider import OPTIONS as REFERENCE_OPTIONS
from sardonyx.session.settings.foreign import IGNORED, IGNORED_OF_RUNS
from sardonyx.session.settings.keys import KEYS, KEYS_OF_RUNS
from sardonyx.session.settings.properties import PROPERTIES, PROPERTIES_OF_RUNS
from sardonyx.session.settings.variables import VARIABLES

PAGE = Path(__file__).with_name("options.md")
ENVIRONMENT_PAGE = Path(__file__).with_name("environment.md")
HEAD = """# Options

Written by `docs/generate_options.py` from the tables in `src/sardonyx/`; do not edit.

An option is a property of `SessionOptions` or `RunOptions`, a config entry, a provider option or an
[environment variable](environment.md):

```python
import sardonyx as ort

options = ort.SessionOptions()
options.intra_op_num_threads = 2
options.add_session_config_entry("session.executor", "dataflow")
session = ort.InferenceSession("model.onnx", options, providers=[("CPUExecutionProvider", {"intra_op_num_threads": "1"})])
```

Those of a session are read once, when it is made; a text that is none of the values is an error that names the key, and one that is
left out or empty is the default. A property that is misspelt cannot be set. A key that nobody knows is a warning that says which is
near, unless it may be one of a provider's.
"""


def page() -> str:
    """The whole page."""
    return "".join(
        [
            HEAD,
            "\n## Properties of SessionOptions\n\n",
            _table(("property", "default", "what it does"), _properties(SessionOptions(), PROPERTIES)),
            "\n## Properties of RunOptions\n\n",
            _table(("property", "default", "what it does"), _properties(RunOptions(), PROPERTIES_OF_RUNS)),
            '\n## Session config entries\n\nA meaning that is the name of a property says the same as that; `"1"` is yes.\n',
            *(f"\n### {subject}\n\n{_options(options)}" for subject, options in KEYS.items()),
            "\n## Config entries of ONNX Runtime without effect\n\n",
            "They are accepted. A key that ends in `.` or `_` stands for all that begin so. Where the second column has a text,\n"
            "any other asks for what is not done here, and is warned of.\n\n",
            _ignored(IGNORED),
            "\n## Run config entries\n\nOf `RunOptions.add_run_config_entry`.\n\n",
            _options(KEYS_OF_RUNS),
            "\nThese of ONNX Runtime are accepted, without effect:\n\n",
            _ignored(IGNORED_OF_RUNS),
            "\n## Provider options\n\n### CPUExecutionProvider\n\n",
            _options(CPU_OPTIONS),
            "\n### ReferenceExecutionProvider\n\n",
            _options(REFERENCE_OPTIONS),
            "\n### OpenVINOExecutionProvider\n\n",
            _options(OPENVINO_OPTIONS),
            "\nThe package openvino, when it is imported, reports that to its vendor over the network and writes the folder\n"
            "`intel` in the user's home, unless the user has opted out on the machine. Imported by this provider it does\n"
            "neither. A program that wants the reports, or declines them in its own way, imports openvino before it makes\n"
            "a session.\n",
        ]
    )


ENVIRONMENT_HEAD = """# Environment variables

Written by `docs/generate_options.py` from `src/sardonyx/session/settings/variables.py`; do not edit.

They are read when they are needed, the limits of tensors and loops once, when the package is imported. A text that is none of
the values is warned of, and has no effect. What a session's [options](options.md) say stands above them.

    SARDONYX_NUM_THREADS=1 SARDONYX_TRACE=trace.jsonl sardonyx run model.onnx --random
    SARDONYX_CACHE_DIR= sardonyx run model.onnx --random        # an empty folder name: nothing is kept on disk

"""


def environment_page() -> str:
    """The page of environment variables."""
    rows = [(f"`{item.name}`", item.values, item.default, item.meaning, item.since) for item in VARIABLES]
    rest = (
        "\n`XDG_CACHE_HOME`, where it is an absolute path, takes the place of `~/.cache`. `OMP_NUM_THREADS` and\n"
        "`OPENBLAS_NUM_THREADS` are those of NumPy, which the reference provider computes with.\n"
    )
    return ENVIRONMENT_HEAD + _table(("variable", "values", "default", "what it does", "since"), rows) + rest


def _properties(made: object, meanings: dict[str, str]) -> Iterable[tuple[str, ...]]:
    return ((f"`{name}`", _default(getattr(made, name)), meaning) for name, meaning in meanings.items())


def _default(value: object) -> str:
    return value.name if isinstance(value, enum.Enum) else f'"{value}"' if isinstance(value, str) else str(value)


def _options(options: Iterable[Option[Any]]) -> str:
    rows = ((f"`{item.name}`", item.kind.values, item.default_text, item.meaning, item.since) for item in options)
    return _table(("key", "values", "default", "what it does", "since"), rows)


def _ignored(items: Iterable[Ignored]) -> str:
    rows = ((f"`{item.name}`", "" if item.usual is None else f'"{item.usual}"', item.reason) for item in items)
    return _table(("key", "warned of unless", "why"), rows)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = (head, ("---",) * len(head), *rows)
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    ENVIRONMENT_PAGE.write_text(environment_page(), encoding="utf-8")
