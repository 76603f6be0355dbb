"""The kernel compiler: LLVM IR emitted from Python, compiled by llvmlite, run without the GIL.

    types ─► values ─► builder ─► module                             how a kernel is written
    mathlib, narrow, expr ─► expr_llvm ─► elementwise, gemm, pack …  kernels, and what they are made of
    llvm ─► compile_process ─► jit ─► elf                             from the text of a module to an address
    processors ─► thread_pool ─► driver                              from addresses to a run

Knows no ONNX: the CPU provider says what to compute, this package how.
"""
