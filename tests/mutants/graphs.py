"""Changes of the optimizer and of the partitioner."""

from __future__ import annotations

from mutants.mutation import Mutation

__all__ = ["GRAPHS"]

_BAD_PROVIDERS = ("session/test_bad_providers.py",)
_PASSES = ("optimize/passes/test_fold_constants.py", "optimize/passes/test_eliminate_common_subexpressions.py")

GRAPHS: tuple[Mutation, ...] = (
    # the optimizer
    Mutation(
        "random-uniform-is-not-random",
        "optimize/edit.py",
        '"RandomNormalLike", "RandomUniform", "RandomUniformLike"]',
        '"RandomNormalLike", "RandomUniformLike"]',
        _PASSES,
    ),
    Mutation("bernoulli-is-not-random", "optimize/edit.py", '["Bernoulli", "Dropout",', '["Dropout",', _PASSES),
    Mutation(
        "rewrite-queues-one-level-less",
        "optimize/rewrite.py",
        "for _ in range(self._rules.depth):",
        "for _ in range(self._rules.depth - 1):",
    ),
    Mutation(
        "gemm-beta-is-no-scale",
        "ops/views/matmul.py",
        "return self.alpha != 1 or self.beta != 1",
        "return self.alpha != 1",
        ("optimize/rules/matmul", "optimize/rules/quantize/test_fuse_quantized_gemm.py"),
    ),
    Mutation(
        "gemm-beta-moves-through-reshapes",
        "optimize/rules/matmul/skip_reshapes_around_matmul.py",
        'if node.op_type == "Gemm" and Gemm.of(node).is_scaled:',
        'if node.op_type == "Gemm" and Gemm.of(node).alpha != 1:',
    ),
    Mutation(
        "gemm-beta-is-lost-with-a-normalization",
        "optimize/rules/matmul/fuse_matmul_batchnorm.py",
        'beta = Gemm.of(node).beta if node.op_type == "Gemm" else 1.0',
        "beta = 1.0",
    ),
    Mutation(
        "gemm-beta-is-lost-with-a-factor",
        "optimize/rules/matmul/fuse_matmul_multiply.py",
        "alpha, beta = view.alpha, view.beta",
        "alpha, beta = view.alpha, 1.0",
    ),
    Mutation(
        "gemm-beta-of-quantized-weights",
        "optimize/rules/quantize/quantize_weights.py",
        'if x is None or w is None or match.node("operator").number("beta", 1.0) != 1.0:',
        "if x is None or w is None:",
    ),
    Mutation(
        "gemm-beta-of-deferred-scales",
        "optimize/rules/quantize/defer_scales.py",
        "if Gemm.of(product).is_scaled:",
        "if Gemm.of(product).alpha != 1:",
    ),
    Mutation(
        "gemm-beta-of-a-quantized-product",
        "optimize/rules/quantize/fuse_quantized_gemm.py",
        "or c.zero.any() or view.is_scaled:",
        "or c.zero.any() or view.alpha != 1:",
    ),
    Mutation(
        "fold-kept-quantization", "optimize/passes/fold_constants.py", '["DequantizeLinear", "QuantizeLinear", *RANDOM]', "RANDOM"
    ),
    Mutation(
        "fold-grows-a-thousandfold",
        "optimize/passes/fold_constants.py",
        "_growth(node, inputs, made_bytes) > self._context.fold_growth_bytes",
        "_growth(node, inputs, made_bytes) > 1024 * self._context.fold_growth_bytes",
    ),
    Mutation(
        "fold-growth-is-not-counted",
        "optimize/passes/fold_constants.py",
        "self._context.fold_growth_bytes -= 0 if arrays is None else",
        "self._context.fold_growth_bytes -= 0 if arrays is None else 0 *",
    ),
    Mutation("fold-time-is-not-counted", "optimize/passes/fold_constants.py", "fold_seconds -= time", "fold_seconds -= 0 * time"),
    Mutation("fold-small-is-large", "optimize/passes/fold_constants.py", "SMALL_BYTES = 64 << 10", "SMALL_BYTES = 64 << 20"),
    Mutation("fold-any-growth", "optimize/passes/fold_constants.py", "GROWTH = 2", "GROWTH = 200"),
    Mutation("fold-tile-of-unknown-size", "optimize/passes/fold_constants.py", '"Tile", "Upsample"]', '"Upsample"]'),
    Mutation(
        "fold-result-beyond-the-limit",
        "optimize/passes/fold_constants.py",
        "not isinstance(result, np.ndarray) or result.nbytes > most_bytes",
        "not isinstance(result, np.ndarray)",
    ),
    Mutation(
        "common-nodes-of-two-versions",
        "optimize/passes/eliminate_common_subexpressions.py",
        "len(node.outputs), node.version, node.domain, node.overload",
        "len(node.outputs), node.domain, node.overload",
    ),
    Mutation(
        "common-nodes-of-two-domains",
        "optimize/passes/eliminate_common_subexpressions.py",
        "len(node.outputs), node.version, node.domain, node.overload",
        "len(node.outputs), node.version, node.overload",
    ),
    # transposes
    Mutation(
        "transposes-composed-the-other-way",
        "optimize/transposes/permutation.py",
        "return tuple(first[axis] for axis in second)",
        "return tuple(second[axis] for axis in first)",
    ),
    Mutation(
        "transpose-of-ones-moves-something",
        "optimize/transposes/permutation.py",
        "shape is None or shape[axis] != 1]",
        "True]",
    ),
    Mutation(
        "transposed-matrix-changes-layout", "optimize/transposes/permutation.py", "return rank >= 3 and", "return rank >= 2 and"
    ),
    Mutation(
        "transpose-that-is-an-output-is-merged",
        "optimize/transposes/push.py",
        "if same is not node.output and not node.output.is_graph_output:",
        "if same is not node.output:",
    ),
    Mutation(
        "transpose-moves-where-nothing-is-won", "optimize/transposes/push.py", "return cost < gain or", "return cost <= gain or"
    ),
    # the cut
    Mutation(
        "cut-fewest-ready-units-next",
        "partition/cut.py",
        "current = max(ready, key=lambda name: len(ready[name]))",
        "current = min((name for name in ready if ready[name]), key=lambda name: len(ready[name]))",
    ),
    Mutation("cut-first-provider-begins", "partition/cut.py", "best = min(schedules, key=len)", "best = schedules[0]"),
    Mutation("cut-joins-what-wants-to-be-alone", "partition/cut.py", "if unit.capability.alone else", "if False else"),
    Mutation("cut-joins-streams", "partition/cut.py", '{unit.provider.name}:{unit.stream}"', '{unit.provider.name}:"'),
    Mutation(
        "cut-keeps-what-another-claim-reads",
        "partition/cut.py",
        "if any(user not in readers for user, _ in value.uses) or (value in asked and not asked[value] <= own)",
        "if any(user not in readers for user, _ in value.uses)",
    ),
    Mutation(
        "cut-without-what-claims-read",
        "partition/cut.py",
        "for value in (*node_reads(node), *unit.capability.reads):",
        "for value in node_reads(node):",
    ),
    Mutation(
        "min-cut-edges-both-ways",
        "partition/min_cut.py",
        "((tail, head, capacity), (head, tail, 0))",
        "((tail, head, capacity), (head, tail, capacity))",
    ),
    Mutation(
        "budget-less-than-its-limit",
        "partition/budget.py",
        "taken + need > budget.limit_bytes",
        "taken + need >= budget.limit_bytes",
    ),
    Mutation("budget-weights-count-twice", "partition/budget.py", "measured.taken_bytes - known)", "measured.taken_bytes)"),
    # assignment, layout, transfers, casts
    Mutation(
        "assign-offers-what-did-not-fit",
        "partition/assign.py",
        "for node in self._offered(provider) if node not in too_much)",
        "for node in self._offered(provider))",
        ("partition/test_budget.py",),
    ),
    Mutation("assign-graph-may-be-changed", "partition/claims.py", "if _state(graph) != before:", "if False:", _BAD_PROVIDERS),
    Mutation("assign-claims-overlap", "partition/assign.py", "        if taken is None:\n", "        if True:\n"),
    Mutation(
        "assign-claim-names-a-node-twice",
        "partition/claims.py",
        "if len(set(capability.nodes)) < len(capability.nodes):",
        "if False:",
        _BAD_PROVIDERS,
    ),
    Mutation("assign-strange-nodes-claimed", "partition/claims.py", "    if strange:", "    if False:", _BAD_PROVIDERS),
    Mutation(
        "assign-converts-what-keeps-its-layout",
        "partition/assign.py",
        "if node in claimed and node not in kept])",
        "if node in claimed])",
    ),
    Mutation(
        "assign-shapes-on-the-device",
        "partition/assign.py",
        "if provider.memory.name == HOST.name:",
        "if True:",
        ("partition/test_shape_nodes.py",),
    ),
    Mutation("layout-of-two-dimensions", "partition/layout.py", "and _rank_of(node) >= 3", "and _rank_of(node) >= 2"),
    Mutation(
        "layout-of-nodes-whose-other-outputs-are-read",
        "partition/layout.py",
        "        and all(value.use_count == 0 for value in node.outputs[1:])\n",
        "",
    ),
    Mutation("layout-scales-stay-in-order", "partition/layout.py", "[list(to_last(_rank_of(node)))]", ""),
    Mutation(
        "layout-resizes-by-computed-sizes",
        "partition/layout.py",
        'and (node.op_type != "Resize" or _is_resized_by_constants(node))',
        "",
    ),
    Mutation(
        "transfer-to-the-host-for-each-device",
        "partition/transfers.py",
        "            present.add((value, HOST.name))\n",
        "",
    ),
    Mutation("transfer-once-more-for-each-reader", "partition/transfers.py", "        present.add((value, target.name))\n", ""),
    Mutation("transfer-again-what-was-entered", "partition/transfers.py", "for copy in entered}", "for copy in entered[:0]}"),
    Mutation(
        "casts-random-numbers-drawn-wider",
        "partition/casts.py",
        '"Multinomial", "RandomNormalLike", "RandomUniformLike"',
        '"Multinomial"',
    ),
)
"""The changes."""
