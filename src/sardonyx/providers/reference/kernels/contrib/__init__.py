"""Reference kernels of com.microsoft by family."""
