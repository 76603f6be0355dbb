"""What an optimization did: passes and their times, rules and how often they fired, single changes, and what went wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.ir import Model, Node
from sardonyx.optimize.contract import Level

__all__ = ["Change", "NodeLabel", "PassRecord", "Problem", "Report", "labels"]


@dataclasses.dataclass(slots=True)
class PassRecord:
    """What one pass did."""

    name: str
    """The pass."""
    runs: int = 0
    """How often it ran."""
    changes: int = 0
    """How many of the runs changed something."""
    seconds: float = 0.0
    """How long the runs took together."""


@dataclasses.dataclass(frozen=True, slots=True)
class NodeLabel:
    """A node that came or went."""

    operator: str
    """Its operator, with the domain where it has one."""
    name: str
    """Its name, or that of its first output."""


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """One firing of a rule, or one run of a pass that changed nodes."""

    optimization: str
    """The rule or pass."""
    removed: tuple[NodeLabel, ...]
    """The nodes that went."""
    added: tuple[NodeLabel, ...]
    """The nodes that came."""


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """A rule or pass that changed results or failed, and was left out from then on."""

    optimization: str
    """The rule or pass."""
    message: str
    """What it did."""
    before: Model | None = None
    """A model on which it does so: just the nodes that a rule replaced and what feeds them; for a pass the smallest part found."""
    after: Model | None = None
    """What it made of that model; None where it failed."""

    def __str__(self) -> str:
        return f"{self.optimization} {self.message}"


@dataclasses.dataclass(slots=True)
class Report:
    """What an optimization did."""

    level: Level
    """How far it went."""
    nodes_before: int = 0
    """Nodes of the main graph at the start."""
    nodes_after: int = 0
    """Nodes of the main graph at the end."""
    passes: dict[str, PassRecord] = dataclasses.field(default_factory=dict)
    """What each pass did, by name, in the order of the first runs."""
    fired: Counter[str] = dataclasses.field(default_factory=Counter)
    """How often each rule fired."""
    changes: list[Change] = dataclasses.field(default_factory=list)
    """Every single change, in order, where they were asked for."""
    verified: Counter[str] = dataclasses.field(default_factory=Counter)
    """How many rewrites of each rule, and changes of each pass, were found to keep results."""
    unverified: dict[str, str] = dataclasses.field(default_factory=dict)
    """Why rewrites of a rule or pass could not be checked, where some could not: the last reason."""
    problems: list[Problem] = dataclasses.field(default_factory=list)
    """What was left out because it changed results or failed."""
    seconds: float = 0.0
    """How long it took."""

    def __str__(self) -> str:
        lines = [f"{self.level.name}: {self.nodes_before} -> {self.nodes_after} nodes in {self.seconds * 1e3:.1f} ms"]
        lines += [
            f"  {record.name}: changed in {record.changes} of {record.runs} runs, {record.seconds * 1e3:.1f} ms"
            for record in self.passes.values()
        ]
        lines += [f"  {name}: fired {count} times" for name, count in self.fired.most_common()]
        lines += [f"  left out: {problem}" for problem in self.problems]
        return "\n".join(lines)


def labels(nodes: Iterable[Node]) -> tuple[NodeLabel, ...]:
    """Return what reports call these nodes."""
    return tuple(
        NodeLabel(f"{node.domain}.{node.op_type}" if node.domain else node.op_type, node.name or _first_output(node))
        for node in nodes
    )


def _first_output(node: Node) -> str:
    return next((value.name for value in node.outputs if value.name), "")
