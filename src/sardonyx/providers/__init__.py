"""Execution providers: each claims the part of a model that it runs best."""
