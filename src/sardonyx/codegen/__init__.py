"""The kernel compiler: LLVM IR emitted from Python, compiled by llvmlite, run without the GIL.

    types, values ─► builder ─► mathlib ─► expr ─► gemm        what a kernel is written with
    llvm ─► target ─► jit ◄─ object_cache                      from its text to an address
    thread_pool ─► driver                                      from addresses to a run

Knows no ONNX: the CPU provider says what to compute, this package how.
"""
