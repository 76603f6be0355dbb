"""Decide which rules and passes take part, by the fused and quantized operators that are legal where a model goes.

    Target(frozenset(["FusedConv"]))       a session, one provider of which prefers FusedConv
    Target.file()                          a file: whoever loads it optimizes it anew for its own providers

A rule or pass says which operators it makes and which it decomposes; who takes part follows from that:

    makes FusedConv                        takes part where FusedConv is legal
    decomposes QLinearConv                 takes part where QLinearConv is not legal
    neither                                takes part everywhere

Only operators that stand for several others are named so (FusedConv, QLinearConv, Attention of com.microsoft …): every provider
has, or is given kernels for, the others. See decisions 10, 16 and 23.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sardonyx import lazy_dataclasses as dataclasses

__all__ = ["OpKey", "OptIn", "Target", "exclusion_reason", "microsoft", "standard"]

_MICROSOFT = "com.microsoft"


class OpKey(NamedTuple):
    """An operator, whatever its version: that depends on the node, not on the rule."""

    domain: str
    """Its domain, "" for ai.onnx."""
    op_type: str
    """Its name in that domain."""

    def __str__(self) -> str:
        return f"{self.domain}.{self.op_type}" if self.domain else self.op_type


def standard(*names: str) -> frozenset[OpKey]:
    """Return the keys of operators of ai.onnx."""
    return frozenset(OpKey("", name) for name in names)


def microsoft(*names: str) -> frozenset[OpKey]:
    """Return the keys of operators of com.microsoft."""
    return frozenset(OpKey(_MICROSOFT, name) for name in names)


_NOT_IN_FILES = microsoft("BiasSoftmax", "FusedMatMulActivation", "MatMulNBitsMlp", "MatMulNBitsQkv")
"""Operators for which onnxruntime's CPU provider has no kernel, so that a model with them would not load there."""


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """The providers of a session, or a file to be saved."""

    preferred: frozenset[str] = frozenset()
    """What the providers of a session prefer to its parts: names as in `PrefersOperators.preferred_operators`."""
    is_file: bool = False
    """True where the model goes to a file."""
    keeps_opset: bool = False
    """True where no node may need a newer operator set than the model imports, unless `write_older` has an older name for it."""

    @staticmethod
    def file(*, keeps_opset: bool = True) -> Target:
        """Return the target of a model that is saved, whose operator sets may be newer than the model's if not kept."""
        return Target(is_file=True, keeps_opset=keeps_opset)

    def allows(self, operator: OpKey) -> bool:
        """Return whether an operator that stands for several others is legal; of any domain where a provider names none."""
        if self.is_file:
            return operator not in _NOT_IN_FILES
        return operator.op_type in self.preferred or str(operator) in self.preferred


@dataclasses.dataclass(frozen=True, slots=True)
class OptIn:
    """A session config entry without which a rule or pass takes no part."""

    key: str
    """The entry, by onnxruntime's name where it has one."""
    text: str
    """What it must say."""
    reason: str
    """Why the rule or pass takes no part unasked, as a clause after "as"."""


def exclusion_reason(item: object, target: Target, entries: Mapping[str, str]) -> str | None:
    """Return why a rule or pass takes no part for a target; None where it does.

    Args:
        item: a rule, or a pass, which may lack any of the attributes that say where it takes part.
        target: where the model goes.
        entries: session config entries.
    """
    opt_in: OptIn | None = getattr(item, "opt_in", None)
    opt_out: str = getattr(item, "opt_out", "")
    not_saved: str = getattr(item, "not_saved", "")
    is_asked = opt_in is not None and entries.get(opt_in.key) == opt_in.text
    if opt_in is not None and not is_asked and not _is_preferred(item, target):
        return f'{opt_in.key} is not "{opt_in.text}", which asks for it, as {opt_in.reason}'
    if opt_out and entries.get(opt_out) == "1":
        return f'{opt_out} is "1"'
    if target.is_file and not_saved:
        return f"the model is saved, and {not_saved}"
    return (None if is_asked else _missing_reason(item, target)) or _kept_reason(item, target)


def _is_preferred(item: object, target: Target) -> bool:
    """Return whether an item that a user may ask for makes what a provider of a session prefers, so that nobody needs to ask."""
    made: frozenset[OpKey] = getattr(item, "makes", frozenset())
    return not target.is_file and any(map(target.allows, made))


def _missing_reason(item: object, target: Target) -> str | None:
    for attribute in ("makes", "prepares"):
        operators: frozenset[OpKey] = getattr(item, attribute, frozenset())
        if operators and not any(map(target.allows, operators)):
            lacking = "models that are saved lack" if target.is_file else "no provider prefers"
            return f"{lacking} {_shown(operators)}, which it {attribute}"
    return None


def _kept_reason(item: object, target: Target) -> str | None:
    operators: frozenset[OpKey] = getattr(item, "takes_apart", frozenset())
    takes_legal_apart: bool = getattr(item, "takes_legal_apart", False)
    kept = [operator for operator in operators if target.allows(operator)]
    if takes_legal_apart or not kept:
        return None
    return f"{'models that are saved keep' if target.is_file else 'a provider prefers'} {_shown(kept)}, which it decomposes"


def _shown(operators: Iterable[OpKey]) -> str:
    names = sorted({operator.op_type for operator in operators})
    return ", ".join(names[:3]) + (f" or {len(names) - 3} others" if len(names) > 3 else "")
