"""Families of kernels of signal processing, one file each."""
