"""Operators that move elements, one file each."""
