"""Compile modules and run their code: LLVM, the loader, the thread pool and the driver."""
