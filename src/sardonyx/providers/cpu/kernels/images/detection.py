"""Detections: boxes decoded by anchors, and the best of those that overlap, as TensorFlow Lite's detectors end."""

from __future__ import annotations

import math

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.images import detect, suppress
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.ir import Node
from sardonyx.ops.schemas_tflite import DOMAIN
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, shape_of
from sardonyx.providers.cpu.steps import STATUS

_BLOCK = 64
"""Boxes that one task decodes."""
_PART_PAIRS = 1 << 24
"""How many pairs of boxes are compared in a part, some tens of milliseconds."""
_MOST_STEPS = 1 << 24
"""The most scores that are looked at to list detections, some tens of milliseconds."""
_TASKS_PER_THREAD = 4


@dataclasses.dataclass(frozen=True, slots=True)
class DetectionSpec:
    """A DetectionPostProcess."""

    boxes: int
    """How many boxes there are."""
    width: int
    """Numbers of a box, of which four count."""
    columns: int
    """Scores of a box."""
    classes: int
    """How many of them count, the last ones."""
    rows: int
    """Places in the results."""
    limit: int
    """The most boxes that are kept, of each class or in all."""
    total: int
    """The most boxes that are listed."""
    per_box: int
    """The most classes of a box; 0 where each class keeps boxes of its own."""
    least: float
    """The least score."""
    overlap: float
    """The most that a box may overlap a better one."""
    scales: tuple[float, float, float, float]
    """By what y, x, height and width are divided."""


def claim_detection(node: Node) -> DetectionSpec | str:
    """Return what is detected, or why that cannot be compiled."""
    if any(given(value).dtype is not DataType.FLOAT for value in node.inputs):
        return "boxes, scores or anchors that are no float32"
    sizes = tuple(size for value in node.inputs for size in shape_of(value) if isinstance(size, int))
    if len(sizes) != 8:
        return "boxes and scores of rank 3, and anchors of rank 2, whose sizes are all known"
    batch, count, width, scores_batch, scored, columns, anchors, corners = sizes
    classes, most = node.integer("num_classes", 0), node.integer("max_detections", 0)
    fits = (batch, scores_batch, scored, anchors, corners) == (1, 1, count, count, 4) and width >= 4
    if not fits or classes < 1 or columns - classes not in (0, 1) or count < 1 or most < 1:
        return "boxes, scores and anchors that do not go together"
    overlap, least = node.number("nms_iou_threshold"), node.number("nms_score_threshold")
    y, x, height, width_of = (node.number(f"{name}_scale") for name in "yxhw")
    if least is None or y is None or x is None or height is None or width_of is None:
        return "no least score or no scales"
    if overlap is None or not 0 <= overlap <= 1:
        return "an overlap that is no number from 0 to 1"
    per_box = max(node.integer("max_classes_per_detection", 1), 0)
    is_regular, rows = node.flag("use_regular_nms"), most * max(per_box, 1)
    if rows * classes > _MOST_STEPS or count * classes > _MOST_STEPS:
        return f"{rows} detections of {classes} classes among {count} boxes"
    if per_box < 1:
        return "no class of a detection"
    limit = min(node.integer("detections_per_class", 100), most) if is_regular else most
    per_box = 0 if is_regular else per_box
    return DetectionSpec(count, width, columns, classes, rows, limit, most, per_box, least, overlap, (y, x, height, width_of))


@dataclasses.dataclass(frozen=True, slots=True)
class DecodeKernel:
    """Boxes, and the scores by which they are ranked."""

    by_class: bool
    """Whether each class ranks boxes by itself."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"detect_decode_{'classes' if self.by_class else 'best'}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        detect.write_decode(module, symbol, by_class=self.by_class)


@dataclasses.dataclass(frozen=True, slots=True)
class KeepKernel:
    """The boxes that survive, from a least score on."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"detect_keep_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        suppress.write_suppress(module, symbol, centers=False, limits_scores=True, takes_least=True)


@dataclasses.dataclass(frozen=True, slots=True)
class ListKernel:
    """What is found, with classes and scores."""

    by_class: bool
    """Whether each class has kept boxes by itself."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"detect_list_{'classes' if self.by_class else 'best'}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        (detect.write_merged if self.by_class else detect.write_best)(module, symbol)


@lowers("DetectionPostProcess", claim=claim_detection, domain=DOMAIN, inputs=3)
def detect_boxes(low: Lowering, group: Group, spec: DetectionSpec) -> None:
    """Decode all boxes, keep the best ones, and list them."""
    node, by_class = group.node, not spec.per_box
    boxes, scores, anchors = (low.of(value) for value in node.inputs)
    M, classes, first = spec.boxes, spec.classes, spec.columns - spec.classes
    ranks = classes if by_class else 1
    corners, ranked = low.temporary(DataType.FLOAT, (M, 4)), low.temporary(DataType.FLOAT, (ranks, M))
    decoded = [boxes, anchors, scores, low.constant(np.array(spec.scales, np.float32)), corners, ranked]
    decode = [M, spec.width, spec.columns, first, classes, _BLOCK]
    low.step(group, low.kernel(DecodeKernel(by_class)), decoded, writes=[4, 5], plan=lambda sizes: (decode, -(-M // _BLOCK)))

    most, together = max(1, min(M, spec.limit)), 1 if low.threads == 1 else _TASKS_PER_THREAD * low.threads
    per_rank, per_kept = suppress.work_words()
    words = M * per_rank + (most + suppress.PADDING) * per_kept + 1
    kept, counts = low.temporary(DataType.INT32, (ranks, most)), low.temporary(DataType.INT64, (ranks,))
    work = low.temporary(DataType.INT32, (together, words))
    numbers = [low.constant(np.array([spec.limit])), *(low.constant(np.array([x], np.float32)) for x in (spec.overlap, spec.least))]
    share = max(64, _PART_PAIRS // most)
    parts, rounds = math.ceil(M / share), math.ceil(ranks / together)
    keep = [ranks, M, most, together, words, parts, share, ranks]
    low.step(
        group,
        low.kernel(KeepKernel()),
        [corners, ranked, *numbers, kept, counts, work, STATUS],
        writes=[5, 6, 7],
        plan=lambda sizes: (keep, rounds * parts * together),
        together=together,
    )

    heads = [low.temporary(DataType.INT64, (classes,))] if by_class else []
    shapes = [(1, spec.rows, 4), (1, spec.rows), (1, spec.rows), (1,)]
    made = [low.result(value) for value in node.outputs]
    results = made + [low.temporary(DataType.FLOAT, shape) for shape in shapes[len(made) :]]
    listed = [spec.columns, first, classes, spec.rows, *((most, spec.total) if by_class else (spec.per_box,))]
    buffers = [corners, scores, kept, counts, *results, *heads]
    low.step(group, low.kernel(ListKernel(by_class)), buffers, writes=range(4, len(buffers)), plan=lambda sizes: (listed, 1))
