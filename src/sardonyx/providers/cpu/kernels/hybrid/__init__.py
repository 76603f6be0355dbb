"""Families of kernels of recurrences beside attention, one file each."""
