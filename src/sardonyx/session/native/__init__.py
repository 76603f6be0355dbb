"""Runs that machine code begins: the functions by which `session.run` enters a program, and what they need."""
