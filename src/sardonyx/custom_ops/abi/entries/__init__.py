"""The functions of OrtApi that are filled, by subject; each module lists its own as `ENTRIES`."""
