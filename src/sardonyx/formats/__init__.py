"""Bytes to the intermediate representation and back: one file per format."""
