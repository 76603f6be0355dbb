"""Kernels of attention: blocks of many queries, rows of few, and what surrounds a cache."""
