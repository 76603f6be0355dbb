"""Kernels of products in bfloat16."""
