"""Write docs/optimizer.md: every rewrite rule and pass, and what stands here for each optimization of ONNX Runtime.

python docs/generate_optimizer.py            writes the page
"""

from __future__ import annotations

import inspect
from pathlib import Path

from sardonyx.optimize.contract import Pass
from sardonyx.optimize.helpers.quantized import INTEGER_OPERATORS
from sardonyx.optimize.names import ELSEWHERE, NAMES
from sardonyx.optimize.passes.override_dimensions import OverrideDimensions
from sardonyx.optimize.passes.write_older import WRITE_OLDER
from sardonyx.optimize.pipeline import ALWAYS, CLEAN_UP, LAST, LATE_FUSIONS, PASSES, RULES
from sardonyx.optimize.rule import Rule
from sardonyx.optimize.target import OpKey, OptIn, Target, exclusion_reason

PAGE = Path(__file__).with_name("optimizer.md")
HEAD = """# The optimizer

Written by `docs/generate_optimizer.py` from the lists in `src/sardonyx/optimize/`; do not edit.

A model is rewritten in levels, those of `SessionOptions.graph_optimization_level`. The passes and rules of a level repeat until
none changes anything; what a higher level changes goes through the lower ones again. A **rule** replaces a small pattern; each is a
file `src/sardonyx/optimize/rules/NAME.py` (or named after a sibling) that draws before and after and lists what it leaves alone. A
**pass** sees the whole graph. Any of them is left out by its name, or by ONNX Runtime's for it:

```python
import sardonyx as ort

session = ort.InferenceSession("model.onnx", disabled_optimizers=["fuse_gelu", "ConvBNFusion"])
options = ort.SessionOptions()
options.add_session_config_entry("optimization.disable_specified_optimizers", "fuse_gelu;ConvBNFusion")
```

`docs/how-to/write-a-rule.md` shows how to write one of your own.

## Rules and passes

Most take part in every session and every saved model. The others say which operators they make or decompose, and take part by
what is legal where the model goes: in a session the operators that its providers prefer to their parts
(`preferred_operators`), in a saved model all that ONNX Runtime's CPU provider has. Integer operators are QLinearConv and its
like. See decisions [44](decisions/0044-quantized-models-run-on-integers.md), [16](decisions/0016-fused-operators-come-last.md) and
[23](decisions/0023-targets-say-which-operators-are-legal.md). `sardonyx explain MODEL --fusions NODE` shows what each did, or why
it did not, at a node.
"""
NAMES_HEAD = """
## ONNX Runtime's names

Each may be given where a name of ours may. Where it stands for a pass that does more, all of that is left out. Where nothing stands
here, the name is accepted and changes nothing.

| ONNX Runtime | here |
| --- | --- |
"""


def row(item: Pass | Rule, kind: str = "") -> str:
    """The row of a pass or rule."""
    cells = item.name, kind or ("rule" if isinstance(item, Rule) else "pass"), _takes_part(item), sentence(item)
    return f"| {' | '.join(cells)} |\n"


def _takes_part(item: Pass | Rule) -> str:
    opt_in: OptIn | None = getattr(item, "opt_in", None)
    if opt_in is not None:
        return f'where `{opt_in.key}` is "{opt_in.text}"'
    makes, prepares, takes_apart = (frozenset(getattr(item, name, ())) for name in ("makes", "prepares", "takes_apart"))
    if makes or prepares:
        in_files = "" if exclusion_reason(item, Target.file(), {}) is None else ", in no saved model"
        return f"where {_shown(makes or prepares)} is legal{in_files}"
    if takes_apart and not getattr(item, "takes_legal_apart", False):
        return f"where {_shown(takes_apart)} is not legal" if len(takes_apart) == 1 else f"where no {_shown(takes_apart)} is legal"
    return ""


def _shown(operators: frozenset[OpKey]) -> str:
    rest = "integer operator" if operators >= INTEGER_OPERATORS else ""
    names = sorted({key.op_type for key in (operators - INTEGER_OPERATORS if rest else operators)})
    return " or ".join([*([rest] if rest else []), *names])


def sentence(item: Pass | Rule) -> str:
    """What a pass or rule does."""
    summary: str = getattr(item, "summary", "")
    if summary:
        return summary
    module = inspect.getmodule(item.pattern if isinstance(item, Rule) else type(item))
    return (inspect.getdoc(module) or "").splitlines()[0]


def tables() -> dict[str, list[Pass | Rule]]:
    """What each stage runs, in order."""
    last = [*(rule for rules in LATE_FUSIONS.values() for rule in rules), *(item for passes in LAST.values() for item in passes)]
    return {
        "Always": [OverrideDimensions({}, {}), *ALWAYS],
        **{level.name.capitalize(): [*PASSES[level], *RULES[level]] for level in PASSES},
        "After the rules of each level": [*CLEAN_UP],
        "At the end": [*last, WRITE_OLDER],
    }


_KINDS = {OverrideDimensions.name: "pass, before all others", WRITE_OLDER.name: "pass, in models that are saved"}


def page() -> str:
    """The whole page."""
    text = [HEAD]
    for title, items in tables().items():
        text.append(f"\n### {title}\n\n| name | kind | takes part | what it does |\n| --- | --- | --- | --- |\n")
        text.extend(row(item, _KINDS.get(item.name, "")) for item in items)
    text.append(NAMES_HEAD)
    for name in sorted({*NAMES, *ELSEWHERE}, key=str.lower):
        here = ", ".join(f"`{own}`" for own in NAMES[name]) if name in NAMES else f"nothing: {ELSEWHERE[name]}"
        text.append(f"| {name} | {here} |\n")
    return "".join(text)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
