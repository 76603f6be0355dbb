"""Changes of the kernel compiler, and of the provider that lowers nodes to its kernels."""

from __future__ import annotations

from mutants.mutation import Mutation

__all__ = ["COMPILER"]

_GATHER_NODES = ("providers/cpu/kernels/test_gather.py",)

COMPILER: tuple[Mutation, ...] = (
    # the thread pool
    Mutation(
        "pool-forgets-a-worker-whose-start-is-interrupted",
        "codegen/run/thread_pool.py",
        """                self._threads.append(thread)  # before it starts: an interrupt may be raised when it runs already
                try:
                    thread.start()
""",
        """                try:
                    thread.start()
                    self._threads.append(thread)
""",
    ),
    # gemm
    Mutation(
        "gemm-columns-of-a-task-not-whole-panels",
        "codegen/kernels/cuts.py",
        "first, following = ((index * units + rounding) // pieces * unit for index in (number, number + 1))",
        "first, following = (index * size // pieces for index in (number, number + 1))",
    ),
    Mutation(
        "gemm-last-block-of-k-too-deep",
        "codegen/kernels/gemm.py",
        'depth = p["K"] if few else _least(b, p["block_k"], p["K"] - k)',
        'depth = p["K"] if few else p["block_k"]',
    ),
    Mutation(
        "gemm-epilogue-after-each-block-of-k",
        "codegen/kernels/gemm.py",
        '(k + done + length).eq(p["K"])',
        "(k + done + length) > 0",
    ),
    Mutation(
        "gemm-batch-into-one-result",
        "codegen/kernels/gemm.py",
        'first_c = b.buffer(C, panels.computed).at(batch * p["stride_c"])',
        "first_c = b.buffer(C, panels.computed).at(batch * 0)",
    ),
    Mutation(
        "gemm-tail-stores-whole-vectors",
        "codegen/kernels/tiles.py",
        "return [whole] * (vectors - 1) + [Span(shape.lanes, b.tail_mask(b.min(rest, shape.lanes), shape.lanes))]",
        "return [whole] * vectors",
    ),
    Mutation(
        "byte-gemm-forgets-rows-beside-zero-points",
        "codegen/kernels/quantized/byte_gemm.py",
        "total = total - self._right * row_sum",
        "total = total - self._right",
    ),
    Mutation(
        "byte-gemm-forgets-the-block-before",
        "codegen/kernels/quantized/byte_gemm.py",
        "with b.when(first > 0):",
        "with b.when(first < 0):",
    ),
    Mutation(
        "packed-bytes-are-summed-unsigned",
        "codegen/kernels/byte_panels.py",
        "sums = np.full(N, -shift * K, np.int32)",
        "sums = np.zeros(N, np.int32)",
    ),
    Mutation(
        "gemm-packs-one-row-block-less",
        "codegen/kernels/pack.py",
        "_store_panels(packed[:, start:stop], rows(start, stop))",
        "_store_panels(packed[:, start : stop - 1], rows(start, stop - 1))",
    ),
    Mutation(
        "winograd-tasks-begin-a-panel-apart",
        "codegen/kernels/winograd.py",
        'task % pieces * p["task_columns"]',
        "task % pieces * shape.panel",
    ),
    # conv
    Mutation(
        "conv-columns-of-a-task-not-whole-panels",
        "codegen/kernels/conv.py",
        'piece(b, part % p["pieces_columns"], p["pieces_columns"], p["columns"], panel)',
        'piece(b, part % p["pieces_columns"], p["pieces_columns"], p["columns"], 1)',
    ),
    Mutation(
        "conv-chains-of-any-length",
        "codegen/kernels/conv.py",
        "max(min(CHAIN // max(depth, 1), -(-runs // chains)), 1)",
        "max(runs, 1)",
    ),
    Mutation(
        "conv-second-chain-of-a-run-forgets-the-first",
        "codegen/kernels/conv.py",
        "with b.when((start + k) > 0):",
        "with b.when(start > 0):",
    ),
    Mutation(
        "conv-epilogue-after-each-part-of-a-run",
        "codegen/kernels/conv.py",
        'b.branch((stop >= p["runs"]) & (stop_k >= p["depth"]),',
        'b.branch((stop >= p["runs"]),',
    ),
    Mutation(
        "conv-groups-read-the-first-filters",
        "codegen/kernels/conv.py",
        'at((block.group * panels * depth + block.run * p["depth"] + block.k) * shape.panel)',
        'at((block.run * p["depth"] + block.k) * shape.panel)',
    ),
    # softmax and reductions
    Mutation(
        "softmax-all-columns-by-the-greatest-of-one",
        "codegen/kernels/softmax.py",
        "greatest[place.number])\n\n    def term(place: VectorPosition) -> Register:\n        value",
        "greatest[0])\n\n    def term(place: VectorPosition) -> Register:\n        value",
    ),
    Mutation(
        "softmax-greatest-without-nan",
        "codegen/kernels/softmax.py",
        "greatest = strip.fold(MAX, lambda place: x.load(place.offset, place.span))",
        "greatest = _greatest(strip, x)",
        ("providers/cpu/kernels/test_softmax.py",),
    ),
    Mutation(
        "reduce-log-sum-exp-of-infinity",
        "codegen/kernels/reduce.py",
        "b.select(b.abs(value) < math.inf, value, value.like(0))",
        "value",
    ),
    Mutation(
        "reduce-nan-is-nowhere",
        "codegen/kernels/reduce.py",
        "value.eq(extreme) | (b.is_nan(value) & b.is_nan(extreme)) if x.element.is_float else value.eq(extreme)",
        "value.eq(extreme)",
    ),
    Mutation(
        "reduce-cumulative-always-forward",
        "codegen/kernels/reduce.py",
        "(lines - 1 - step if reverse else step) * length",
        "step * length",
    ),
    # gather, scatter, one-hot, triangle
    Mutation(
        "gather-index-of-the-length",
        "codegen/kernels/gather.py",
        "position.to(U64) < length.to(U64)",
        "position.to(U64) <= length.to(U64)",
    ),
    Mutation(
        "gather-index-below-the-first",
        "codegen/kernels/gather.py",
        "position.to(U64) < length.to(U64)",
        "position < length",
    ),
    Mutation(
        "gather-negative-index-not-from-the-end",
        "codegen/kernels/gather.py",
        "b.select(index < 0, index + length, index)",
        "index",
    ),
    Mutation(
        "gather-last-task-too-long",
        "codegen/kernels/gather.py",
        "b.min(first + block, count)",
        "first + block",
        _GATHER_NODES,
    ),
    Mutation(
        "gather-reports-the-tuple",
        "codegen/kernels/gather.py",
        "store((tuples + j) * depth + 1)",
        "store((tuples + j) + 1)",
        _GATHER_NODES,
    ),
    Mutation(
        "scatter-reports-the-tuple",
        "codegen/kernels/scatter.py",
        "store(j * depth + 1)",
        "store(j + 1)",
        _GATHER_NODES,
    ),
    Mutation(
        "one-hot-index-below-the-first",
        "codegen/kernels/one_hot.py",
        "(position >= 0) & (position < depth)",
        "position < depth",
    ),
    Mutation(
        "triangle-diagonal-beyond-the-matrix",
        "codegen/kernels/triangle.py",
        "k = b.max(b.min(b.buffer(DIAGONAL, I64).load(), width + 1), -height - 1)",
        "k = b.buffer(DIAGONAL, I64).load()",
    ),
    # pad, transpose, border
    Mutation(
        "pad-cuts-more-than-there-is",
        "codegen/kernels/pad.py",
        "skip = min(max(-before, 0), size)",
        "skip = max(-before, 0)",
    ),
    Mutation(
        "pad-edge-before-the-first", "codegen/kernels/pad.py", "b.max(b.min(place, length - 1), 0)", "b.min(place, length - 1)"
    ),
    Mutation(
        "pad-reflects-once",
        "codegen/kernels/pad.py",
        "with b.when((found.value < 0) | (found.value > last)):",
        "with b.when(found.value < 0):",
    ),
    Mutation(
        "pad-merges-dimensions-in-all-modes",
        "codegen/kernels/pad.py",
        'if dim.is_whole and (mode == "constant" or last.is_whole):',
        "if dim.is_whole:",
    ),
    Mutation(
        "transpose-reads-rows-that-are-not-there",
        "codegen/kernels/transpose.py",
        "b.min(b.const(I64, step), height - 1)",
        "b.const(I64, step)",
    ),
    Mutation(
        "border-row-behind-the-last",
        "codegen/kernels/border.py",
        "(place >= 0) & (place < size)",
        "(place >= 0) & (place <= size)",
    ),
    # attention, pool, normalize
    Mutation(
        "attention-causal-without-the-past",
        "codegen/kernels/attention/blocks.py",
        'end = b.min(block.s + block.param("past") + block.width, end)',
        "end = b.min(block.s + block.width, end)",
    ),
    Mutation(
        "attention-more-tasks-than-scratch-memory",
        "codegen/kernels/attention/blocks.py",
        'task % p["together"] * p["scratch"]',
        'task * p["scratch"]',
    ),
    Mutation(
        "attention-heads-share-other-keys",
        "codegen/kernels/attention/blocks.py",
        '"k": head // p["group"]',
        '"k": head % p["group"]',
    ),
    Mutation(
        "attention-scratch-without-the-last-tile",
        "codegen/kernels/attention/block_params.py",
        "_round_up(BLOCK_KEYS, shape.tiles[0][1][0]) + STATISTICS",
        "BLOCK_KEYS - 8 + STATISTICS",
    ),
    Mutation(
        "pool-greatest-without-nan",
        "codegen/kernels/pool.py",
        "missing.set(b.select(b.is_nan(x), x, missing.value))",
        "missing.set(missing.value)",
    ),
    Mutation(
        "pool-mean-counts-taps-outside-the-padding",
        "codegen/kernels/pool.py",
        'count = count * least(b, axis["taps"], b.max(blocks(room, axis["dilation"]), room.like(0)))',
        'count = count * axis["taps"]',
        ("providers/cpu/kernels/test_pool.py",),
    ),
    Mutation(
        "group-norm-forgets-what-rounding-lost",
        "codegen/kernels/normalize.py",
        "summand = biases.load(channel + j).to(F64) - lost * factor",
        "summand = biases.load(channel + j).to(F64)",
        ("providers/cpu/kernels/test_group_norm.py",),
    ),
    # the provider
    Mutation(
        "gemm-without-beta",
        "providers/cpu/kernels/matmul.py",
        "(view.alpha, view.beta if bias is not None else 1.0)",
        "(view.alpha, 1.0)",
    ),
    Mutation(
        "gemm-without-alpha",
        "providers/cpu/kernels/matmul.py",
        "(view.alpha, view.beta if bias is not None else 1.0)",
        "(1.0, view.beta if bias is not None else 1.0)",
    ),
    Mutation(
        "storage-shares-what-is-read-later",
        "providers/cpu/storage.py",
        "host.constant is None and last[host] == index",
        "host.constant is None and last[host] >= index",
    ),
    Mutation(
        "storage-shares-what-the-step-reads-twice",
        "providers/cpu/storage.py",
        "sum(buffer.root is host for buffer in step.buffers) == 1",
        "sum(buffer.root is host for buffer in step.buffers) >= 1",
    ),
    Mutation(
        "planning-part-begins-before-its-tensor",
        "providers/cpu/planning.py",
        "if not 0 <= offset < max(sizes.product(buffer.shape), 1):",
        "if not offset < max(sizes.product(buffer.shape), 1):",
    ),
    Mutation(
        "planning-writes-twice-the-limit",
        "providers/cpu/planning.py",
        "if needed > LIMITS.tensor_bytes:",
        "if needed > 2 * LIMITS.tensor_bytes:",
    ),
    Mutation(
        "planning-negative-size",
        "providers/cpu/planning.py",
        "if min(shape, default=0) < 0:",
        "if min(shape, default=0) < -1:",
    ),
)
"""The changes."""
