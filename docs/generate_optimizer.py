"""Write docs/optimizer.md: every rewrite rule and pass, and what stands here for each optimization of ONNX Runtime.

python docs/generate_optimizer.py            writes the page
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

from sardonyx.optimize.contract import Level, Pass
from sardonyx.optimize.names import ELSEWHERE, NAMES
from sardonyx.optimize.participation import APART, FLOATS, FUSED, OPTIONAL, QUANTIZED, SEPARATED, UNSAVED
from sardonyx.optimize.passes.override_dimensions import OverrideDimensions
from sardonyx.optimize.passes.write_older import WRITE_OLDER
from sardonyx.optimize.pipeline import ALWAYS, CLEAN_UP, LAST, LATE_FUSIONS, PASSES, RULES
from sardonyx.optimize.rule import Rule

PAGE = Path(__file__).with_name("optimizer.md")
HEAD = """# The optimizer

Written by `docs/generate_optimizer.py` from the lists in `src/sardonyx/optimize/`; do not edit.

A model is rewritten in levels, those of `SessionOptions.graph_optimization_level`. The passes and rules of a level repeat until
none changes anything; what a higher level changes goes through the lower ones again. A **rule** replaces a small pattern; each is a
file `src/sardonyx/optimize/rules/NAME.py` (or named after a sibling) that draws before and after and lists what it leaves alone. A
**pass** sees the whole graph. Any of them is left out by its name, or by ONNX Runtime's for it:

```python
session = sardonyx.InferenceSession("model.onnx", disabled_optimizers=["fuse_gelu", "ConvBNFusion"])
options.add_session_config_entry("optimization.disable_specified_optimizers", "fuse_gelu;ConvBNFusion")
```

`docs/how-to/write-a-rule.md` shows how to write one of your own.

## Rules and passes

*integers*, *fused*: takes part where a provider prefers the quantized or fused operators that it makes, and in models that are
saved; *fused, not saved*: not in these. *asked for*: takes part where a session config entry asks for it; *floats*: where no
provider prefers quantized operators; *not saved*: in sessions, unless a provider prefers what it takes apart;
*as it is*: where one prefers QuantizeLinear and DequantizeLinear themselves.
See decisions [10](decisions/0010-quantized-models-run-in-floats.md) and [16](decisions/0016-fused-operators-come-last.md).
"""
NAMES_HEAD = """
## ONNX Runtime's names

Each may be given where a name of ours may. Where it stands for a pass that does more, all of that is left out. Where nothing stands
here, the name is accepted and changes nothing.

| ONNX Runtime | here |
| --- | --- |
"""


def rows(level: Level) -> Iterator[tuple[str, str, str]]:
    """(name, kind, what it does) for each pass and rule of a level."""
    for item in PASSES[level]:
        yield item.name, _kind(item.name, "pass"), _first_line(item)
    for rule in RULES[level]:
        yield rule.name, _kind(rule.name, "rule"), _first_line(rule)


def last_rows() -> Iterator[tuple[str, str, str]]:
    """The same for what comes once all levels are done."""
    for rule in (rule for rules in LATE_FUSIONS.values() for rule in rules):
        yield rule.name, _kind(rule.name, "rule"), _first_line(rule)
    for item in (item for passes in LAST.values() for item in passes):
        yield item.name, _kind(item.name, "pass"), _first_line(item)
    yield WRITE_OLDER.name, "pass, in models that are saved", _first_line(WRITE_OLDER)


def _kind(name: str, kind: str) -> str:
    kinds = {"floats": FLOATS, "integers": QUANTIZED, "fused": FUSED, "fused, not saved": UNSAVED, "as it is": SEPARATED}
    kinds |= {"not saved": APART, "asked for": OPTIONAL}
    return next((f"{kind}, *{text}*" for text, names in kinds.items() if name in names), kind)


def _first_line(item: Pass | Rule) -> str:
    module = inspect.getmodule(item.pattern if isinstance(item, Rule) else type(item))
    return (inspect.getdoc(module) or "").splitlines()[0]


def page() -> str:
    """The whole page."""
    text = [HEAD]
    first = [(OverrideDimensions.name, "pass, before all others", _first_line(OverrideDimensions({}, {})))]
    always = [(item.name, "pass", _first_line(item)) for item in ALWAYS]
    clean_up = [(item.name, "pass", _first_line(item)) for item in CLEAN_UP]
    levels = {level.name.capitalize(): [*rows(level)] for level in PASSES}
    tables = {"Always": [*first, *always], **levels, "After the rules of each level": clean_up, "At the end": [*last_rows()]}
    for title, table in tables.items():
        if table:
            text.append(f"\n### {title}\n\n| name | kind | what it does |\n| --- | --- | --- |\n")
            text.extend(f"| {name} | {kind} | {line} |\n" for name, kind, line in table)
    text.append(NAMES_HEAD)
    for name in sorted({*NAMES, *ELSEWHERE}, key=str.lower):
        here = ", ".join(f"`{own}`" for own in NAMES[name]) if name in NAMES else f"nothing: {ELSEWHERE[name]}"
        text.append(f"| {name} | {here} |\n")
    return "".join(text)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
