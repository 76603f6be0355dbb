"""Linear models and support vector machines of ai.onnx.ml."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sardonyx.cancellation import check_cancelled
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.memo import remembered
from sardonyx.providers.reference.algorithms.product import matmul_in_parts
from sardonyx.providers.reference.algorithms.scores import as_rows, label_array, logistic, post_transformed, regressed, two_columns
from sardonyx.providers.reference.registry import Call, kernel

__all__: list[str] = []


@remembered
def _vector(values: Sequence[float] | None) -> Array:
    return np.array(values or (), np.float32)


def _float_rows(data: Array) -> Array:
    return np.ascontiguousarray(as_rows(data), np.float32)


def _linear(rows: Array, coefficients: Array, intercepts: Array, targets: int) -> Array:
    """Multiply rows (N, F) by coefficients (targets, F), and add intercepts (targets,) if there are any."""
    if targets < 1 or coefficients.size != targets * rows.shape[1] or intercepts.size not in (0, targets):
        raise InvalidArgument(
            f"{coefficients.size} coefficients and {intercepts.size} intercepts for {targets} targets of {rows.shape[1]} features; "
            f"expected {targets * rows.shape[1]} and {targets}"
        )
    scores = matmul_in_parts(rows, coefficients.reshape(targets, -1).T)
    return scores + intercepts if intercepts.size else scores


@kernel("LinearRegressor", domain="ai.onnx.ml")
def linear_regressor(
    _node: Call,
    data: Array,
    *,
    coefficients: Sequence[float],
    intercepts: Sequence[float] | None = None,
    targets: int = 1,
    post_transform: str = "NONE",
) -> Array:
    """Predict data (N, F) @ coefficients (targets, F).T + intercepts: float32 (N, targets). ONNX LinearRegressor-1."""
    return regressed(_linear(_float_rows(data), _vector(coefficients), _vector(intercepts), targets), post_transform)


@kernel("LinearClassifier", domain="ai.onnx.ml")
def linear_classifier(
    _node: Call,
    data: Array,
    *,
    coefficients: Sequence[float],
    intercepts: Sequence[float] | None = None,
    classlabels_strings: Sequence[str] = (),
    classlabels_ints: Sequence[int] = (),
    post_transform: str = "NONE",
) -> tuple[Array, Array]:
    """Label each row of (N, F) by its greatest linear score: labels (N,), float32 scores (N, classes).

    One row of coefficients for two labels: a positive score means the second, and the score makes both columns.
    `multi_class` changes nothing. Coefficients beyond classes x F are not read, as in ONNX Runtime. ONNX LinearClassifier-1.
    """
    rows = _float_rows(data)
    labels = label_array(classlabels_strings, classlabels_ints)
    weights, offsets = _vector(coefficients), _vector(intercepts)
    count = offsets.size or weights.size // max(rows.shape[1], 1)
    if count not in (1, len(labels)):
        raise InvalidArgument(f"{count} rows of coefficients for {len(labels)} labels; expected one row, or one for each label")
    scores = _linear(rows, weights[: count * rows.shape[1]], offsets, count)
    if count == 1 and len(labels) == 2:
        return labels[(scores[:, 0] > 0).astype(np.int64)], two_columns(scores[:, 0], True, post_transform)
    return labels[scores.argmax(axis=1)], post_transformed(scores, post_transform)


_KERNELS: dict[str, Callable[[Array, float, float, float], Array]] = {
    "LINEAR": lambda dots, gamma, offset, degree: dots,
    "POLY": lambda dots, gamma, offset, degree: (gamma * dots + offset) ** degree,
    "SIGMOID": lambda dots, gamma, offset, degree: np.tanh(gamma * dots + offset),
}
"""kernel_type -> what it makes of the dot products; RBF takes distances, see `_kernel_values`."""


def _kernel_values(rows: Array, vectors: Array, kernel_type: str, params: Array) -> Array:
    """Return the kernel of every row (N, F) with every support vector (V, F), computed in double: (N, V)."""
    if rows.shape[1] != vectors.shape[1]:
        raise InvalidArgument(f"the input has {rows.shape[1]} features, the support vectors have {vectors.shape[1]}")
    gamma, offset, degree = (float(value) for value in (params[:3] if params.size >= 3 else np.zeros(3)))
    x, v = rows.astype(np.float64), vectors.astype(np.float64)
    dots = matmul_in_parts(x, v.T)
    if kernel_type == "RBF":
        distances = (x * x).sum(axis=1)[:, None] + (v * v).sum(axis=1) - 2 * dots
        for row in np.flatnonzero(np.isnan(distances).any(axis=1)):  # infinite numbers are far from finite ones
            check_cancelled()
            distances[row] = ((x[row] - v) ** 2).sum(axis=1)
        near: Array = np.exp(-gamma * np.maximum(distances, 0))
        return near
    if kernel_type not in _KERNELS:
        raise InvalidArgument(f"kernel_type={kernel_type!r}; expected LINEAR, POLY, RBF or SIGMOID")
    return _KERNELS[kernel_type](dots, gamma, offset, degree)


@kernel("SVMRegressor", domain="ai.onnx.ml")
def svm_regressor(
    _node: Call,
    data: Array,
    *,
    coefficients: Sequence[float],
    rho: Sequence[float],
    support_vectors: Sequence[float] | None = None,
    n_supports: int = 0,
    kernel_type: str = "LINEAR",
    kernel_params: Sequence[float] | None = None,
    one_class: int = 0,
    post_transform: str = "NONE",
) -> Array:
    """Predict sum(coefficient * kernel(row, vector)) + rho: float32 (N, 1); its sign for one_class. ONNX SVMRegressor-1.

    Without support vectors the coefficients are one linear row.
    """
    rows, weights = _float_rows(data), _vector(coefficients)
    if not weights.size or not len(rho):
        raise InvalidArgument(f"{weights.size} coefficients and {len(rho)} rho; expected at least one of each")
    if n_supports > 0:
        vectors = _support_vectors(_vector(support_vectors), n_supports)
        if weights.size != n_supports:
            raise InvalidArgument(f"{weights.size} coefficients for n_supports={n_supports}; expected one for each vector")
        scores = _kernel_values(rows, vectors, kernel_type, _vector(kernel_params)) @ weights.astype(np.float64)
    else:
        scores = _kernel_values(rows, weights[None], "LINEAR", _vector(None))[:, 0]
    scores = (scores + rho[0]).astype(np.float32)[:, None]
    return np.where(scores > 0, np.float32(1), np.float32(-1)) if one_class else regressed(scores, post_transform)


def _support_vectors(flat: Array, count: int) -> Array:
    if flat.size % count:
        raise InvalidArgument(f"support_vectors hold {flat.size} numbers, which do not divide into {count} vectors")
    return flat.reshape(count, -1)


def _pair_scores(values: Array, coefficients: Array, rho: Array, per_class: Sequence[int]) -> Array:
    """Return the decision of each pair of classes i < j for kernel values (N, V): (N, pairs), in double, positive for class i.

    coefficients (C - 1, V): row j - 1 holds those of class i's vectors against class j, row i those of class j's against i.
    """
    ends = np.cumsum(per_class)
    parts = [slice(int(end) - size, int(end)) for end, size in zip(ends, per_class, strict=True)]
    scores = [
        values[:, parts[i]] @ coefficients[j - 1, parts[i]] + values[:, parts[j]] @ coefficients[i, parts[j]]
        for i in range(len(per_class))
        for j in range(i + 1, len(per_class))
    ]
    return np.stack(scores, axis=1) + rho[: len(scores)]


def _votes(scores: Array, classes: int) -> Array:
    """Return how many pairs each class wins: (N, C)."""
    first, second = np.triu_indices(classes, 1)
    votes = np.zeros((len(scores), classes), np.int64)
    for pair, (i, j) in enumerate(zip(first, second, strict=True)):
        votes[:, i] += scores[:, pair] > 0
        votes[:, j] += scores[:, pair] <= 0
    return votes


def _coupled(pairwise: Array) -> Array:
    """Return class probabilities (N, C) from pairwise ones (N, C, C).

    The method is the second of Wu, Lin and Weng (2004), as in LIBSVM.

    Each row is iterated until its error is below 0.005 / C, at most 100 times; a row that is done keeps its value.
    """
    N, C, _ = pairwise.shape
    others = pairwise.transpose(0, 2, 1)
    Q = -others * pairwise
    diagonal = np.arange(C)
    Q[:, diagonal, diagonal] = (others * others).sum(axis=2) - others[:, diagonal, diagonal] ** 2
    p = np.full((N, C), 1 / C, np.float32)
    active = np.arange(N)
    for _ in range(100):
        q = Q[active]
        part = p[active]
        Qp = np.einsum("nij,nj->ni", q, part)
        pQp = (part * Qp).sum(axis=1)
        unfinished = np.abs(Qp - pQp[:, None]).max(axis=1) >= 0.005 / C
        active, q, part, Qp, pQp = active[unfinished], q[unfinished], part[unfinished], Qp[unfinished], pQp[unfinished]
        if not active.size:
            break
        for i in range(C):
            own = q[:, i, i]
            step = (pQp - Qp[:, i]) / own
            part[:, i] += step
            scale = 1 + step
            pQp = (pQp + step * (step * own + 2 * Qp[:, i])) / scale / scale
            Qp = (Qp + step[:, None] * q[:, i]) / scale[:, None]
            part /= scale[:, None]
        p[active] = part
    return p


def _probabilities(scores: Array, prob_a: Array, prob_b: Array, classes: int) -> Array:
    """Return Platt-scaled pairwise probabilities, coupled to one per class: float32 (N, C)."""
    pairs = classes * (classes - 1) // 2
    if min(prob_a.size, prob_b.size) < pairs:
        raise InvalidArgument(f"prob_a has {prob_a.size} entries, prob_b {prob_b.size}; expected {pairs}, one for each pair")
    tiny = np.float32(1e-7)
    first = np.clip(1 - logistic(scores * prob_a[:pairs] + prob_b[:pairs]), tiny, 1 - tiny)
    i, j = np.triu_indices(classes, 1)
    pairwise = np.zeros((len(scores), classes, classes), np.float32)
    pairwise[:, i, j] = first
    pairwise[:, j, i] = 1 - first
    return _coupled(pairwise)


@kernel("SVMClassifier", domain="ai.onnx.ml")
def svm_classifier(
    _node: Call,
    data: Array,
    *,
    coefficients: Sequence[float],
    rho: Sequence[float],
    support_vectors: Sequence[float] | None = None,
    vectors_per_class: Sequence[int] = (),
    prob_a: Sequence[float] | None = None,
    prob_b: Sequence[float] | None = None,
    kernel_type: str = "LINEAR",
    kernel_params: Sequence[float] | None = None,
    classlabels_strings: Sequence[str] = (),
    classlabels_ints: Sequence[int] = (),
    post_transform: str = "NONE",
) -> tuple[Array, Array]:
    """Label each row of (N, F) by a vote of all pairs of classes: labels (N,), float32 scores. ONNX SVMClassifier-1.

    Scores are (N, C) probabilities if prob_a and prob_b are given, else the decisions (N, pairs), for two classes (N, 2).
    Without vectors_per_class the coefficients are C linear rows.
    """
    rows, weights, offsets = _float_rows(data), _vector(coefficients), _vector(rho)
    labels = label_array(classlabels_strings, classlabels_ints)
    C = len(labels)
    if not sum(vectors_per_class):
        return _linear_machine(rows, weights, offsets, labels, post_transform)
    count, pairs = sum(vectors_per_class), C * (C - 1) // 2
    if len(vectors_per_class) != C or min(vectors_per_class) < 0 or weights.size < (C - 1) * count or offsets.size < pairs or C < 2:
        raise InvalidArgument(
            f"{C} labels, vectors_per_class={list(vectors_per_class)}, {weights.size} coefficients, {offsets.size} rho; "
            f"expected as many classes, {(C - 1) * count} coefficients and {pairs} rho"
        )
    vectors = _support_vectors(_vector(support_vectors), count)
    values = _kernel_values(rows, vectors, kernel_type, _vector(kernel_params)).astype(np.float32).astype(np.float64)
    table = weights[: (C - 1) * count].reshape(C - 1, count).astype(np.float64)
    decisions = _pair_scores(values, table, offsets.astype(np.float64), vectors_per_class)
    chosen = labels[_votes(decisions, C).argmax(axis=1)]
    scores = decisions.astype(np.float32)
    if prob_a:
        return chosen, post_transformed(_probabilities(scores, _vector(prob_a), _vector(prob_b), C), post_transform)
    if C == 2:
        return chosen, two_columns(scores[:, 0], post_transform != "NONE", post_transform)
    return chosen, post_transformed(scores, post_transform)


def _linear_machine(rows: Array, weights: Array, rho: Array, labels: Array, post_transform: str) -> tuple[Array, Array]:
    """Return an SVMClassifier without support vectors; of two labels the second one also wins by a great enough maximum."""
    C = len(labels)
    if not rho.size:
        raise InvalidArgument("rho is empty; expected at least one entry")
    scores = _linear(rows, weights, np.zeros(0, np.float32), C) + rho[0]
    choice = scores.argmax(axis=1)
    if C == 2:
        top = scores.max(axis=1)
        wins = top >= 0.5 if (weights >= 0).all() else top > 0
        choice = np.where(wins, 1, choice)
    return labels[choice], post_transformed(scores, post_transform)
