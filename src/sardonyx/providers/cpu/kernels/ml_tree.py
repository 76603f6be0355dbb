"""Tree ensembles: the walk of rows through trees, and what makes scores and labels of the sums of votes."""

from __future__ import annotations

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, F64, I32, I64, Type
from sardonyx.codegen.kernels.trees.forest import MOST_ROWS, ForestCode, ForestParams, write_forest
from sardonyx.codegen.kernels.trees.forest_scores import ScoresCode, ScoresParams, write_scores
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Dim, Node
from sardonyx.ops.forest import MEMBER, Forest
from sardonyx.ops.views.ml_tree import TreeEnsemble
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.forest_tables import ForestTables, Votes, lay_out, votes_of
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, open_or_wrong, shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer, Plan

_DATA = {DataType.FLOAT: F32, DataType.DOUBLE: F64, DataType.INT32: I32, DataType.INT64: I64}
_DTYPES = {F32: DataType.FLOAT, F64: DataType.DOUBLE}
_MOST_TARGETS = 1 << 24
_TASK_VISITS = 1 << 22
"""Nodes that one task meets, about: some milliseconds."""
_TASK_FEATURES = 6 << 10
"""Features of one task's rows that stay in the first cache beside a tree's nodes, about."""
_TREES_COST = (8, 5)
"""What four vectors of trees take for a row, over walks of four vectors of rows: their nodes lie farther apart. Measured."""
_SCORES_ROWS = 1024


@dataclasses.dataclass(frozen=True, slots=True)
class TreesSpec:
    """A tree ensemble."""

    data: Type
    """The type of features."""
    total: Type
    """The type in which votes are added: float64 where features, as they are compared, or weights are."""
    score: Type
    """The type of the scores."""


def claim_trees(node: Node) -> TreesSpec | str:
    """Return the types of an ensemble, or why it cannot be compiled."""
    view, data, shape = TreeEnsemble.of(node), given(node.inputs[0]).dtype, shape_of(node.inputs[0])
    scores = node.outputs[-1]
    if data not in _DATA or view.weights_dtype not in (np.float32, np.float64):
        return f"features of type {data}, weights of type {view.weights_dtype}"
    if view.has_members:
        return "its nodes test membership of sets"
    if view.labels is not None and isinstance(view.labels[0], str):
        return "its labels are strings"
    if len(shape) not in (1, 2) or not 0 < view.targets <= _MOST_TARGETS:
        return f"features of shape {shape}, {view.targets} targets"
    N: Dim = shape[0] if len(shape) == 2 else 1
    expected = [(N,), (N, view.targets)] if view.labels is not None else [(N, view.targets)]
    for value, wanted in zip(node.outputs, expected, strict=False):
        if shape_of(value) != wanted:
            return f"that the output has shape {wanted} {open_or_wrong(shape_of(value), wanted)}"
    total = F64 if data in (DataType.DOUBLE, DataType.INT64) or view.weights_dtype == np.float64 else F32
    score = F32 if view.labels is not None and len(node.outputs) < 2 else _DATA[scores.dtype or DataType.FLOAT]
    return TreesSpec(_DATA[data], total, score)


@dataclasses.dataclass(frozen=True, slots=True)
class ForestKernel:
    """The walk of rows through trees."""

    data: Type
    """The type of features."""
    compared: Type
    """The type in which they are compared."""
    total: Type
    """The type in which votes are added."""
    votes: str
    """What leaves say."""
    combine: str
    """How votes are combined."""
    missing: bool
    """Whether the test of some node holds for NaN."""
    equality: bool
    """Whether some node tests equality."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"forest_{self._code.name}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_forest(module, symbol, self._code)

    @property
    def _code(self) -> ForestCode:
        return ForestCode(self.data, self.compared, self.total, self.votes, self.combine, self.missing, self.equality)


@dataclasses.dataclass(frozen=True, slots=True)
class ForestScoresKernel:
    """Scores and labels of the sums of votes."""

    total: Type
    """The type of the sums."""
    score: Type
    """The type of the scores."""
    rule: str
    """How they become scores."""
    transform: str
    """The post transform."""
    voted: str
    """Which sums have a vote."""
    average: bool
    """Whether sums are divided by the number of trees."""
    bases: int
    """How many base values there are, 3 for more."""
    is_probability: bool
    """Whether no weight is negative."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"forest_scores_{self._code.name}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_scores(module, symbol, self._code)

    @property
    def _code(self) -> ScoresCode:
        return ScoresCode(
            self.total, self.score, self.rule, self.transform, self.voted, self.average, self.bases, self.is_probability
        )


@lowers("TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor", claim=claim_trees, domain="ai.onnx.ml")
def trees(low: Lowering, group: Group, spec: TreesSpec) -> None:
    """Add up the votes; where that is not all, make scores and labels of the sums."""
    view = TreeEnsemble.of(group.node)
    forest = TreeEnsemble.forest(group.node)
    _check_base(view)
    ensemble = _Ensemble(low, group, spec, view, forest, votes_of(forest, view.targets))
    ensemble.walk()
    if not ensemble.is_done:
        ensemble.score()


def _check_base(view: TreeEnsemble) -> None:
    count, targets = view.base.size, view.targets
    if count > targets or (view.labels is None and count not in (0, targets)):
        raise InvalidArgument(f"base_values have {count} entries; expected none, or one for each of {targets} targets or classes")


class _Ensemble:
    """The steps of one ensemble."""

    def __init__(self, low: Lowering, group: Group, spec: TreesSpec, view: TreeEnsemble, forest: Forest, votes: Votes) -> None:
        self._low, self._group, self._spec, self._view, self._votes = low, group, spec, view, votes
        self._trees, self._features, self._nodes = len(forest.roots), forest.feature_count, len(forest.is_inner)
        self._tables, self._compared = _tables(forest, votes, spec)
        self._data = low.of(group.node.inputs[0])
        self._rows: Dim = self._data.shape[0] if len(self._data.shape) == 2 else 1
        self._rule = _rule(view, forest)
        self._is_probability = self._rule == "binary" and bool((forest.votes_weight >= 0).all())
        self._voted = "rows" if votes.voted is None else "all" if bool(votes.voted.all()) else "fixed"
        self.is_done = self._has_scores(view, spec)
        """Whether the sums of votes are the scores."""
        shape, dtype = (self._rows, view.targets), _DTYPES[spec.total]
        self._totals = low.result(group.node.output) if self.is_done else low.temporary(dtype, shape)
        self._voted_rows = low.temporary(DataType.INT32, shape)

    def _has_scores(self, view: TreeEnsemble, spec: TreesSpec) -> bool:
        zero_without_votes = view.aggregate == "SUM" or self._voted == "all"
        is_sum = self._rule == "targets" and view.aggregate != "AVERAGE" and not view.base.size and zero_without_votes
        return is_sum and self._transform == "NONE" and spec.score == spec.total

    @property
    def _transform(self) -> str:
        """The post transform that acts; on one target only PROBIT does, as in ONNX Runtime."""
        transform = self._view.post_transform
        alone = self._view.targets == 1 and transform != "PROBIT"
        return "NONE" if alone else transform

    def walk(self) -> None:
        """Add the step that adds up votes."""
        low, votes, spec, tables = self._low, self._votes, self._spec, self._tables
        is_integer = spec.data in (I32, I64)
        combine = {"AVERAGE": "sum"}.get(self._view.aggregate, self._view.aggregate.lower())
        missing = tables.missing and not is_integer
        symbol = low.kernel(ForestKernel(spec.data, self._compared, spec.total, votes.form, combine, missing, tables.equality))
        buffers = [low.constant(tables.nodes), low.constant(tables.starts), low.constant(tables.bases), self._data, self._totals]
        if votes.form == "many":
            buffers.append(_constant(low, votes.targets, np.int32))
        if votes.form in ("dense", "list"):
            buffers += [_constant(low, None, np.int32), _constant(low, votes.weights, _DTYPES[spec.total].numpy)]
        if votes.form == "list":
            buffers += [_constant(low, table, np.int64) for table in (votes.firsts, votes.targets)]
            buffers.append(self._voted_rows)
        writes = [4, 9] if votes.form == "list" else [4]
        low.step(self._group, symbol, buffers, writes=writes, plan=self._walk_plan())

    def _walk_plan(self) -> Plan:
        """Return the plan of the walk, which holds numbers only: tables are large."""
        low, rows, shape, trees, least = self._low, self._rows, self._data.shape, self._trees, self._features
        shift, targets, lanes = self._tables.shift, self._view.targets, low.target.lanes(self._compared.bits)
        depth = 2 + (self._nodes // max(trees, 1)).bit_length()

        def plan(sizes: Sizes) -> tuple[list[int], int]:
            count, features = sizes(rows), sizes(shape[-1])
            if features < least:
                raise InvalidArgument(f"the input has {features} features, but a node tests feature {least - 1}")
            block = _block(count, features, trees, depth, lanes, low.threads)
            params = ForestParams(rows=count, features=features, trees=trees, shift=shift, targets=targets, block=block)
            return params.words(), params.tasks()

        return plan

    def score(self) -> None:
        """Add the step that makes scores and labels of the sums."""
        low, view, spec, node = self._low, self._view, self._spec, self._group.node
        base_form = view.base.size if self._rule == "binary" else 3 * bool(view.base.size)
        transform = self._transform if self._rule == "targets" else view.post_transform
        if self._rule == "one" and transform != "PROBIT":
            transform = "NONE"
        average = view.aggregate == "AVERAGE"
        symbol = low.kernel(
            ForestScoresKernel(spec.total, spec.score, self._rule, transform, self._voted, average, base_form, self._is_probability)
        )
        shape = (self._rows, view.targets)
        base = np.full(view.targets, -0.0)
        base[: view.base.size] = view.base
        voted = self._voted_rows if self._votes.voted is None else _constant(low, self._votes.voted, np.int32)
        buffers = [self._totals, voted, _constant(low, base, _DTYPES[spec.total].numpy)]
        writes = [3, 0]
        if view.labels is None:
            buffers.append(low.result(node.output))
        else:
            labels = np.array([0, 1] if view.targets == 1 else view.labels, np.int64)
            scores = low.result(node.outputs[1]) if len(node.outputs) > 1 else low.temporary(_DTYPES[spec.score], shape)
            buffers += [scores, low.constant(labels), low.result(node.outputs[0])]
            writes = [5, 3, 0]
        rows, targets, bases, trees = self._rows, view.targets, view.base.size, max(self._trees, 1)

        def plan(sizes: Sizes) -> tuple[list[int], int]:
            params = ScoresParams(sizes(rows), targets, bases, trees, _SCORES_ROWS)
            return params.words(), params.tasks()

        low.step(self._group, symbol, buffers, writes=writes, plan=plan)


def _block(rows: int, features: int, trees: int, depth: int, lanes: int, threads: int) -> int:
    """Return how many rows a task walks; 0 where vectors of trees take fewer walks than vectors of rows."""
    unit = 2 * lanes
    by_rows, by_blocks = rows * -(-trees // (2 * unit)) * _TREES_COST[0], trees * -(-rows // unit) * _TREES_COST[1] // 2
    if by_rows <= by_blocks or features * MOST_ROWS >> 31:
        return 0
    resident = max(_TASK_FEATURES // max(features, 1), MOST_ROWS // 2)
    most = min(MOST_ROWS, resident, max(_TASK_VISITS // (trees * depth), 1), -(-rows // threads))
    return -(-most // unit) * unit


def _tables(forest: Forest, votes: Votes, spec: TreesSpec) -> tuple[ForestTables, Type]:
    """Return the tables, and the type in which features are compared: float32 where that says the same and records suffice."""
    if MEMBER in forest.used_modes:
        raise InvalidArgument("nodes_modes hold BRANCH_MEMBER, but were read as holding none")
    small = spec.data in (F32, I32) and spec.total == F32
    tables = lay_out(forest, votes, np.float32) if small else None
    if tables is not None:
        return tables, F32
    tables = lay_out(forest, votes, np.float64)
    if tables is None:
        raise InvalidArgument(f"it has {len(forest.is_inner)} nodes, and tests features below {forest.feature_count}: too many")
    return tables, F64


def _rule(view: TreeEnsemble, forest: Forest) -> str:
    """Return by which rule sums become scores."""
    if view.labels is None:
        return "targets"
    targets = forest.votes_target
    if view.targets == 2 and targets.size and targets.min() == targets.max():
        return "binary"
    return "one" if view.targets == 1 else "classes"


def _constant(low: Lowering, array: Array | None, dtype: np.dtype[np.generic] | type) -> Buffer:
    """Return a buffer with a table, of one element where there is none."""
    return low.constant(np.zeros(1, dtype) if array is None else np.ascontiguousarray(array, dtype))
